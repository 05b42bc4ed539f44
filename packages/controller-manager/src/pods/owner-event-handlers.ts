import type { SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { InformerHandler, SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { isReady } from "./pod-state.ts";

/** Owners of one kind, with callbacks for events of the objects they control. */
export interface Ownership<T extends KubeObject, O extends KubeObject> {
  readonly owners: SharedInformer<T>;
  selectorOf(owner: T): LabelSelector;
  /** A controlled object was added; used for expectations. */
  created?(key: ObjectKey): void;
  /** A controlled object is terminating or deleted; may be called more than once. */
  removed?(key: ObjectKey, object: O): void;
  /** A controlled object changed. The owner is enqueued in any case; this callback is for additional work. */
  changed?(owner: T, old: O, now: O, queue: SourceQueue): void;
}

/**
 * Enqueues the owners affected by an event: the controller, also the previous one when it changed, and for an orphan
 * all owners whose selector matches, so that one can adopt it.
 */
export function ownerEventHandlers<T extends KubeObject, O extends KubeObject>(
  ownership: Ownership<T, O>,
  queue: SourceQueue,
): Required<InformerHandler<O>> {
  const { owners, selectorOf } = ownership;
  const ownerOf = (object: O): T | undefined => controllingOwner(owners, object);
  /** An owner with an invalid selector selects nothing and must not prevent others from being enqueued. */
  const validSelector = (owner: T): LabelSelector | undefined => {
    try {
      return selectorOf(owner);
    } catch {
      return undefined;
    }
  };
  const enqueueMatching = (object: O): void => {
    for (const owner of owners.lister.inNamespace(object.metadata.namespace ?? "")) {
      const selector = validSelector(owner);
      if (selector?.empty === false && selector.matches(object.metadata.labels)) queue.enqueue(keyOf(owner));
    }
  };
  const deleted = (object: O): void => {
    const owner = ownerOf(object);
    if (owner === undefined) return;
    ownership.removed?.(keyOf(owner), object);
    queue.enqueue(keyOf(owner));
  };
  return {
    added(object) {
      if (object.metadata.deletionTimestamp) return deleted(object); // first seen while terminating
      if (controllerOf(object) === undefined) return enqueueMatching(object);
      const owner = ownerOf(object);
      if (owner === undefined) return;
      ownership.created?.(keyOf(owner));
      queue.enqueue(keyOf(owner));
    },
    updated(old, now) {
      if (old === now) return; // a resync
      if (now.metadata.deletionTimestamp) {
        deleted(now);
        if (isRelabelled(old, now)) deleted(old);
        return;
      }
      const moved = controllerOf(old)?.uid !== controllerOf(now)?.uid;
      const before = moved ? ownerOf(old) : undefined;
      if (before !== undefined) queue.enqueue(keyOf(before));
      if (controllerOf(now) === undefined) {
        if (moved || isRelabelled(old, now)) enqueueMatching(now);
        return;
      }
      const owner = ownerOf(now);
      if (owner === undefined) return;
      queue.enqueue(keyOf(owner));
      ownership.changed?.(owner, old, now, queue);
    },
    deleted,
  };
}

function isRelabelled({ metadata: old }: KubeObject, { metadata: now }: KubeObject): boolean {
  return !deepEqual(old.labels ?? {}, now.labels ?? {});
}

/**
 * A `changed` callback for owners with minReadySeconds: enqueues the owner when the Pod becomes available. One second
 * is added because the condition's timestamp is in whole seconds.
 */
export function enqueueWhenAvailable<T extends KubeObject>(
  minReadySecondsOf: (owner: T) => number,
): NonNullable<Ownership<T, Pod>["changed"]> {
  return (owner, old, now, queue) => {
    const minReadySeconds = minReadySecondsOf(owner);
    if (minReadySeconds > 0 && !isReady(old) && isReady(now)) queue.enqueueAfter(keyOf(owner), (minReadySeconds + 1) * 1000);
  };
}

/** The owner named by the controller reference; undefined when it is of another kind, not cached, or has a different uid. */
export function controllingOwner<T extends KubeObject>(owners: SharedInformer<T>, object: KubeObject): T | undefined {
  const ref = controllerOf(object);
  if (ref?.kind !== owners.ref.kind) return undefined;
  const owner = owners.lister.get(toKey(object.metadata.namespace, ref.name));
  return owner?.metadata.uid === ref.uid ? owner : undefined;
}
