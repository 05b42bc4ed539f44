import { StatusError } from "@coxswain/apimachinery/errors/status-error";

/** Where upstream's plugins fail without a status: 500 with the bare message and no reason. */
export function plainError(message: string): StatusError {
  return new StatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, code: 500 });
}
