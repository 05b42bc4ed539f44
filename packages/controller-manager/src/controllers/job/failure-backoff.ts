import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { exponentialBackoff, type RateLimiter } from "@coxswain/apimachinery/workqueue/rate-limiters";

/** Source: pkg/controller/job/job_controller.go DefaultJobBackOff, MaxJobBackOff */
const baseMs = 10_000;
const maxMs = 360_000;

/** Rate limiter for Job keys whose reconciliation failed. */
export const jobRateLimiter = (): RateLimiter<ObjectKey> => exponentialBackoff(baseMs, maxMs);

/**
 * Delay before failed Pods of a Job are replaced: none for the first failure, 10 s for the second, then 20 s and so on up to
 * 6 minutes. A Pod that succeeds resets the delay.
 */
export interface FailureBackoff {
  /**
   * Records that a reconciliation found new Pod failures.
   * @returns the new delay in ms, which `delayMs` returns from now on
   */
  failed(key: ObjectKey): number;
  /** Delay in ms before the Job is enqueued for a Pod that failed; 0 when no failure is recorded. */
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
