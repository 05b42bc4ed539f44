import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

export function newLoadBalancerMetrics(metrics: MetricsRegistry) {
  return {
    services: metrics.gauge({
      name: "coxswain_load_balancer_services",
      help: "Services of type LoadBalancer that this program gives addresses to.",
    }),
    without: metrics.gauge({
      name: "coxswain_load_balancer_services_without_address",
      help: "Those of them that lack an address: the pool is exhausted, or a port or an address is taken.",
    }),
    failures: metrics.counter({
      name: "coxswain_load_balancer_status_failures_total",
      help: "How often the API server refused to store the addresses of a Service.",
    }),
  };
}

export type LoadBalancerMetrics = ReturnType<typeof newLoadBalancerMetrics>;

export function newAnnouncerMetrics(metrics: MetricsRegistry) {
  return {
    announced: metrics.gauge({
      name: "coxswain_load_balancer_addresses_announced",
      help: "Addresses of the pool that this node has and answers for.",
    }),
    takeovers: metrics.counter({
      name: "coxswain_load_balancer_takeovers_total",
      help: "How often this node began to answer for an address.",
    }),
    failures: metrics.counter({
      name: "coxswain_load_balancer_announce_failures_total",
      help: "How often the kernel refused an address or the rules for it.",
    }),
  };
}

export type AnnouncerMetrics = ReturnType<typeof newAnnouncerMetrics>;
