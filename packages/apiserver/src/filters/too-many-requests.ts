import { type StatusError, tooManyRequests as tooManyError } from "@coxswain/apimachinery/objects/errors/status-error";
import { isReadOnly } from "../request/request-info.ts";
import type { ServerRequest } from "../request/server-request.ts";
import { countTermination, type RequestMetrics } from "./metrics.ts";

const text = "Too many requests, please try again later.";

/** Counts a request that gets no seat again after its body has arrived. @returns the error for its handler to throw */
export function noSeat(metrics: RequestMetrics, request: ServerRequest): StatusError {
  count(metrics, request);
  return tooManyError(text, 1);
}

/** Rejects a request with 429 because of overload. Source: k8s.io/apiserver pkg/server/filters/maxinflight.go tooManyRequests */
export function tooManyRequests(metrics: RequestMetrics, request: ServerRequest): void {
  count(metrics, request);
  request.exchange.respond(
    429,
    { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff", "retry-after": "1" },
    `${text}\n`,
  );
}

function count(metrics: RequestMetrics, request: ServerRequest): void {
  metrics.droppedRequests.labels(isReadOnly(request.info) ? "readOnly" : "mutating").inc();
  countTermination(metrics, request, "apiserver", 429);
}
