import definitions from "../metrics.json" with { type: "json" };
import type { MetricsRegistry } from "../process/metrics/registry.ts";
import type { ClientObserver } from "./client.ts";

/**
 * Upstream's metrics of client requests, and additional ones of connections. Source: k8s.io/component-base
 * metrics/prometheus/restclient
 */
export function clientMetrics(registry: MetricsRegistry): ClientObserver {
  const requests = registry.counter(definitions.rest_client_requests_total);
  const latency = registry.histogram(definitions.rest_client_request_duration_seconds);
  const waited = registry.histogram(definitions.rest_client_rate_limiter_duration_seconds);
  const connections = registry.gauge(definitions.rest_client_connections);
  const waiting = registry.gauge(definitions.rest_client_stream_queue_length);
  const streamWaits = registry.histogram(definitions.rest_client_stream_wait_duration_seconds);
  return {
    requested(method, host, code, latencyMs) {
      requests.labels(code, method, host).inc();
      latency.labels(method, host).observe(latencyMs / 1000);
    },
    rateLimited: (method, host, waitedMs) => waited.labels(method, host).observe(waitedMs / 1000),
    pool: (host) => ({
      waiting: (change) => waiting.labels(host).inc(change),
      waited: (ms) => streamWaits.labels(host).observe(ms / 1000),
      connections: (change) => connections.labels(host).inc(change),
    }),
  };
}
