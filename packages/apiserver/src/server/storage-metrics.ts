/** Storage metrics under upstream's names. Source: k8s.io/apiserver pkg/storage/etcd3/metrics, pkg/storage/cacher/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { StorageMetrics } from "../storage/metrics.ts";

const seconds = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];

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
      name: "etcd_bookmark_counts",
      help: "Number of etcd bookmarks (progress notify events) split by kind.",
      labels: ["resource"],
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
}

/** Registers the metrics. */
function register(registry: MetricsRegistry) {
  return {
    requests: registry.histogram({
      name: "etcd_request_duration_seconds",
      help: "Etcd request latency in seconds for each operation and object type.",
      labels: ["operation", "type"],
      buckets: seconds,
    }),
    objects: registry.gauge({
      name: "apiserver_storage_objects",
      help: "Number of stored objects at the time of last check split by kind.",
      labels: ["resource"],
      stability: "STABLE",
    }),
    objectsDeprecated: registry.gauge({
      name: "etcd_object_counts",
      deprecatedSince: "1.22.0",
      help: "Number of stored objects at the time of last check split by kind. This metric is replaced by apiserver_storage_object_counts.",
      labels: ["resource"],
    }),
    leaseObjects: registry.histogram({
      name: "etcd_lease_object_counts",
      help: "Number of objects attached to a single etcd lease.",
      buckets: [10, 50, 100, 500, 1000, 2500, 5000],
    }),
    size: registry.gauge({
      name: "etcd_db_total_size_in_bytes",
      help: "Total size of the etcd database file physically allocated in bytes.",
      labels: ["endpoint"],
    }),
    terminated: registry.counter({
      name: "apiserver_terminated_watchers_total",
      help: "Counter of watchers closed due to unresponsiveness broken by resource type.",
      labels: ["resource"],
    }),
    initial: registry.counter({
      name: "apiserver_init_events_total",
      help: "Counter of init events processed in watchcache broken by resource type.",
      labels: ["resource"],
    }),
    dispatched: registry.counter({
      name: "apiserver_watch_cache_events_dispatched_total",
      help: "Counter of events dispatched in watch cache broken by resource type.",
      labels: ["resource"],
    }),
    capacity: registry.gauge({
      name: "watch_cache_capacity",
      help: "Total capacity of watch cache broken by resource type.",
      labels: ["resource"],
    }),
    increases: registry.counter({
      name: "watch_cache_capacity_increase_total",
      help: "Total number of watch cache capacity increase events broken by resource type.",
      labels: ["resource"],
    }),
    decreases: registry.counter({
      name: "watch_cache_capacity_decrease_total",
      help: "Total number of watch cache capacity decrease events broken by resource type.",
      labels: ["resource"],
    }),
    lists: registry.counter({
      name: "apiserver_cache_list_total",
      help: "Number of LIST requests served from watch cache",
      labels: ["resource_prefix", "index"],
    }),
    fetchedObjects: registry.counter({
      name: "apiserver_cache_list_fetched_objects_total",
      help: "Number of objects read from watch cache in the course of serving a LIST request",
      labels: ["resource_prefix", "index"],
    }),
    returnedObjects: registry.counter({
      name: "apiserver_cache_list_returned_objects_total",
      help: "Number of objects returned for a LIST request from watch cache",
      labels: ["resource_prefix"],
    }),
  };
}
