/** Storage metrics under upstream's names. Source: k8s.io/apiserver pkg/storage/etcd3/metrics, pkg/storage/cacher/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import type { StorageMetrics } from "../storage/metrics.ts";

/** @param counted called with each count of stored objects */
export function newStorageMetrics(
  registry: MetricsRegistry,
  counted?: (resource: string, count: number) => void,
): StorageMetrics {
  return new RegisteredStorageMetrics(registry, counted);
}

class RegisteredStorageMetrics implements StorageMetrics {
  readonly #metrics: ReturnType<typeof register>;
  readonly #counted: ((resource: string, count: number) => void) | undefined;
  readonly #bookmarks = new Map<string, () => number>();

  constructor(registry: MetricsRegistry, counted?: (resource: string, count: number) => void) {
    this.#metrics = register(registry);
    this.#counted = counted;
    registry.gauge({
      ...definitions.etcd_bookmark_counts,
      collect: (gauge) => {
        for (const [type, count] of this.#bookmarks) if (count() > 0) gauge.labels(type).set(count());
      },
    });
  }

  etcdRequest(operation: string, type: string, took: number): void {
    this.#metrics.requests.labels(operation, type).observe(took);
  }

  objects(resource: string, count: number): void {
    this.#metrics.objects.labels(resource).set(count);
    this.#metrics.objectsDeprecated.labels(resource).set(count);
    this.#counted?.(resource, count);
  }

  leaseObjects(count: number): void {
    this.#metrics.leaseObjects.observe(count);
  }

  databaseSize(endpoint: string, bytes: number): void {
    this.#metrics.size.labels(endpoint).set(bytes);
  }

  bookmarks(type: string, count: () => number): void {
    this.#bookmarks.set(type, count);
  }

  terminatedWatcher(resource: string): void {
    this.#metrics.terminated.labels(resource).inc();
  }

  initialEvents(resource: string, count: number): void {
    this.#metrics.initial.labels(resource).inc(count);
  }

  dispatched(resource: string): void {
    this.#metrics.dispatched.labels(resource).inc();
  }

  cacheCapacity(resource: string, now: number, before: number): void {
    this.#metrics.capacity.labels(resource).set(now);
    if (before > 0) (now > before ? this.#metrics.increases : this.#metrics.decreases).labels(resource).inc();
  }

  cacheList(prefix: string, index: string, fetched: number, returned: number): void {
    this.#metrics.lists.labels(prefix, index).inc();
    this.#metrics.fetchedObjects.labels(prefix, index).inc(fetched);
    this.#metrics.returnedObjects.labels(prefix).inc(returned);
  }

  storageList(resource: string, fetched: number, evaluated: number, returned: number): void {
    this.#metrics.storageLists.labels(resource).inc();
    this.#metrics.storageFetched.labels(resource).inc(fetched);
    this.#metrics.storageEvaluated.labels(resource).inc(evaluated);
    this.#metrics.storageReturned.labels(resource).inc(returned);
  }
}

function register(registry: MetricsRegistry) {
  return {
    requests: registry.histogram(definitions.etcd_request_duration_seconds),
    objects: registry.gauge(definitions.apiserver_storage_objects),
    objectsDeprecated: registry.gauge(definitions.etcd_object_counts),
    leaseObjects: registry.histogram(definitions.etcd_lease_object_counts),
    size: registry.gauge(definitions.etcd_db_total_size_in_bytes),
    terminated: registry.counter(definitions.apiserver_terminated_watchers_total),
    initial: registry.counter(definitions.apiserver_init_events_total),
    dispatched: registry.counter(definitions.apiserver_watch_cache_events_dispatched_total),
    capacity: registry.gauge(definitions.watch_cache_capacity),
    increases: registry.counter(definitions.watch_cache_capacity_increase_total),
    decreases: registry.counter(definitions.watch_cache_capacity_decrease_total),
    lists: registry.counter(definitions.apiserver_cache_list_total),
    fetchedObjects: registry.counter(definitions.apiserver_cache_list_fetched_objects_total),
    returnedObjects: registry.counter(definitions.apiserver_cache_list_returned_objects_total),
    storageLists: registry.counter(definitions.apiserver_storage_list_total),
    storageFetched: registry.counter(definitions.apiserver_storage_list_fetched_objects_total),
    storageEvaluated: registry.counter(definitions.apiserver_storage_list_evaluated_objects_total),
    storageReturned: registry.counter(definitions.apiserver_storage_list_returned_objects_total),
  };
}
