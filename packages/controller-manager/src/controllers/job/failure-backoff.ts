import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import { exponentialBackoff, type RateLimiter } from "@coxswain/apimachinery/workqueue/rate-limiters";

/** Source: pkg/controller/job/job_controller.go DefaultJobBackOff, MaxJobBackOff */
const baseMs = 10_000;
const maxMs = 360_000;

/** How long Jobs wait after errors. */
export const jobRateLimiter = (): RateLimiter<ObjectKey> => exponentialBackoff(baseMs, maxMs);

/**
 * How long a Job whose Pods fail waits for the next one: the first failure is replaced at once, the second after 10 s,
 * then 20 s, …, 6 min; a Pod that succeeds starts it over.
 */
export interface FailureBackoff {
  /** One more look at the Job found new failures. @returns what `delayMs` is from now on */
  failed(key: ObjectKey): number;
  /** How long the next Pod that fails is not looked at. */
  delayMs(key: ObjectKey): number;
  forget(key: ObjectKey): void;
}

export function newFailureBackoff(): FailureBackoff {
  const limiter = jobRateLimiter();
  const delays = new Map<ObjectKey, number>();
  return {
    failed(key) {
      const delay = limiter.when(key);
      delays.set(key, delay);
      return delay;
    },
    delayMs: (key) => delays.get(key) ?? 0,
    forget(key) {
      limiter.forget(key);
      delays.delete(key);
    },
  };
}
