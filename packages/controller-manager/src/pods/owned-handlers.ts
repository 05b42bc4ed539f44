import type { SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { InformerHandler, SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/meta/object-key";
import { controllerOf } from "@coxswain/apimachinery/meta/owner-references";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import { isReady } from "./pod-state.ts";

/** Owners of one kind, and what they want to know of the objects that they make. */
export interface Ownership<T extends KubeObject, O extends KubeObject> {
  readonly owners: SharedInformer<T>;
  selectorOf(owner: T): LabelSelector;
  /** An object that the owner controls is there; for expectations. */
  created?(key: ObjectKey): void;
  /** An object that the owner controls is on its way out, or gone; may be told more than once. */
  removed?(key: ObjectKey, object: O): void;
  /** An object that the owner controls changed. The owner is woken in any case; this is for what it needs besides. */
  changed?(owner: T, old: O, now: O, queue: SourceQueue): void;
}

/**
 * Wakes the owner whom a change concerns: the controlling one, before and after when it changed; and for an object that
 * nobody controls all that select it, so that one may adopt it.
 */
export function ownedHandlers<T extends KubeObject, O extends KubeObject>(
  ownership: Ownership<T, O>,
  queue: SourceQueue,
): Required<InformerHandler<O>> {
  const { owners, selectorOf } = ownership;
  const ownerOf = (object: O): T | undefined => controllingOwner(owners, object);
  /** Who has a selector that cannot be read selects nothing, and keeps no other from being woken. */
  const readable = (owner: T): LabelSelector | undefined => {
    try {
      return selectorOf(owner);
    } catch {
      return undefined;
    }
  };
  const enqueueMatching = (object: O): void => {
    for (const owner of owners.lister.inNamespace(object.metadata.namespace ?? "")) {
      const selector = readable(owner);
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
      if (object.metadata.deletionTimestamp) return deleted(object); // seen for the first time on its way out
      if (controllerOf(object) === undefined) return enqueueMatching(object);
      const owner = ownerOf(object);
      if (owner === undefined) return;
      ownership.created?.(keyOf(owner));
      queue.enqueue(keyOf(owner));
    },
    updated(old, now) {
      if (old.metadata.resourceVersion === now.metadata.resourceVersion) return; // a resync
      const relabelled = !deepEqual(old.metadata.labels ?? {}, now.metadata.labels ?? {});
      if (now.metadata.deletionTimestamp) {
        deleted(now);
        if (relabelled) deleted(old);
        return;
      }
      const moved = controllerOf(old)?.uid !== controllerOf(now)?.uid;
      const before = moved ? ownerOf(old) : undefined;
      if (before !== undefined) queue.enqueue(keyOf(before));
      if (controllerOf(now) === undefined) {
        if (moved || relabelled) enqueueMatching(now);
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

/**
 * `changed` for owners whose Pods count as available only after some time: looks again when it is over. One second
 * more, since the condition's time is in whole seconds.
 */
export function wakeWhenAvailable<T extends KubeObject>(
  minReadySecondsOf: (owner: T) => number,
): NonNullable<Ownership<T, Pod>["changed"]> {
  return (owner, old, now, queue) => {
    const minReadySeconds = minReadySecondsOf(owner);
    if (minReadySeconds > 0 && !isReady(old) && isReady(now)) queue.enqueueAfter(keyOf(owner), (minReadySeconds + 1) * 1000);
  };
}

/** The owner that the controller reference names, if it is of this kind, known, and not another one under its name. */
export function controllingOwner<T extends KubeObject>(owners: SharedInformer<T>, object: KubeObject): T | undefined {
  const ref = controllerOf(object);
  if (ref?.kind !== owners.ref.kind) return undefined;
  const owner = owners.lister.get(toKey(object.metadata.namespace, ref.name));
  return owner?.metadata.uid === ref.uid ? owner : undefined;
}
