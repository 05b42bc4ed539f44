import type { SharedInformer } from "../informers/shared-informer.ts";
import { keyOf, type ObjectKey, toKey } from "../meta/object-key.ts";
import { controllerOf } from "../meta/owner-references.ts";
import type { KubeObject } from "../meta/types.ts";

/** Turns what happens in the cluster into keys to look at. */
export interface Source {
  start(queue: SourceQueue): void;
  waitForSync(signal: AbortSignal): Promise<void>;
}

export interface SourceQueue {
  enqueue(key: ObjectKey): void;
  enqueueAfter(key: ObjectKey, delayMs: number): void;
}

/** Every object's own key, whatever happened to it. @param relevant leaves out changes that cannot matter. */
export function enqueueSelf<T extends KubeObject>(
  informer: SharedInformer<T>,
  relevant: (old: T, now: T) => boolean = () => true,
): Source {
  return enqueueMapped(
    informer,
    (object) => [keyOf(object)],
    (old, now) => relevant(old, now),
  );
}

/** The key of the controlling owner, if it is of this kind; of the old one too when the owner changed. */
export function enqueueControllerOwner<T extends KubeObject>(informer: SharedInformer<T>, kind: string): Source {
  return enqueueMapped(informer, ({ metadata }) => {
    const owner = controllerOf({ metadata });
    return owner === undefined || owner.kind !== kind ? [] : [toKey(metadata.namespace, owner.name)];
  });
}

/** Any keys that a function gives for an object: for both its old and its new state when it changed. */
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
          // Once each: a worker may have the key before it is added again, and would look at it twice.
          if (relevant(old, now)) for (const key of new Set([...keysOf(old), ...keysOf(now)])) enqueue(key);
        },
        deleted: enqueueAll,
      });
    },
    waitForSync: (signal) => informer.waitForSync(signal),
  };
}

/** Only waits: for a lister that reconcile reads. */
export function needsSynced<T>(informer: SharedInformer<T>): Source {
  return { start() {}, waitForSync: (signal) => informer.waitForSync(signal) };
}

/** Handlers of the caller's own, for what the functions above cannot say. */
export function enqueueBy<T extends KubeObject>(
  informer: SharedInformer<T>,
  handlerOf: (queue: SourceQueue) => Parameters<SharedInformer<T>["addHandler"]>[0],
): Source {
  return {
    start: (queue) => void informer.addHandler(handlerOf(queue)),
    waitForSync: (signal) => informer.waitForSync(signal),
  };
}
