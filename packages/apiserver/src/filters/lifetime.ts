/** How long a request may run: until its deadline, or until the server shuts down. */

import { StatusError, timeout as timeoutError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { requestTimeoutMs } from "../request/deadline.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";
import { countAbort, countTermination, type RequestMetrics } from "./metrics.ts";

interface TimeoutOptions {
  requestTimeoutMs: number;
  clock: Clock;
  writeError: (request: ServerRequest, err: unknown) => void;
  metrics: RequestMetrics;
}

/** After the deadline handlers have this long to notice the aborted signal and to send their own response. */
const graceMs = 100;
/** A handler still running this long after its request was answered is counted as pending. */
const pendingMs = 5 * 60_000;

/**
 * Sets `deadlineMs` to the lesser of ?timeout and `requestTimeoutMs`, and answers 504 for a handler that missed it. Watches and
 * streams have no deadline.
 * Source: k8s.io/apiserver pkg/server/filters/timeout.go
 */
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
  let reported = false;
  return {
    ended(how) {
      if (!reported) postTimeout.labels("rest-handler", how).inc();
      reported = true;
      if (how !== "pending") postTimeout.labels("timeout-handler", how === "panic" ? "panic" : "ok").inc();
    },
  };
}

/** Short requests in progress: all but watches and streams. */
export interface OpenRequests {
  readonly idle: boolean;
  /** Called whenever the last of them has finished. */
  onIdle: () => void;
}

/**
 * The state of a graceful shutdown. Short requests are completed; then watches and streams are ended, and their clients reconnect to another
 * server. With --shutdown-send-retry-after new requests get 429 and their connection is closed, so that a load balancer
 * redirects them. Health checks and metrics are exempt; the server's own requests do not pass the filters.
 * Source: k8s.io/apiserver pkg/server/filters/{with_retry_after,waitgroup}.go
 */
export class Drain implements OpenRequests {
  /** Set when termination begins and --shutdown-send-retry-after is on. */
  sendRetryAfter = false;
  onIdle = (): void => {};
  readonly #ended = new AbortController();
  #active = 0;

  /** Aborted when watches and streams are to end. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  enter(): void {
    this.#active++;
  }

  leave(): void {
    if (--this.#active === 0) this.onIdle();
  }

  get idle(): boolean {
    return this.#active === 0;
  }

  /** Waits until no short request is in progress, at most `graceMs`; then ends watches and streams. */
  async end(graceMs: number, clock: Clock): Promise<void> {
    const deadline = clock.monotonic() + graceMs;
    while (this.#active > 0 && clock.monotonic() < deadline) await clock.sleep(pollMs);
    this.#ended.abort(new Error("the server is shutting down"));
  }
}

const pollMs = 10;
const exempt = ["/readyz", "/livez", "/healthz", "/metrics"];

/** The filter that counts short requests and rejects requests during shutdown. */
export function drain(state: Drain): Filter {
  return async (request, next) => {
    if (state.sendRetryAfter && !isExempt(request.info.path)) {
      request.exchange.goAway();
      const headers = { "content-type": "text/plain; charset=utf-8", "retry-after": "5" };
      return request.exchange.respond(429, headers, "The apiserver is shutting down, please try again later.");
    }
    if (request.longRunning) return next(request);
    state.enter();
    try {
      await next(request);
    } finally {
      state.leave();
    }
  };
}

function isExempt(path: string): boolean {
  return exempt.some((one) => path.startsWith(one));
}
