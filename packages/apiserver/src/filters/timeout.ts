/**
 * Gives requests a deadline and answers 504 for a handler that missed it. Watches and streams have none.
 * Source: k8s.io/apiserver pkg/server/filters/timeout.go
 */

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { timeout as timeoutError } from "@coxswain/apimachinery/errors/status-error";
import { requestTimeoutMs } from "../request/deadline.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";
import type { RequestMetrics } from "./metrics.ts";

export interface TimeoutOptions {
  requestTimeoutMs: number;
  clock: Clock;
  writeError: (request: ServerRequest, err: unknown) => void;
  /** Counts how handlers end whose request was answered for them. */
  postTimeout: RequestMetrics["postTimeout"];
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
    let tooLate = false;
    const timer = options.clock.after(timeoutMs, () => {
      const err = timeoutError("request did not complete within the allotted timeout", 0);
      request.abort(err);
      grace = options.clock.after(graceMs, () => {
        tooLate = true;
        if (request.exchange.headersSent) request.exchange.destroy();
        else options.writeError(request, err);
      });
    });
    try {
      await next(request);
      if (tooLate) options.postTimeout.labels(source, "ok").inc();
    } catch (err) {
      if (tooLate) options.postTimeout.labels(source, "error").inc();
      throw err;
    } finally {
      timer.cancel();
      grace?.cancel();
    }
  };
}

/** As upstream calls this filter. */
const source = "timeout-handler";
