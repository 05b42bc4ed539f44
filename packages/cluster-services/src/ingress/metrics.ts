import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

export function newIngressMetrics(metrics: MetricsRegistry) {
  return {
    requests: metrics.counter({
      name: "coxswain_ingress_requests_total",
      help: "Requests that were answered, by status code and by who answered: the backend, or the ingress itself.",
      labels: ["code", "by"],
    }),
    seconds: metrics.histogram({
      name: "coxswain_ingress_request_duration_seconds",
      help: "Time from the request's headers to the end of the response.",
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    }),
    connections: metrics.gauge({ name: "coxswain_ingress_connections", help: "Open connections of clients." }),
    refused: metrics.counter({
      name: "coxswain_ingress_refused_total",
      help: "What was refused before there was a request: connections beyond a limit, requests that cannot be parsed.",
      labels: ["reason"],
    }),
    retries: metrics.counter({
      name: "coxswain_ingress_retries_total",
      help: "Requests that were sent to another endpoint because the connection to one failed.",
    }),
    upgrades: metrics.gauge({ name: "coxswain_ingress_upgraded_connections", help: "Open WebSocket connections." }),
  };
}

export type IngressMetrics = ReturnType<typeof newIngressMetrics>;
