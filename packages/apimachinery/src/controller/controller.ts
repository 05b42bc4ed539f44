import type { Clock } from "../clock/clock.ts";
import { isConflict } from "../errors/predicates.ts";
import type { Logger } from "../logging/logger.ts";
import type { ObjectKey } from "../meta/object-key.ts";
import type { QueueObserver } from "../workqueue/queue.ts";
import type { RateLimiter } from "../workqueue/rate-limiters.ts";
import { newRateLimitingQueue } from "../workqueue/rate-limiting-queue.ts";
import type { Source } from "./sources.ts";
import { othersTurn } from "./turns.ts";

/** What a reconcile asks for besides having succeeded. */
export interface Result {
  /** Look again after this time, although nothing changed. */
  readonly requeueAfterMs?: number;
}

/** Nothing more to do until something changes. */
export const done: Result = {};

export interface Controller {
  readonly name: string;
  /** Looks at a key soon; for what no source sees. */
  enqueue(key: ObjectKey): void;
  enqueueAfter(key: ObjectKey, delayMs: number): void;
  /** Waits for the sources, then reconciles with all workers; resolves when `signal` is aborted and every worker is back. */
  run(signal: AbortSignal): Promise<void>;
  /** Keys that wait. */
  readonly pending: number;
}

/** Makes observers of queues, by the queue's name. See `workqueue/metrics.ts`. */
export type QueueMetrics = (queueName: string) => QueueObserver<ObjectKey> & { retried(): void };

export interface ControllerOptions {
  /** As in the logs and the metrics, e.g. `replicaset-controller`. */
  readonly name: string;
  readonly sources: readonly Source[];
  /**
   * Brings one object from what is to what should be. Looks at the state, never at which event woke it; never runs twice
   * at once for one key. A throw is logged and tried again with backoff.
   */
  readonly reconcile: (key: ObjectKey, signal: AbortSignal) => Promise<Result>;
  readonly workers?: number;
  /** After so many failures in a row a key is dropped until the next event; without a limit when absent. */
  readonly maxRetries?: number | undefined;
  readonly limiter?: RateLimiter<ObjectKey> | undefined;
  /** Events wait so long before they are looked at, so that those that come together are handled together. */
  readonly batchMs?: number | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics?: QueueMetrics | undefined;
}

/** Sources → queue of keys → reconcile, with workers and backoff. */
export function newController(options: ControllerOptions): Controller {
  const { name, sources, reconcile, workers = 1, maxRetries, limiter, batchMs = 0, log, clock } = options;
  const metrics = options.metrics?.(name);
  const queue = newRateLimitingQueue<ObjectKey>({ clock, limiter, observer: metrics });
  const enqueue = (key: ObjectKey): void => (batchMs > 0 ? queue.addAfter(key, batchMs) : queue.add(key));
  for (const source of sources) source.start({ enqueue, enqueueAfter: queue.addAfter });

  const work = async (signal: AbortSignal): Promise<void> => {
    for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
      try {
        const turn = othersTurn(clock);
        if (turn !== undefined) await turn;
        const { requeueAfterMs } = await reconcile(key, signal);
        // First: a delay that is refused is a failure like others, and must not begin the backoff anew.
        if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs);
        queue.forget(key);
      } catch (err) {
        if (!signal.aborted) failed(key, err);
      } finally {
        queue.done(key);
      }
    }
  };
  const failed = (key: ObjectKey, err: unknown): void => {
    if (maxRetries !== undefined && queue.numRequeues(key) >= maxRetries) {
      log.error("dropped from the queue after too many failures", err, { controller: name, key });
      queue.forget(key);
      return;
    }
    // To lose against another writer is daily business: what it wrote is looked at next.
    if (isConflict(err)) log.v(2)?.info("reconcile lost against another writer", { controller: name, key });
    else log.error("reconcile failed", err, { controller: name, key });
    metrics?.retried();
    queue.addRateLimited(key);
  };

  return {
    name,
    enqueue: (key) => queue.add(key),
    enqueueAfter: (key, delayMs) => queue.addAfter(key, delayMs),
    async run(signal) {
      try {
        await Promise.all(sources.map((source) => source.waitForSync(signal)));
      } catch (err) {
        if (signal.aborted) return;
        throw err;
      }
      if (signal.aborted) return;
      signal.addEventListener("abort", () => queue.shutDown(), { once: true });
      await Promise.all(Array.from({ length: Math.max(1, workers) }, () => work(signal)));
    },
    get pending() {
      return queue.length;
    },
  };
}
