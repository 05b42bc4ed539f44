import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };

export function newLoadBalancerMetrics(metrics: MetricsRegistry) {
  return {
    services: metrics.gauge(definitions.coxswain_load_balancer_services),
    without: metrics.gauge(definitions.coxswain_load_balancer_services_without_address),
    failures: metrics.counter(definitions.coxswain_load_balancer_status_failures_total),
  };
}

export type LoadBalancerMetrics = ReturnType<typeof newLoadBalancerMetrics>;

export function newAnnouncerMetrics(metrics: MetricsRegistry) {
  return {
    announced: metrics.gauge(definitions.coxswain_load_balancer_addresses_announced),
    takeovers: metrics.counter(definitions.coxswain_load_balancer_takeovers_total),
    failures: metrics.counter(definitions.coxswain_load_balancer_announce_failures_total),
  };
}

export type AnnouncerMetrics = ReturnType<typeof newAnnouncerMetrics>;
