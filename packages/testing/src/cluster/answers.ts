import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { STATUS_CODES } from "@coxswain/apimachinery/transport/node-http";

const reasons: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** Answers with a Status, as the API server does. */
export function errorResponse(
  exchange: Exchange,
  code: number,
  message: string | undefined,
  { method, path }: { readonly method: string; readonly path: string },
): void {
  const text = message ?? `injected fault: ${method} ${path} fails with ${code} ${STATUS_CODES[code] ?? ""}`.trim();
  const status = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: text,
    reason: reasons[code] ?? "Unknown",
    code,
  };
  exchange.respond(code, { "content-type": "application/json" }, JSON.stringify(status));
}
