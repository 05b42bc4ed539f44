import definitions from "../metrics.json" with { type: "json" };
import { formatGroupResource, type ResourceRef } from "../objects/meta/group-version.ts";
import type { MetricsRegistry } from "../process/metrics/registry.ts";

/** Registers the failure counter; to be called once per registry. @returns `onFailure` for informer factories */
export function informerFailures(metrics: MetricsRegistry): (ref: ResourceRef) => void {
  const failures = metrics.counter(definitions.coxswain_informer_handler_failures_total);
  return (ref) => failures.labels(formatGroupResource(ref)).inc();
}
