/** What storage and watch caches count; `server/storage-metrics.ts` shows it under upstream's names. */
export interface StorageMetrics {
  /** @param type `*core.Pod`, or `*[]core.Pod` for lists */
  etcdRequest(operation: string, type: string, seconds: number): void;
  /** @param count -1: it cannot be told */
  objects(resource: string, count: number): void;
  /** How many objects hung on a lease when the next one was granted. */
  leaseObjects(count: number): void;
  databaseSize(endpoint: string, bytes: number): void;
  /**
   * Etcd told how far the watch is that feeds the caches of these resources, when there was nothing else to tell.
   * @param count asked when the metrics are read
   */
  bookmarks(type: string, count: () => number): void;
  terminatedWatcher(resource: string): void;
  initialEvents(resource: string, count: number): void;
  /** The recent changes of a resource have room for so many now. @param before 0: it is new */
  cacheCapacity(resource: string, capacity: number, before: number): void;
  /** A change went from a cache to its watchers. */
  dispatched(resource: string): void;
  /**
   * A list was answered from a cache.
   * @param prefix `/services/specs`
   * @param index `f:spec.nodeName` when that found the objects, or `""`
   */
  cacheList(prefix: string, index: string, fetched: number, returned: number): void;
}

/** Upstream's label is the name of its Go type: the group's package and the kind. */
export function goTypeName(group: string, kind: string, isBuiltIn: boolean): string {
  if (!isBuiltIn) return "*unstructured.Unstructured";
  return `*${group === "" ? "core" : group.split(".")[0]}.${kind}`;
}
