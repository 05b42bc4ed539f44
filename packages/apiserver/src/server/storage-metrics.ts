/** Storage metrics under upstream's names. Source: k8s.io/apiserver pkg/storage/etcd3/metrics, pkg/storage/cacher/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { StorageMetrics } from "../storage/metrics.ts";

const seconds = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];

/** @param counted called with each count of stored objects */
export function newStorageMetrics(
  registry: MetricsRegistry,
  counted?: (resource: string, count: number) => void,
): StorageMetrics {
  const requests = registry.histogram({
    name: "etcd_request_duration_seconds",
    help: "Etcd request latency in seconds for each operation and object type.",
    labels: ["operation", "type"],
    buckets: seconds,
  });
  const objects = registry.gauge({
    name: "apiserver_storage_objects",
    help: "Number of stored objects at the time of last check split by kind.",
    labels: ["resource"],
    stability: "STABLE",
  });
  const objectsDeprecated = registry.gauge({
    name: "etcd_object_counts",
    deprecatedSince: "1.22.0",
    help: "Number of stored objects at the time of last check split by kind. This metric is replaced by apiserver_storage_object_counts.",
    labels: ["resource"],
  });
  const leaseObjects = registry.histogram({
    name: "etcd_lease_object_counts",
    help: "Number of objects attached to a single etcd lease.",
    buckets: [10, 50, 100, 500, 1000, 2500, 5000],
  });
  const size = registry.gauge({
    name: "etcd_db_total_size_in_bytes",
    help: "Total size of the etcd database file physically allocated in bytes.",
    labels: ["endpoint"],
  });
  const bookmarks = new Map<string, () => number>();
  registry.gauge({
    name: "etcd_bookmark_counts",
    help: "Number of etcd bookmarks (progress notify events) split by kind.",
    labels: ["resource"],
    collect(gauge) {
      for (const [type, count] of bookmarks) if (count() > 0) gauge.labels(type).set(count());
    },
  });
  const terminated = registry.counter({
    name: "apiserver_terminated_watchers_total",
    help: "Counter of watchers closed due to unresponsiveness broken by resource type.",
    labels: ["resource"],
  });
  const initial = registry.counter({
    name: "apiserver_init_events_total",
    help: "Counter of init events processed in watchcache broken by resource type.",
    labels: ["resource"],
  });
  const dispatched = registry.counter({
    name: "apiserver_watch_cache_events_dispatched_total",
    help: "Counter of events dispatched in watch cache broken by resource type.",
    labels: ["resource"],
  });
  const capacity = registry.gauge({
    name: "watch_cache_capacity",
    help: "Total capacity of watch cache broken by resource type.",
    labels: ["resource"],
  });
  const increases = registry.counter({
    name: "watch_cache_capacity_increase_total",
    help: "Total number of watch cache capacity increase events broken by resource type.",
    labels: ["resource"],
  });
  const decreases = registry.counter({
    name: "watch_cache_capacity_decrease_total",
    help: "Total number of watch cache capacity decrease events broken by resource type.",
    labels: ["resource"],
  });
  const lists = registry.counter({
    name: "apiserver_cache_list_total",
    help: "Number of LIST requests served from watch cache",
    labels: ["resource_prefix", "index"],
  });
  const fetchedObjects = registry.counter({
    name: "apiserver_cache_list_fetched_objects_total",
    help: "Number of objects read from watch cache in the course of serving a LIST request",
    labels: ["resource_prefix", "index"],
  });
  const returnedObjects = registry.counter({
    name: "apiserver_cache_list_returned_objects_total",
    help: "Number of objects returned for a LIST request from watch cache",
    labels: ["resource_prefix"],
  });
  return {
    etcdRequest: (operation, type, took) => requests.labels(operation, type).observe(took),
    objects(resource, count) {
      objects.labels(resource).set(count);
      objectsDeprecated.labels(resource).set(count);
      counted?.(resource, count);
    },
    leaseObjects: (count) => leaseObjects.observe(count),
    databaseSize: (endpoint, bytes) => size.labels(endpoint).set(bytes),
    bookmarks: (type, count) => void bookmarks.set(type, count),
    terminatedWatcher: (resource) => terminated.labels(resource).inc(),
    initialEvents: (resource, count) => initial.labels(resource).inc(count),
    dispatched: (resource) => dispatched.labels(resource).inc(),
    cacheCapacity(resource, now, before) {
      capacity.labels(resource).set(now);
      if (before > 0) (now > before ? increases : decreases).labels(resource).inc();
    },
    cacheList(prefix, index, fetched, returned) {
      lists.labels(prefix, index).inc();
      fetchedObjects.labels(prefix, index).inc(fetched);
      returnedObjects.labels(prefix).inc(returned);
    },
  };
}
