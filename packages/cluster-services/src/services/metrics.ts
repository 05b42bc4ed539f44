import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };

/** kube-proxy's metrics of its iptables mode, and one that it does not have. Source: pkg/proxy/metrics/metrics.go */
export function newProxyMetrics(metrics: MetricsRegistry) {
  return {
    syncSeconds: metrics.histogram(definitions.kubeproxy_sync_proxy_rules_duration_seconds),
    programmingSeconds: metrics.histogram(definitions.kubeproxy_network_programming_duration_seconds),
    lastSync: metrics.gauge(definitions.kubeproxy_sync_proxy_rules_last_timestamp_seconds),
    lastQueued: metrics.gauge(definitions.kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds),
    endpointChanges: metrics.counter(definitions.kubeproxy_sync_proxy_rules_endpoint_changes_total),
    serviceChanges: metrics.counter(definitions.kubeproxy_sync_proxy_rules_service_changes_total),
    restoreFailures: metrics.counter(definitions.kubeproxy_sync_proxy_rules_iptables_restore_failures_total),
    refused: metrics.gauge(definitions.coxswain_services_refused_services),
    rules: metrics.gauge(definitions.kubeproxy_sync_proxy_rules_iptables_total),
  };
}

export type ProxyMetrics = ReturnType<typeof newProxyMetrics>;
