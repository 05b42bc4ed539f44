/**
 * Counts and times reviews that a component sends to the API server, by status code; `<error>` without a response.
 * Source: k8s.io/apiserver pkg/authentication/authenticatorfactory/metrics.go, pkg/authorization/authorizerfactory/metrics.go
 */
import { StatusError } from "../../objects/errors/status-error.ts";
import type { Clock } from "../../process/clock/clock.ts";
import type { MetricsRegistry } from "../../process/metrics/registry.ts";

const buckets = [0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10];

/** Calls `send`, which creates a review, and records the outcome. */
export type MeasuredReview = <T>(send: () => Promise<T>) => Promise<T>;

export function newReviewMetrics(registry: MetricsRegistry, kind: "authn" | "authz", clock: Clock): MeasuredReview {
  const name = (what: string): string => `apiserver_delegated_${kind}_request_${what}`;
  const labels = ["code"];
  const total = registry.counter({ name: name("total"), help: "Number of HTTP requests partitioned by status code.", labels });
  const help = "Request latency in seconds. Broken down by status code.";
  const seconds = registry.histogram({ name: name("duration_seconds"), help, labels, buckets });
  return async (send) => {
    const startedMs = clock.monotonic();
    let code = "<error>";
    try {
      const created = await send();
      code = "201";
      return created;
    } catch (err) {
      if (err instanceof StatusError) code = String(err.code);
      throw err;
    } finally {
      total.labels(code).inc();
      seconds.labels(code).observe((clock.monotonic() - startedMs) / 1000);
    }
  };
}
