import { exponentialBuckets, type MetricsRegistry } from "../process/metrics/registry.ts";
import type { ClientObserver } from "./client.ts";

/**
 * Upstream's metrics of client requests, and additional ones of connections. Source: k8s.io/component-base
 * metrics/prometheus/restclient
 */
export function clientMetrics(registry: MetricsRegistry): ClientObserver {
  const requests = registry.counter({
    name: "rest_client_requests_total",
    help: "Number of HTTP requests, partitioned by status code, method, and host.",
    labels: ["code", "method", "host"],
  });
  const latency = registry.histogram({
    name: "rest_client_request_duration_seconds",
    help: "Request latency in seconds. Broken down by verb, and host.",
    labels: ["verb", "host"],
    buckets: exponentialBuckets(0.001, 2, 10),
  });
  const waited = registry.histogram({
    name: "rest_client_rate_limiter_duration_seconds",
    help: "Client side rate limiter latency in seconds. Broken down by verb, and host.",
    labels: ["verb", "host"],
    buckets: exponentialBuckets(0.001, 2, 10),
  });
  const connections = registry.gauge({
    name: "rest_client_connections",
    help: "Number of open connections, partitioned by host.",
    labels: ["host"],
  });
  const waiting = registry.gauge({
    name: "rest_client_stream_queue_length",
    help: "Number of requests that wait for a connection or for a free stream of one, partitioned by host.",
    labels: ["host"],
  });
  const streamWaits = registry.histogram({
    name: "rest_client_stream_wait_duration_seconds",
    help: "How long in seconds requests waited that found no free stream on any connection, partitioned by host.",
    labels: ["host"],
    buckets: exponentialBuckets(0.001, 4, 9),
  });
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
