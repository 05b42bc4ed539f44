import { keyOf, type ObjectKey } from "../objects/meta/object-key.ts";
import type { KubeObject } from "../objects/meta/types.ts";

/** Returns the index values of an object; none excludes it from the index. */
export type IndexFunction<T> = (object: T) => readonly string[];

/**
 * Objects by key, with secondary indexes. Stored objects are read-only.
 * Source: k8s.io/client-go tools/cache/thread_safe_store.go
 */
export interface ObjectStore<T> {
  get(key: ObjectKey): T | undefined;
  list(): T[];
  readonly size: number;
  /** @returns the object previously stored under the key */
  set(object: T): T | undefined;
  delete(key: ObjectKey): T | undefined;
  keys(): Iterable<ObjectKey>;
  /**
   * Adds an index of all present and future objects. No effect when the same function was added under the name.
   * @throws Error for another function under an existing name
   */
  addIndex(name: string, index: IndexFunction<T>): void;
  /** @throws Error for an unknown index */
  byIndex(name: string, value: string): T[];
}

/** An empty store without indexes. The objects' keys come from their metadata. */
export function newObjectStore<T extends KubeObject>(): ObjectStore<T> {
  const objects = new Map<ObjectKey, T>();
  const indexes = new Map<string, Index<T>>();
  return {
    get: (key) => objects.get(key),
    list: () => [...objects.values()],
    get size() {
      return objects.size;
    },
    set(object) {
      const key = keyOf(object);
      const before = objects.get(key);
      objects.set(key, object);
      for (const index of indexes.values()) {
        if (before === undefined) insertInto(index, key, index.valuesOf(object), object);
        else replaceIn(index, key, before, object);
      }
      return before;
    },
    delete(key) {
      const before = objects.get(key);
      if (before === undefined) return undefined;
      objects.delete(key);
      for (const index of indexes.values()) for (const value of index.valuesOf(before)) removeFrom(index, key, before, value);
      return before;
    },
    keys: () => objects.keys(),
    addIndex(name, valuesOf) {
      const present = indexes.get(name);
      if (present?.valuesOf === valuesOf) return;
      if (present !== undefined) throw new Error(`another index named ${name} exists`);
      const index: Index<T> = { valuesOf, buckets: new Map() };
      for (const [key, object] of objects) insertInto(index, key, valuesOf(object), object);
      indexes.set(name, index);
    },
    byIndex(name, value) {
      const bucket = bucketsOf(indexes, name).get(value);
      if (bucket === undefined) return [];
      return bucket instanceof Map ? [...bucket.values()] : [bucket];
    },
  };
}

/** Objects with an index value. A single object is not put in a map: many indexes have thousands of values with one object, and a map takes 200 bytes. */
type Bucket<T> = T | Map<ObjectKey, T>;

interface Index<T> {
  readonly valuesOf: IndexFunction<T>;
  readonly buckets: Map<string, Bucket<T>>;
}

function bucketsOf<T extends KubeObject>(indexes: ReadonlyMap<string, Index<T>>, name: string): Index<T>["buckets"] {
  const index = indexes.get(name);
  if (index === undefined) throw new Error(`no index named ${name}`);
  return index.buckets;
}

/** @param key the object's */
function insertInto<T extends KubeObject>({ buckets }: Index<T>, key: ObjectKey, values: readonly string[], object: T): void {
  for (const value of values) {
    const bucket = buckets.get(value);
    if (bucket instanceof Map) bucket.set(key, object);
    else if (bucket === undefined || isSame(bucket, object)) buckets.set(value, object);
    else buckets.set(value, new Map([[keyOf(bucket), bucket] as const, [key, object] as const]));
  }
}

/** Most changes leave an object in its buckets, where it is replaced in place: removing it first would make the maps rehash repeatedly. */
function replaceIn<T extends KubeObject>(index: Index<T>, key: ObjectKey, before: T, object: T): void {
  const values = index.valuesOf(object);
  for (const [place, value] of index.valuesOf(before).entries())
    if (values[place] !== value) removeFrom(index, key, before, value);
  insertInto(index, key, values, object);
}

function removeFrom<T extends KubeObject>({ buckets }: Index<T>, key: ObjectKey, object: T, value: string): void {
  const bucket = buckets.get(value);
  if (bucket instanceof Map) {
    bucket.delete(key);
    if (bucket.size === 0) buckets.delete(value);
  } else if (bucket !== undefined && isSame(bucket, object)) buckets.delete(value);
}

/** Compares the keys of two objects without building them. */
const isSame = ({ metadata: one }: KubeObject, { metadata: other }: KubeObject): boolean =>
  one.name === other.name && (one.namespace ?? "") === (other.namespace ?? "");
