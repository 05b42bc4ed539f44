/** Metrics of storage and watch caches; `server/storage-metrics.ts` exports them under upstream's names. */
export interface StorageMetrics {
  /** @param type `*core.Pod`, or `*[]core.Pod` for lists */
  etcdRequest(operation: string, type: string, seconds: number): void;
  /** @param count -1: unknown */
  objects(resource: string, count: number): void;
  /** Number of objects attached to a lease when the next one was granted. */
  leaseObjects(count: number): void;
  databaseSize(endpoint: string, bytes: number): void;
  /**
   * Number of progress notifications on the watch that feeds the caches of this type.
   * @param count called on each scrape
   */
  bookmarks(type: string, count: () => number): void;
  terminatedWatcher(resource: string): void;
  initialEvents(resource: string, count: number): void;
  /** The capacity of a resource's change history was set. @param before the previous capacity; 0: the history is new */
  cacheCapacity(resource: string, capacity: number, before: number): void;
  /** A cache dispatched a change to its watchers. */
  dispatched(resource: string): void;
  /**
   * A list was answered from a cache.
   * @param prefix `/services/specs`
   * @param index `f:spec.nodeName` when that found the objects, or `""`
   */
  cacheList(prefix: string, index: string, fetched: number, returned: number): void;
  /** A list was read from etcd, also when it failed before its end. @param evaluated objects that were compared with the selectors */
  storageList(resource: string, fetched: number, evaluated: number, returned: number): void;
}

/** Upstream's label is the name of its Go type: the group's package and the kind. */
export function goTypeName(group: string, kind: string, isBuiltIn: boolean): string {
  if (!isBuiltIn) return "*unstructured.Unstructured";
  return `*${group === "" ? "core" : group.split(".")[0]}.${kind}`;
}
