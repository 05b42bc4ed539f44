import { exponentialBuckets, type MetricsRegistry } from "../metrics/registry.ts";
import type { ClientObserver } from "./client.ts";

/** Upstream's metrics of requests. Source: k8s.io/component-base metrics/prometheus/restclient */
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
  return {
    requested(method, host, code, latencyMs) {
      requests.labels(code, method, host).inc();
      latency.labels(method, host).observe(latencyMs / 1000);
    },
    rateLimited: (method, host, waitedMs) => waited.labels(method, host).observe(waitedMs / 1000),
  };
}
