import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };

export function newPodNetworkMetrics(metrics: MetricsRegistry) {
  return {
    active: metrics.gauge(definitions.coxswain_pod_network_active),
    routes: metrics.gauge(definitions.coxswain_pod_network_routes),
    problems: metrics.gauge(definitions.coxswain_pod_network_problems),
    syncSeconds: metrics.histogram(definitions.coxswain_pod_network_sync_duration_seconds),
    failures: metrics.counter(definitions.coxswain_pod_network_sync_failures_total),
  };
}

export type PodNetworkMetrics = ReturnType<typeof newPodNetworkMetrics>;
