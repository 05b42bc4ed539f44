/**
 * Sets the deadline of requests and answers 504 for a handler that missed it. Watches and streams have no deadline.
 * Source: k8s.io/apiserver pkg/server/filters/timeout.go
 */

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { StatusError, timeout as timeoutError } from "@coxswain/apimachinery/errors/status-error";
import { requestTimeoutMs } from "../request/deadline.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";
import { countAbort, countTermination, type RequestMetrics } from "./metrics.ts";

export interface TimeoutOptions {
  requestTimeoutMs: number;
  clock: Clock;
  writeError: (request: ServerRequest, err: unknown) => void;
  metrics: RequestMetrics;
}

/** After the deadline handlers have this long to notice the aborted signal and to send a response of their own. */
const graceMs = 100;
/** A handler still running this long after its request was answered is counted as pending. */
const pendingMs = 5 * 60_000;

/** Sets `deadlineMs` to the lesser of ?timeout and `requestTimeoutMs`, and answers 504 after it. */
export function timeout(options: TimeoutOptions): Filter {
  const { clock, metrics } = options;
  return async (request, next) => {
    if (request.longRunning) return next(request);
    const at = request.exchange.url.indexOf("timeout=");
    const timeoutMs =
      at < 0 ? options.requestTimeoutMs : requestTimeoutMs(request.query.get("timeout"), options.requestTimeoutMs);
    request.deadlineMs = request.receivedMs + timeoutMs;
    let later: { cancel(): void } | undefined;
    let late: LateHandler | undefined;
    const timer = clock.after(timeoutMs, () => {
      const err = timeoutError("request did not complete within the allotted timeout", 0);
      request.abort(err);
      later = clock.after(graceMs, () => {
        const lateOne = lateHandler(metrics);
        late = lateOne;
        later = clock.after(pendingMs, () => lateOne.ended("pending"));
        countTermination(metrics, request, "apiserver", 504);
        if (!request.exchange.headersSent) return options.writeError(request, err);
        countAbort(metrics, request);
        request.exchange.destroy();
      });
    });
    try {
      await next(request);
      late?.ended("ok");
    } catch (err) {
      late?.ended(err instanceof StatusError ? "error" : "panic");
      throw err;
    } finally {
      timer.cancel();
      later?.cancel();
    }
  };
}

interface LateHandler {
  ended(how: "ok" | "error" | "panic" | "pending"): void;
}

/**
 * Counts, once, how a handler ends after its request was answered with 504. Upstream has two layers that wait for it: the
 * inner one reports its result, the outer one only whether it panicked.
 */
function lateHandler({ postTimeout }: RequestMetrics): LateHandler {
  let told = false;
  return {
    ended(how) {
      if (!told) postTimeout.labels("rest-handler", how).inc();
      told = true;
      if (how !== "pending") postTimeout.labels("timeout-handler", how === "panic" ? "panic" : "ok").inc();
    },
  };
}
