/**
 * Gives requests a deadline and answers 504 for a handler that missed it. Watches and streams have none.
 * Source: k8s.io/apiserver pkg/server/filters/timeout.go
 */

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { timeout as timeoutError } from "@coxswain/apimachinery/errors/status-error";
import { requestTimeoutMs } from "../request/deadline.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";

export interface TimeoutOptions {
  requestTimeoutMs: number;
  clock: Clock;
  writeError: (request: ServerRequest, err: unknown) => void;
}

/** After the deadline handlers get this long to see the aborted signal and to give an answer of their own. */
const graceMs = 100;

export function timeout(options: TimeoutOptions): Filter {
  return async (request, next) => {
    if (request.longRunning) return next(request);
    const at = request.exchange.url.indexOf("timeout=");
    const timeoutMs =
      at < 0 ? options.requestTimeoutMs : requestTimeoutMs(request.query.get("timeout"), options.requestTimeoutMs);
    request.deadlineMs = request.receivedMs + timeoutMs;
    let grace: { cancel(): void } | undefined;
    const timer = options.clock.after(timeoutMs, () => {
      const err = timeoutError("request did not complete within the allotted timeout", 0);
      request.abort(err);
      grace = options.clock.after(graceMs, () => {
        if (request.exchange.headersSent) request.exchange.destroy();
        else options.writeError(request, err);
      });
    });
    try {
      await next(request);
    } finally {
      timer.cancel();
      grace?.cancel();
    }
  };
}
