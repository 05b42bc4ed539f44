import type { Clock } from "../process/clock/clock.ts";

/** Exponential backoff that starts over after a period without failures. */
export interface Backoff {
  /** @returns ms to wait before the next attempt */
  next(): number;
  /** Restarts with the first wait, after a success. */
  reset(): void;
}

/** Source: client-go tools/cache/reflector.go, NewExponentialBackoffManager(800ms, 30s, 2min, 2.0, 1.0) */
export const reflectorBackoff = { initialMs: 800, maxMs: 30_000, resetAfterMs: 120_000, factor: 2, jitter: 1 };

/** @param options.jitter maximum random extension of a wait, relative to it */
export function newBackoff(options: typeof reflectorBackoff & { clock: Clock; random?: () => number }): Backoff {
  const { initialMs, maxMs, resetAfterMs, factor, jitter, clock, random = Math.random } = options;
  let nextMs = initialMs;
  let lastAt = Number.NEGATIVE_INFINITY;
  return {
    next() {
      if (clock.monotonic() - lastAt > resetAfterMs) nextMs = initialMs;
      lastAt = clock.monotonic();
      const waitMs = nextMs;
      nextMs = Math.min(maxMs, nextMs * factor);
      return waitMs * (1 + jitter * random());
    },
    reset() {
      nextMs = initialMs;
    },
  };
}
