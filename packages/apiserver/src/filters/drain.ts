/**
 * Shutting down. Short requests come to their end; watches and streams are ended once those have, their clients go to
 * another server. With --shutdown-send-retry-after new requests get 429 on the way, and a connection that is told to
 * end, so that a load balancer leads them elsewhere. Health, metrics and the server's own requests go on.
 * Source: k8s.io/apiserver pkg/server/filters/{with_retry_after,waitgroup}.go
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { apiserverUser } from "../request/user-names.ts";
import type { Filter } from "./filter.ts";

/** The short requests that run now: all but watches and streams. */
export interface OpenRequests {
  readonly idle: boolean;
  /** Called whenever the last of them has ended. */
  onIdle: () => void;
}

export class Drain implements OpenRequests {
  /** Set when termination begins and the flag is on. */
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

  /** Resolves when no short request runs, at the latest after `graceMs`; then watches and streams end. */
  async end(graceMs: number, clock: Clock): Promise<void> {
    const deadline = clock.monotonic() + graceMs;
    while (this.#active > 0 && clock.monotonic() < deadline) await clock.sleep(pollMs);
    this.#ended.abort(new Error("the server is shutting down"));
  }
}

const pollMs = 10;
const exempt = ["/readyz", "/livez", "/healthz", "/metrics"];

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
