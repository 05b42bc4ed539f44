import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

/** Health of the zones and evictions in them. The label is the zone's key, `<region>:\0:<zone>`. */
export interface NodeLifecycleMetrics {
  evicted(zone: string): void;
  zone(zone: string, ready: number, notReady: number): void;
  /** The zone has no nodes any more. */
  zoneGone(zone: string): void;
}

/** Source: pkg/controller/nodelifecycle/metrics.go */
export function newNodeLifecycleMetrics(registry: MetricsRegistry): NodeLifecycleMetrics {
  const labels = ["zone"];
  const health = registry.gauge({
    name: "node_collector_zone_health",
    help: "Gauge measuring percentage of healthy nodes per zone.",
    labels,
  });
  const size = registry.gauge({
    name: "node_collector_zone_size",
    help: "Gauge measuring number of registered Nodes per zones.",
    labels,
  });
  const unhealthy = registry.gauge({
    name: "node_collector_unhealthy_nodes_in_zone",
    help: "Gauge measuring number of not Ready Nodes per zones.",
    labels,
  });
  const evictions = registry.counter({
    name: "node_collector_evictions_number",
    help: "Number of Node evictions that happened since current instance of NodeController started.",
    labels,
  });
  const set = (zone: string, ready: number, notReady: number): void => {
    const count = ready + notReady;
    size.labels(zone).set(count);
    health.labels(zone).set(count === 0 ? 100 : (100 * ready) / count);
    unhealthy.labels(zone).set(notReady);
  };
  return { evicted: (zone) => evictions.labels(zone).inc(), zone: set, zoneGone: (zone) => set(zone, 0, 0) };
}
