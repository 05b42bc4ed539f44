import { keyOf, type ObjectKey } from "../objects/meta/object-key.ts";
import { parseResourceVersion } from "../objects/meta/resource-version.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { SharedInformer } from "./shared-informer.ts";

/**
 * An informer's cache combined with this process' own writes since. A controller that acts on a state older than its last write
 * would revert that write or repeat work.
 * Source: pv_controller_base.go storeObjectUpdate
 */
export interface Newest<T> {
  get(key: ObjectKey): T | undefined;
  list(): Iterable<T>;
  /** Records the result of a write. Ignored when a newer version is known or the object was deleted. */
  written(object: T): void;
}

/** Follows the informer through a separate handler. */
export function newNewest<T extends KubeObject>(informer: SharedInformer<T>): Newest<T> {
  const objects = new Map<ObjectKey, T>();
  const take = (object: T): void => {
    const known = objects.get(keyOf(object));
    if (known === undefined || known.metadata.uid !== object.metadata.uid || versionOf(object) >= versionOf(known))
      objects.set(keyOf(object), object);
  };
  const updated = (old: T, now: T): void => {
    // A lower version means that etcd was restored: writes made since are lost.
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
