/**
 * Logs each request at -v=3, in upstream's format.
 * Source: k8s.io/apiserver pkg/server/httplog/httplog.go
 */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { redactedUrl } from "@coxswain/apimachinery/process/logging/redacted-url";
import type { ServerRequest } from "../request/server-request.ts";

/** Logs the request when its response has ended, at verbosity 3. */
export function logRequest(log: Logger, clock: Clock, request: ServerRequest): void {
  const { exchange } = request;
  log.v(3)?.info("HTTP", {
    verb: request.info.isResourceRequest ? request.info.verb.toUpperCase() : exchange.method,
    URI: redactedUrl(exchange.url),
    latency: `${(clock.now() - request.receivedMs).toFixed(3)}ms`,
    userAgent: exchange.headers["user-agent"] ?? "",
    "audit-ID": request.auditId,
    srcIP: exchange.remoteAddress,
    resp: exchange.status,
  });
}
