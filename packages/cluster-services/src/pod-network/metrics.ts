import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

export function newPodNetworkMetrics(metrics: MetricsRegistry) {
  return {
    active: metrics.gauge({
      name: "coxswain_pod_network_active",
      help: "1 when this program makes the network of the node's pods, 0 when that is left to another one.",
    }),
    routes: metrics.gauge({
      name: "coxswain_pod_network_routes",
      help: "Routes to the pods of other nodes, by how packets get there: host-gateway or vxlan.",
      labels: ["type"],
    }),
    problems: metrics.gauge({
      name: "coxswain_pod_network_problems",
      help: "Things that keep pods from reaching each other, each of which /healthz/pod-network names.",
    }),
    syncSeconds: metrics.histogram({
      name: "coxswain_pod_network_sync_duration_seconds",
      help: "How long it took to compare the kernel's state with the Nodes and to change it.",
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    }),
    failures: metrics.counter({
      name: "coxswain_pod_network_sync_failures_total",
      help: "How often the kernel or the CNI configuration could not be changed.",
    }),
  };
}

export type PodNetworkMetrics = ReturnType<typeof newPodNetworkMetrics>;
