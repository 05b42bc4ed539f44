import type { Clock } from "../process/clock/clock.ts";
import { type DelayingQueue, newDelayingQueue } from "./delaying-queue.ts";
import type { QueueObserver } from "./queue.ts";
import { defaultControllerRateLimiter, type RateLimiter } from "./rate-limiters.ts";

/**
 * A delaying queue for retries of failed keys. Call `forget` after success, otherwise the next failure continues the backoff;
 * `done` is required in any case.
 * Source: k8s.io/client-go util/workqueue/rate_limiting_queue.go
 */
interface RateLimitingQueue<K> extends DelayingQueue<K> {
  /** @returns ms until the key is handed out again */
  addRateLimited(key: K): number;
  forget(key: K): void;
  numRequeues(key: K): number;
}

/** @param options.limiter default: that of controllers, exponential for each key with a limit for all */
export function newRateLimitingQueue<K>(options: {
  clock: Clock;
  limiter?: RateLimiter<K> | undefined;
  observer?: QueueObserver<K> | undefined;
}): RateLimitingQueue<K> {
  const limiter = options.limiter ?? defaultControllerRateLimiter<K>(options.clock);
  const queue = newDelayingQueue<K>(options);
  return {
    add: queue.add,
    get: queue.get,
    done: queue.done,
    addAfter: queue.addAfter,
    shutDown: queue.shutDown,
    get length() {
      return queue.length;
    },
    get shuttingDown() {
      return queue.shuttingDown;
    },
    addRateLimited(key) {
      const delayMs = limiter.when(key);
      queue.addAfter(key, delayMs);
      return delayMs;
    },
    forget: limiter.forget,
    numRequeues: limiter.numRequeues,
  };
}
