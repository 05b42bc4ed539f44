import type { Client } from "../client/client.ts";
import type { Clock, Timer } from "../clock/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { deepEqual } from "../meta/deep-equal.ts";
import { formatGroupResource, type ResourceRef } from "../meta/group-version.ts";
import { keyOf } from "../meta/object-key.ts";
import type { KubeObject } from "../meta/types.ts";
import { type Lister, newLister } from "./lister.ts";
import { type ReflectorTarget, runReflector } from "./reflector.ts";
import { type IndexFunction, newObjectStore } from "./store.ts";

/** Receives changes after the lister has been updated. Objects are read-only. Errors are logged and have no other effect. */
export interface InformerHandler<T> {
  added?(object: T): void;
  /** Also called at each resync, with the same object twice. */
  updated?(old: T, now: T): void;
  /** @param last the last known state, which may be stale when the deletion itself was missed */
  deleted?(last: T): void;
}

/**
 * One list and watch of a resource, shared by many handlers. For each object every handler sees, in the server's order, `added`,
 * any number of `updated` and finally `deleted`; intermediate versions may be skipped. An object replaced under its name (another
 * uid) is reported as deleted, then added. Handlers are called sequentially in the order of registration; a late handler receives
 * all existing objects as `added` before any change.
 * Source: k8s.io/client-go tools/cache/shared_informer.go
 */
export interface SharedInformer<T> {
  readonly ref: ResourceRef;
  readonly lister: Lister<T>;
  /** True once the first list is in the store and was delivered to every handler. */
  readonly synced: boolean;
  /** @returns a function that removes the handler */
  addHandler(handler: InformerHandler<T>): () => void;
  /**
   * Adds an index of all present and future objects. No effect when the same function was added under the name, so that a
   * controller that is started again can add its indexes.
   * @throws Error for another function under an existing name
   */
  addIndex(name: string, index: IndexFunction<T>): void;
  /** Resolves when `synced`; rejects with the signal's reason, or when `run` ends first. */
  waitForSync(signal: AbortSignal): Promise<void>;
  /** Lists and watches until `signal` is aborted. To be called once. */
  run(signal: AbortSignal): Promise<void>;
}

export interface SharedInformerOptions<T> extends ReflectorTarget {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 or absent: no resync. */
  readonly resyncMs?: number | undefined;
  /** Strips an object before it is stored; may modify its argument. */
  readonly transform?: ((object: T) => T) | undefined;
  readonly random?: (() => number) | undefined;
  /** Called for each logged error of a handler, an index function or the transform; for metrics. */
  readonly onFailure?: (() => void) | undefined;
}

export function newSharedInformer<T extends KubeObject>(options: SharedInformerOptions<T>): SharedInformer<T> {
  const { client, clock, log, ref, resyncMs = 0, onFailure } = options;
  const store = newObjectStore<T>();
  const handlers = new Set<InformerHandler<T>>();
  /** By the function that was given: the store compares identities. */
  const guardedIndexes = new WeakMap<IndexFunction<T>, IndexFunction<T>>();
  let synced = false;
  const firstList = Promise.withResolvers<void>();
  firstList.promise.catch(() => {}); // avoids an unhandled rejection

  // An object that some code fails on must not keep later ones from the store and from other handlers.
  const failed = (message: string, err: unknown, object: T): void => {
    log.error(message, err, { resource: formatGroupResource(ref), object: keyOf(object) });
    onFailure?.();
  };
  const callSafely = (object: T, call: () => void): void => {
    try {
      call();
    } catch (err) {
      failed("informer handler failed", err, object);
    }
  };
  const tell = (object: T, call: (handler: InformerHandler<T>) => void): void => {
    for (const handler of handlers) callSafely(object, () => call(handler));
  };
  const transform = (object: T): T => {
    try {
      return options.transform?.(object) ?? object;
    } catch (err) {
      failed("an object cannot be made smaller; it is kept as it came", err, object);
      return object;
    }
  };
  const set = (object: T): void => {
    const before = store.get(keyOf(object));
    if (before === undefined) {
      store.set(object);
      tell(object, (handler) => handler.added?.(object));
    } else if (before.metadata.uid !== object.metadata.uid) {
      remove(before);
      store.set(object);
      tell(object, (handler) => handler.added?.(object));
    } else {
      store.set(object);
      tell(object, (handler) => handler.updated?.(before, object));
    }
  };
  const remove = (last: T): void => {
    if (store.delete(keyOf(last)) === undefined) return;
    tell(last, (handler) => handler.deleted?.(last));
  };
  const sink = {
    replace(objects: T[], isOtherHistory: boolean) {
      const present = new Set(objects.map(keyOf));
      for (const key of [...store.keys()]) {
        if (!present.has(key)) remove(store.get(key) as T);
      }
      for (const received of objects) {
        const before = store.get(keyOf(received));
        const same =
          before !== undefined &&
          before.metadata.resourceVersion === received.metadata.resourceVersion &&
          before.metadata.uid === received.metadata.uid;
        if (same && !isOtherHistory) continue;
        const object = transform(received);
        if (!same || !deepEqual(before, object)) set(object);
      }
      if (synced) return;
      synced = true;
      firstList.resolve();
    },
    set: (received: T) => set(transform(received)),
    delete: (last: T) => remove(transform(last)),
  };
  const resync = (): void => {
    for (const object of store.list()) tell(object, (handler) => handler.updated?.(object, object));
  };

  return {
    ref,
    lister: newLister(store),
    get synced() {
      return synced;
    },
    addHandler(handler) {
      for (const object of store.list()) callSafely(object, () => handler.added?.(object));
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
    addIndex(name, index) {
      const guarded = guardedIndexes.getOrInsertComputed(index, () => (object: T) => {
        try {
          return index(object);
        } catch (err) {
          failed("an object cannot be indexed; the index leaves it out", err, object);
          return [];
        }
      });
      store.addIndex(name, guarded);
    },
    waitForSync(signal) {
      if (synced) return Promise.resolve();
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const onAbort = (): void => reject(signal.reason);
        signal.addEventListener("abort", onAbort, { once: true });
        firstList.promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
      });
    },
    async run(signal) {
      const resyncing: Timer | undefined = resyncMs > 0 ? clock.every(resyncMs, resync) : undefined;
      try {
        await runReflector<T>({ client, target: options, sink, clock, log, signal, random: options.random });
      } finally {
        firstList.reject(new Error(`the informer of ${ref.resource} has ended`));
        resyncing?.cancel();
      }
    },
  };
}
