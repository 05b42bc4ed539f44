import type { ObjectRef } from "../decisions/decision.ts";
import type { DecisionLog, Outcome } from "../decisions/decision-log.ts";
import { outcomeOfError } from "../decisions/outcome-of-error.ts";
import { isConflict } from "../objects/errors/predicates.ts";
import type { ResourceRef } from "../objects/meta/group-version.ts";
import { type ObjectKey, splitKey } from "../objects/meta/object-key.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { Turns } from "../process/event-loop/turns.ts";
import type { Logger } from "../process/logging/logger.ts";
import type { QueueObserver } from "../workqueue/queue.ts";
import type { RateLimiter } from "../workqueue/rate-limiters.ts";
import { newRateLimitingQueue } from "../workqueue/rate-limiting-queue.ts";
import type { Source } from "./sources.ts";

/** The outcome of a successful reconcile. */
export interface Result {
  /** Reconcile again after this time even without a change. */
  readonly requeueAfterMs?: number;
  /** For `kubectl why`: what the object waits for, or what was computed; undefined: nothing is recorded. */
  readonly decision?: Outcome | undefined;
}

/** No further work until something changes. */
export const done: Result = {};

export interface Controller {
  readonly name: string;
  /** Queues a key; for changes that no source reports. */
  enqueue(key: ObjectKey): void;
  enqueueAfter(key: ObjectKey, delayMs: number): void;
  /**
   * Waits for the sources to sync, then reconciles with all workers. Resolves when `signal` is aborted and all workers have
   * returned.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Number of queued keys. */
  readonly pending: number;
}

/** Creates the observer of a queue by its name. See `workqueue/metrics.ts`. */
export type QueueMetrics = (queueName: string) => QueueObserver<ObjectKey> & { retried(): void };

export interface ControllerOptions {
  /** Name in logs and metrics, e.g. `replicaset-controller`. */
  readonly name: string;
  readonly sources: readonly Source[];
  /**
   * Moves one object towards its desired state. Level-based: must not depend on which event queued the key. Never runs
   * concurrently for one key. Errors are logged and retried with backoff.
   */
  readonly reconcile: (key: ObjectKey, signal: AbortSignal) => Promise<Result>;
  readonly workers?: number;
  /** Consecutive failures after which a key is dropped until its next event; default unlimited. */
  readonly maxRetries?: number | undefined;
  readonly limiter?: RateLimiter<ObjectKey> | undefined;
  /** Delay of queued events, so that bursts are handled in one reconcile. */
  readonly batchMs?: number | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics?: QueueMetrics | undefined;
  /** Receives the outcomes of reconciles. */
  readonly decisions?: DecisionLog | undefined;
  /** Resource of the keys' objects; default: that of the first source with one. */
  readonly resource?: ResourceRef | undefined;
  /** For keys that are not an object's namespace and name. @returns undefined when the object is not known */
  readonly objectOf?: ((key: ObjectKey) => ObjectRef | undefined) | undefined;
  /** Awaited before each reconcile; undefined: it starts immediately. */
  readonly turns?: Turns | undefined;
}

/** Connects sources through a rate-limited queue of keys to the workers that reconcile them. */
export function newController(options: ControllerOptions): Controller {
  const { name, sources, reconcile, workers = 1, maxRetries, limiter, batchMs = 0, log, clock, turns } = options;
  const metrics = options.metrics?.(name);
  const queue = newRateLimitingQueue<ObjectKey>({ clock, limiter, observer: metrics });
  const note = noting(options);
  const enqueue = (key: ObjectKey): void => (batchMs > 0 ? queue.addAfter(key, batchMs) : queue.add(key));
  for (const source of sources) source.start({ enqueue, enqueueAfter: queue.addAfter });

  const work = async (signal: AbortSignal): Promise<void> => {
    for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
      try {
        const turn = turns?.next(); // reconciles that need no I/O would block lease renewals and health probes
        if (turn !== undefined) await turn;
        const { requeueAfterMs, decision } = await reconcile(key, signal);
        // Before `forget`: an invalid delay throws and counts as a failure, so it must not reset the backoff.
        if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs);
        queue.forget(key);
        note?.(key, decision, requeueAfterMs);
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
      note?.(key, outcomeOfError(err));
      return;
    }
    // Conflicts are expected: the retry sees the other writer's state.
    if (isConflict(err)) log.v(2)?.info("reconcile lost against another writer", { controller: name, key });
    else log.error("reconcile failed", err, { controller: name, key });
    metrics?.retried();
    const delayMs = queue.addRateLimited(key);
    if (!isConflict(err)) note?.(key, outcomeOfError(err), delayMs);
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

/** @returns undefined when nothing is to be recorded */
function noting({ name, sources, decisions, clock, ...options }: ControllerOptions) {
  const resource = options.resource ?? sources.find((source) => source.resource !== undefined)?.resource;
  const objectOf = options.objectOf ?? (resource && ((key: ObjectKey) => refOf(resource, key)));
  if (!decisions?.isKeeping || objectOf === undefined) return undefined;
  return (key: ObjectKey, outcome: Outcome | undefined, delayMs?: number): void => {
    if (outcome === undefined && decisions.entries === 0) return;
    const object = objectOf(key);
    if (object === undefined) return;
    const nextTryMs = delayMs === undefined ? undefined : clock.now() + delayMs;
    if (outcome === undefined) decisions.forget(object, name);
    else decisions.record(object, name, outcome, outcome.nextTryMs ?? nextTryMs);
  };
}

function refOf({ group, resource, kind }: ResourceRef, key: ObjectKey): ObjectRef {
  return { group, resource, kind, ...splitKey(key), uid: "" };
}
