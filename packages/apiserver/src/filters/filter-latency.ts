/**
 * How long the filters take that ask somebody: from the end of the one before to the moment when the next may go on.
 * What a filter refuses is not counted.
 * Source: k8s.io/apiserver pkg/endpoints/filterlatency/filterlatency.go
 */
import type { Filter } from "./filter.ts";
import type { RequestMetrics } from "./metrics.ts";

type Measured = "authentication" | "audit" | "impersonation" | "authorization";

/** Stands before the first filter that is measured, and before one that comes after others that are not. */
export const startOfFilter: Filter = (request, next) => {
  request.filterStartedMs = performance.now();
  return next(request);
};

/** Stands behind the filter of this name; one clock reading ends it and begins the next. */
export function endOfFilter(name: Measured, metrics: RequestMetrics): Filter {
  const duration = metrics.filterDuration.labels(name);
  return (request, next) => {
    const now = performance.now();
    duration.observe((now - request.filterStartedMs) / 1000);
    request.filterStartedMs = now;
    return next(request);
  };
}
