/** Source: pkg/registry/core/service/ipallocator/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import type { ClusterIpMetrics } from "../registry/config.ts";

export function newClusterIpMetrics(registry: MetricsRegistry): ClusterIpMetrics {
  const allocated = registry.gauge(definitions.kube_apiserver_clusterip_allocator_allocated_ips);
  const available = registry.gauge(definitions.kube_apiserver_clusterip_allocator_available_ips);
  const allocations = registry.counter(definitions.kube_apiserver_clusterip_allocator_allocation_total);
  const errors = registry.counter(definitions.kube_apiserver_clusterip_allocator_allocation_errors_total);
  return {
    used(cidr, used, free) {
      allocated.labels(cidr).set(used);
      available.labels(cidr).set(free);
    },
    allocated: (cidr) => allocations.labels(cidr).inc(),
    failed: (cidr) => errors.labels(cidr).inc(),
  };
}
