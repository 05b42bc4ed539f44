import { newTokenBucket } from "../client/rate-limit.ts";
import type { Clock } from "../clock/clock.ts";

/**
 * How long a key that failed waits.
 * Source: k8s.io/client-go util/workqueue/default_rate_limiters.go
 */
export interface RateLimiter<K> {
  /** Counts one more failure of the key. @returns ms to wait */
  when(key: K): number;
  /** The key succeeded, or is given up: its failures are forgotten. */
  forget(key: K): void;
  /** Failures since the last `forget`. */
  numRequeues(key: K): number;
}

/** `baseMs`, twice that, four times, …, never more than `maxMs`; each key on its own. */
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

/** All keys together: `burst` at once, `qps` a second over time. */
export function overallBucket<K>(options: { qps: number; burst: number; clock: Clock }): RateLimiter<K> {
  const bucket = newTokenBucket(options);
  return { when: () => bucket.reserve(), forget() {}, numRequeues: () => 0 };
}

/** The longest wait that any of them asks for. */
export function longestOf<K>(...limiters: readonly RateLimiter<K>[]): RateLimiter<K> {
  return {
    when: (key) => Math.max(...limiters.map((limiter) => limiter.when(key))),
    forget: (key) => {
      for (const limiter of limiters) limiter.forget(key);
    },
    numRequeues: (key) => Math.max(...limiters.map((limiter) => limiter.numRequeues(key))),
  };
}

/** What controllers use: 5 ms to 1,000 s for each key, 10 a second and 100 at once for all. */
export function defaultControllerRateLimiter<K>(clock: Clock): RateLimiter<K> {
  return longestOf(exponentialBackoff<K>(5, 1_000_000), overallBucket<K>({ qps: 10, burst: 100, clock }));
}
