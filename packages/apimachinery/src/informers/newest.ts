import { keyOf, type ObjectKey } from "../meta/object-key.ts";
import { parseResourceVersion } from "../meta/resource-version.ts";
import type { KubeObject } from "../meta/types.ts";
import type { SharedInformer } from "./shared-informer.ts";

/**
 * What an informer knows, and what this process has written since: who acts on an older state than its own last write
 * undoes it, or mends what is not broken.
 * Source: pv_controller_base.go storeObjectUpdate
 */
export interface Newest<T> {
  get(key: ObjectKey): T | undefined;
  list(): Iterable<T>;
  /** Takes what a write gave back; older than what is known, or of an object that is gone, it is not kept. */
  written(object: T): void;
}

export function newNewest<T extends KubeObject>(informer: SharedInformer<T>): Newest<T> {
  const objects = new Map<ObjectKey, T>();
  const take = (object: T): void => {
    const known = objects.get(keyOf(object));
    if (known === undefined || known.metadata.uid !== object.metadata.uid || versionOf(object) >= versionOf(known))
      objects.set(keyOf(object), object);
  };
  const updated = (old: T, now: T): void => {
    // The store was restored: what was written since is gone.
    if (versionOf(now) < versionOf(old)) objects.set(keyOf(now), now);
    else take(now);
  };
  informer.addHandler({ added: take, updated, deleted: (last) => void objects.delete(keyOf(last)) });
  return {
    get: (key) => objects.get(key),
    list: () => objects.values(),
    written(object) {
      if (informer.lister.get(keyOf(object))?.metadata.uid === object.metadata.uid) take(object);
    },
  };
}

function versionOf({ metadata }: KubeObject): number {
  return parseResourceVersion(metadata.resourceVersion ?? "0");
}
