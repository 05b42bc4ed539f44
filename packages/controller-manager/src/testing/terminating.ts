import { forbidden, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";

/** The API server's answer to a creation in a terminating namespace. */
export function namespaceTerminating(ref: ResourceRef, name = ""): StatusError {
  const { status } = forbidden(ref, name, "unable to create new content in namespace web because it is being terminated");
  return new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
}
