import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../../metrics.json" with { type: "json" };

/** Health of the zones and evictions in them. The label is the zone's key, `<region>:\0:<zone>`. */
export interface NodeLifecycleMetrics {
  evicted(zone: string): void;
  zone(zone: string, ready: number, notReady: number): void;
  /** The zone has no nodes any more. */
  zoneGone(zone: string): void;
}

/** Source: pkg/controller/nodelifecycle/metrics.go */
export function newNodeLifecycleMetrics(registry: MetricsRegistry): NodeLifecycleMetrics {
  const health = registry.gauge(definitions.node_collector_zone_health);
  const size = registry.gauge(definitions.node_collector_zone_size);
  const unhealthy = registry.gauge(definitions.node_collector_unhealthy_nodes_in_zone);
  const evictions = registry.counter(definitions.node_collector_evictions_number);
  const set = (zone: string, ready: number, notReady: number): void => {
    const count = ready + notReady;
    size.labels(zone).set(count);
    health.labels(zone).set(count === 0 ? 100 : (100 * ready) / count);
    unhealthy.labels(zone).set(notReady);
  };
  return { evicted: (zone) => evictions.labels(zone).inc(), zone: set, zoneGone: (zone) => set(zone, 0, 0) };
}
