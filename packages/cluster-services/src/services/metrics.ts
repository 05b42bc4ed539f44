import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

/** kube-proxy's metrics of its iptables mode, and one that it does not have. Source: pkg/proxy/metrics/metrics.go */
export function newProxyMetrics(metrics: MetricsRegistry) {
  return {
    syncSeconds: metrics.histogram({
      name: "kubeproxy_sync_proxy_rules_duration_seconds",
      help: "SyncProxyRules latency in seconds",
      buckets: Array.from({ length: 15 }, (_, i) => 0.001 * 2 ** i),
    }),
    programmingSeconds: metrics.histogram({
      name: "kubeproxy_network_programming_duration_seconds",
      help: "In Cluster Network Programming Latency in seconds",
      buckets: [
        ...[0, 0.25, 0.5, 0.75, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60],
        ...[70, 80, 90, 100, 110, 120, 150, 180, 210, 240, 270, 300],
      ],
    }),
    lastSync: metrics.gauge({
      name: "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
      help: "The last time proxy rules were successfully synced",
    }),
    lastQueued: metrics.gauge({
      name: "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
      help: "The last time a sync of proxy rules was queued",
    }),
    endpointChanges: metrics.counter({
      name: "kubeproxy_sync_proxy_rules_endpoint_changes_total",
      help: "Cumulative proxy rules Endpoint changes",
    }),
    serviceChanges: metrics.counter({
      name: "kubeproxy_sync_proxy_rules_service_changes_total",
      help: "Cumulative proxy rules Service changes",
    }),
    restoreFailures: metrics.counter({
      name: "kubeproxy_sync_proxy_rules_iptables_restore_failures_total",
      help: "Cumulative proxy iptables restore failures",
    }),
    refused: metrics.gauge({
      name: "coxswain_services_refused_services",
      help: "Number of Services that have no rules because iptables refuses them",
      labels: ["family"],
    }),
    rules: metrics.gauge({
      name: "kubeproxy_sync_proxy_rules_iptables_total",
      help: "Number of proxy iptables rules programmed",
      labels: ["table"],
    }),
  };
}

export type ProxyMetrics = ReturnType<typeof newProxyMetrics>;
