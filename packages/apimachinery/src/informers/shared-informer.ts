import type { Client } from "../client/client.ts";
import { deepEqual } from "../objects/meta/deep-equal.ts";
import { formatGroupResource, type ResourceRef } from "../objects/meta/group-version.ts";
import { keyOf, type ObjectKey } from "../objects/meta/object-key.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { Clock, Timer } from "../process/clock/clock.ts";
import { Pace, type Steps } from "../process/event-loop/steps.ts";
import { type LongWork, runSteps } from "../process/event-loop/turns.ts";
import type { Logger } from "../process/logging/logger.ts";
import { type Lister, newLister } from "./lister.ts";
import type { Reconnection } from "./reconnection.ts";
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

interface SharedInformerOptions<T> extends ReflectorTarget {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 or absent: no resync. */
  readonly resyncMs?: number | undefined;
  /** Strips an object before it is stored; may modify its argument. */
  readonly transform?: ((object: T) => T) | undefined;
  readonly random?: (() => number) | undefined;
  /** Waits while the server cannot be reached; see `runReflector`. */
  readonly reconnection?: Reconnection | undefined;
  /** Called for each logged error of a handler, an index function or the transform; for metrics. */
  readonly onFailure?: (() => void) | undefined;
  /** In which objects are stored and handlers called; undefined: at once. The handlers of one object are one piece of work. */
  readonly turns?: LongWork | undefined;
}

/** Creates an informer; it holds nothing before `run`. */
export function newSharedInformer<T extends KubeObject>(options: SharedInformerOptions<T>): SharedInformer<T> {
  const { client, clock, log, ref, resyncMs = 0, random, reconnection, turns } = options;
  const state = new InformerState(options);
  // A plain object: supervisors derive objects from it (Object.create) that replace single methods.
  return {
    ref,
    lister: state.lister,
    get synced() {
      return state.synced;
    },
    addHandler: (handler) => state.addHandler(handler),
    addIndex: (name, index) => state.addIndex(name, index),
    waitForSync: (signal) => state.waitForSync(signal),
    async run(signal) {
      const resyncing: Timer | undefined = resyncMs > 0 ? clock.every(resyncMs, () => state.resync()) : undefined;
      try {
        await runReflector<T>({ client, target: options, sink: state, clock, log, signal, random, reconnection, turns });
      } finally {
        state.end();
        resyncing?.cancel();
      }
    },
  };
}

/** Objects of a list that are only looked up between two yields. */
const keysPerStep = 1000;

/** State of an informer: the objects, the handlers, and whether the first list has arrived. */
class InformerState<T extends KubeObject> {
  readonly #options: SharedInformerOptions<T>;
  readonly #store = newObjectStore<T>();
  readonly #handlers = new Set<InformerHandler<T>>();
  /** Wrapped index functions by the original one, because the store compares identities. */
  readonly #guardedIndexes = new WeakMap<IndexFunction<T>, IndexFunction<T>>();
  readonly #firstList = Promise.withResolvers<void>();
  #synced = false;

  constructor(options: SharedInformerOptions<T>) {
    this.#options = options;
    this.#firstList.promise.catch(() => {}); // avoids an unhandled rejection
  }

  get lister(): Lister<T> {
    return newLister(this.#store);
  }

  get synced(): boolean {
    return this.#synced;
  }

  addHandler(handler: InformerHandler<T>): () => undefined {
    for (const object of this.#store.list()) this.#callSafely(object, () => handler.added?.(object));
    this.#handlers.add(handler);
    return () => void this.#handlers.delete(handler);
  }

  addIndex(name: string, index: IndexFunction<T>): void {
    const guarded = this.#guardedIndexes.getOrInsertComputed(index, () => (object: T) => {
      try {
        return index(object);
      } catch (err) {
        this.#failed("an object cannot be indexed; the index leaves it out", err, object);
        return [];
      }
    });
    this.#store.addIndex(name, guarded);
  }

  waitForSync(signal: AbortSignal): Promise<void> {
    if (this.#synced) return Promise.resolve();
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const onAbort = (): void => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#firstList.promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
  }

  /** Rejects the pending promises of the first list. */
  end(): void {
    this.#firstList.reject(new Error(`the informer of ${this.#options.ref.resource} has ended`));
  }

  set(received: T): void {
    this.#set(this.#transform(received));
  }

  delete(last: T): void {
    this.#remove(this.#transform(last));
  }

  /**
   * In turns: an object may concern thousands of others, and some handlers compare it with all of them.
   * @param isOtherHistory whether equal resourceVersions may mean different states (etcd was restored)
   */
  replace(objects: readonly T[], isOtherHistory: boolean): void | Promise<void> {
    return runSteps(this.#options.turns, this.#replacing(objects, isOtherHistory));
  }

  *#replacing(objects: readonly T[], isOtherHistory: boolean): Steps<void> {
    const present = new Set<ObjectKey>();
    const pace = new Pace(keysPerStep);
    for (const object of objects) {
      present.add(keyOf(object));
      if (pace.isDue()) yield;
    }
    for (const key of [...this.#store.keys()]) {
      const last = present.has(key) ? undefined : this.#store.get(key);
      if (last !== undefined) this.#remove(last);
      if (last !== undefined || pace.isDue()) yield;
    }
    for (const received of objects) {
      if (this.#merge(received, isOtherHistory) || pace.isDue()) yield;
    }
    if (this.#synced) return;
    this.#synced = true;
    this.#firstList.resolve();
  }

  /** @returns whether handlers were called */
  #merge(received: T, isOtherHistory: boolean): boolean {
    const before = this.#store.get(keyOf(received));
    const same =
      before !== undefined &&
      before.metadata.resourceVersion === received.metadata.resourceVersion &&
      before.metadata.uid === received.metadata.uid;
    if (same && !isOtherHistory) return false;
    const object = this.#transform(received);
    if (same && deepEqual(before, object)) return false;
    this.#set(object);
    return true;
  }

  #set(object: T): void {
    const before = this.#store.get(keyOf(object));
    if (before === undefined) {
      this.#store.set(object);
      this.#notify(object, (handler) => handler.added?.(object));
    } else if (before.metadata.uid !== object.metadata.uid) {
      this.#remove(before);
      this.#store.set(object);
      this.#notify(object, (handler) => handler.added?.(object));
    } else {
      this.#store.set(object);
      this.#notify(object, (handler) => handler.updated?.(before, object));
    }
  }

  #remove(last: T): void {
    if (this.#store.delete(keyOf(last)) === undefined) return;
    this.#notify(last, (handler) => handler.deleted?.(last));
  }

  resync(): void {
    for (const object of this.#store.list()) this.#notify(object, (handler) => handler.updated?.(object, object));
  }

  // An object that some code fails on must not keep later ones from the store and from other handlers.
  #failed(message: string, err: unknown, object: T): void {
    const { log, ref, onFailure } = this.#options;
    log.error(message, err, { resource: formatGroupResource(ref), object: keyOf(object) });
    onFailure?.();
  }

  #callSafely(object: T, call: () => void): void {
    try {
      call();
    } catch (err) {
      this.#failed("informer handler failed", err, object);
    }
  }

  #notify(object: T, call: (handler: InformerHandler<T>) => void): void {
    for (const handler of this.#handlers) this.#callSafely(object, () => call(handler));
  }

  #transform(object: T): T {
    try {
      return this.#options.transform?.(object) ?? object;
    } catch (err) {
      this.#failed("an object cannot be made smaller; it is kept as it came", err, object);
      return object;
    }
  }
}
