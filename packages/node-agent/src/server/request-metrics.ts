import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";

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
  const labels = ["method", "path", "server_type", "long_running"];
  const total = registry.counter({
    name: "kubelet_http_requests_total",
    help: "Number of the http requests received since the server started",
    labels,
  });
  const seconds = registry.histogram({
    name: "kubelet_http_requests_duration_seconds",
    help: "Duration in seconds to serve http requests",
    labels,
  });
  const inFlight = registry.gauge({
    name: "kubelet_http_inflight_requests",
    help: "Number of the inflight http requests",
    labels,
  });
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
  const [first = "", second] = (url.split("?")[0] as string).slice(1).split("/");
  const root = first === "metrics" && second ? `${first}/${second}` : first;
  return known.has(root) ? root : "other";
}
