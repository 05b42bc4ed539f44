import { newTokenBucket } from "../client/rate-limit.ts";
import type { Clock } from "../process/clock/clock.ts";

/**
 * Computes the delay before a failed key is retried.
 * Source: k8s.io/client-go util/workqueue/default_rate_limiters.go
 */
export interface RateLimiter<K> {
  /** Counts a failure of the key. @returns ms to wait */
  when(key: K): number;
  /** Resets the key's failures, after success or when it is given up. */
  forget(key: K): void;
  /** Failures since the last `forget`. */
  numRequeues(key: K): number;
}

/** Delays of `baseMs`, doubled with each failure up to `maxMs`, per key. */
export function exponentialBackoff<K>(baseMs: number, maxMs: number): RateLimiter<K> {
  const failures = new Map<K, number>();
  return {
    when(key) {
      const before = failures.get(key) ?? 0;
      failures.set(key, before + 1);
      return Math.min(maxMs, baseMs * 2 ** before);
    },
    forget: (key) => void failures.delete(key),
    numRequeues: (key) => failures.get(key) ?? 0,
  };
}

/** A token bucket for all keys together: `burst` at once, `qps` per second. */
export function overallBucket<K>(options: { qps: number; burst: number; clock: Clock }): RateLimiter<K> {
  const bucket = newTokenBucket(options);
  return { when: () => bucket.reserve(), forget() {}, numRequeues: () => 0 };
}

/** The maximum of several limiters. */
export function longestOf<K>(...limiters: readonly RateLimiter<K>[]): RateLimiter<K> {
  return {
    when: (key) => Math.max(...limiters.map((limiter) => limiter.when(key))),
    forget: (key) => {
      for (const limiter of limiters) limiter.forget(key);
    },
    numRequeues: (key) => Math.max(...limiters.map((limiter) => limiter.numRequeues(key))),
  };
}

/** Default of controllers: 5 ms to 1,000 s per key, and 10 per second with a burst of 100 for all keys. */
export function defaultControllerRateLimiter<K>(clock: Clock): RateLimiter<K> {
  return longestOf(exponentialBackoff<K>(5, 1_000_000), overallBucket<K>({ qps: 10, burst: 100, clock }));
}
