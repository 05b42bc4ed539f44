import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };

export function newIngressMetrics(metrics: MetricsRegistry) {
  return {
    requests: metrics.counter(definitions.coxswain_ingress_requests_total),
    seconds: metrics.histogram(definitions.coxswain_ingress_request_duration_seconds),
    connections: metrics.gauge(definitions.coxswain_ingress_connections),
    refused: metrics.counter(definitions.coxswain_ingress_refused_total),
    retries: metrics.counter(definitions.coxswain_ingress_retries_total),
    upgrades: metrics.gauge(definitions.coxswain_ingress_upgraded_connections),
  };
}

export type IngressMetrics = ReturnType<typeof newIngressMetrics>;
