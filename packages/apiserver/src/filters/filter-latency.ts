/**
 * Latency of the filters that may call other servers: from the end of the previous filter until the next one is called.
 * Requests that a filter rejects are not counted.
 * Source: k8s.io/apiserver pkg/endpoints/filterlatency/filterlatency.go
 */
import type { Filter } from "./filter.ts";
import type { RequestMetrics } from "./metrics.ts";

type Measured = "authentication" | "audit" | "impersonation" | "authorization";

/** Placed before the first measured filter, and before a measured filter that follows unmeasured ones. */
export const startOfFilter: Filter = (request, next) => {
  request.filterStartedMs = performance.now();
  return next(request);
};

/** Placed behind the filter of this name; one clock reading ends its measurement and begins the next. */
export function endOfFilter(name: Measured, metrics: RequestMetrics): Filter {
  const duration = metrics.filterDuration.labels(name);
  return (request, next) => {
    const now = performance.now();
    duration.observe((now - request.filterStartedMs) / 1000);
    request.filterStartedMs = now;
    return next(request);
  };
}
