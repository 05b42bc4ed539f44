/**
 * Graceful shutdown. Short requests are completed; then watches and streams are ended, and their clients reconnect to another
 * server. With --shutdown-send-retry-after new requests get 429 and their connection is closed, so that a load balancer
 * redirects them. Health checks, metrics and the server's own requests are exempt.
 * Source: k8s.io/apiserver pkg/server/filters/{with_retry_after,waitgroup}.go
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { apiserverUser } from "../request/user-names.ts";
import type { Filter } from "./filter.ts";

/** Short requests in progress: all but watches and streams. */
export interface OpenRequests {
  readonly idle: boolean;
  /** Called whenever the last of them has finished. */
  onIdle: () => void;
}

/** The state of the server's shutdown. */
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
    if (state.sendRetryAfter && request.user.name !== apiserverUser && !isExempt(request.info.path)) {
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
  return exempt.some((one) => path === one || path.startsWith(`${one}/`));
}
