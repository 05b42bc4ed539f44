import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import definitions from "../metrics.json" with { type: "json" };

const methods = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]);
const known = new Set(
  "attach configz containerLogs debug exec healthz logs metrics metrics/cadvisor metrics/probes metrics/resource pods portForward run runningpods stats".split(
    " ",
  ),
);
const longRunning = new Set(["exec", "attach", "portforward", "debug"]);

/**
 * Counts and times the requests of a handler.
 * @param serverType the port: with or without authentication
 * Source: pkg/kubelet/server/server.go ServeHTTP, pkg/kubelet/server/metrics
 */
export function countRequests(
  handler: ExchangeHandler,
  {
    registry,
    serverType,
    clock,
  }: { registry: MetricsRegistry; serverType: "readwrite" | "readonly"; clock: Pick<Clock, "monotonic"> },
): ExchangeHandler {
  const total = registry.counter(definitions.kubelet_http_requests_total);
  const seconds = registry.histogram(definitions.kubelet_http_requests_duration_seconds);
  const inFlight = registry.gauge(definitions.kubelet_http_inflight_requests);
  return async (exchange) => {
    const path = bucketOf(exchange.url);
    const values = [methods.has(exchange.method) ? exchange.method : "other", path, serverType, String(longRunning.has(path))];
    total.labels(...values).inc();
    const running = inFlight.labels(...values);
    running.inc();
    const startedMs = clock.monotonic();
    try {
      await handler(exchange);
    } finally {
      running.dec();
      seconds.labels(...values).observe((clock.monotonic() - startedMs) / 1000);
    }
  };
}

/** Pure: the first part of the path, or two of /metrics/…; `other` for unknown ones. */
export function bucketOf(url: string): string {
  const [first = "", second] = url.split("?")[0]!.slice(1).split("/");
  const root = first === "metrics" && second ? `${first}/${second}` : first;
  return known.has(root) ? root : "other";
}
