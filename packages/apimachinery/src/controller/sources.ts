import type { SharedInformer } from "../informers/shared-informer.ts";
import type { ResourceRef } from "../objects/meta/group-version.ts";
import { keyOf, type ObjectKey, toKey } from "../objects/meta/object-key.ts";
import { controllerOf } from "../objects/meta/owner-references.ts";
import type { KubeObject } from "../objects/meta/types.ts";

/** Maps changes in the cluster to keys to reconcile. */
export interface Source {
  /** The resource whose objects' own keys it enqueues. */
  readonly resource?: ResourceRef;
  start(queue: SourceQueue): void;
  waitForSync(signal: AbortSignal): Promise<void>;
}

export interface SourceQueue {
  enqueue(key: ObjectKey): void;
  enqueueAfter(key: ObjectKey, delayMs: number): void;
}

/** Enqueues the key of each changed object. @param relevant filters updates */
export function enqueueSelf<T extends KubeObject>(
  informer: SharedInformer<T>,
  relevant: (old: T, now: T) => boolean = () => true,
): Source {
  const source = enqueueMapped(
    informer,
    (object) => [keyOf(object)],
    (old, now) => relevant(old, now),
  );
  return { ...source, resource: informer.ref };
}

/** Enqueues the controlling owner if it is of this kind; also the previous owner when it changed. */
export function enqueueControllerOwner<T extends KubeObject>(informer: SharedInformer<T>, kind: string): Source {
  return enqueueMapped(informer, ({ metadata }) => {
    const owner = controllerOf({ metadata });
    return owner === undefined || owner.kind !== kind ? [] : [toKey(metadata.namespace, owner.name)];
  });
}

/** Enqueues the keys that a function returns for an object; for updates those of its old and its new state. */
export function enqueueMapped<T extends KubeObject>(
  informer: SharedInformer<T>,
  keysOf: (object: T) => readonly ObjectKey[],
  relevant: (old: T, now: T) => boolean = () => true,
): Source {
  return {
    start({ enqueue }) {
      const enqueueAll = (object: T): void => {
        for (const key of keysOf(object)) enqueue(key);
      };
      informer.addHandler({
        added: enqueueAll,
        updated(old, now) {
          // Deduplicated: a worker could take the key between two additions and reconcile it twice.
          if (relevant(old, now)) for (const key of new Set([...keysOf(old), ...keysOf(now)])) enqueue(key);
        },
        deleted: enqueueAll,
      });
    },
    waitForSync: (signal) => informer.waitForSync(signal),
  };
}

/** Only waits for sync: for an informer whose lister is read by reconcile. */
export function needsSynced(informer: { waitForSync(signal: AbortSignal): Promise<void> }): Source {
  return { start() {}, waitForSync: (signal) => informer.waitForSync(signal) };
}

/** Registers custom handlers, for cases that the functions above do not cover. */
export function enqueueBy<T extends KubeObject>(
  informer: SharedInformer<T>,
  handlerOf: (queue: SourceQueue) => Parameters<SharedInformer<T>["addHandler"]>[0],
): Source {
  return {
    start: (queue) => void informer.addHandler(handlerOf(queue)),
    waitForSync: (signal) => informer.waitForSync(signal),
  };
}
