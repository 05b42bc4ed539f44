import type { KubeObject } from "./types.ts";

/** `namespace/name`, or `name` alone for a cluster-scoped object. */
export type ObjectKey = string;

/** An absent name counts as empty, so the key of an object with only a generateName is `namespace/`. */
export function keyOf(object: Pick<KubeObject, "metadata">): ObjectKey {
  return toKey(object.metadata.namespace, object.metadata.name ?? "");
}

/** @param namespace undefined or empty for a cluster-scoped object */
export function toKey(namespace: string | undefined, name: string): ObjectKey {
  return namespace ? `${namespace}/${name}` : name;
}

/** @returns namespace `""` for the key of a cluster-scoped object */
export function splitKey(key: ObjectKey): { namespace: string; name: string } {
  const slash = key.indexOf("/");
  return slash < 0 ? { namespace: "", name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
