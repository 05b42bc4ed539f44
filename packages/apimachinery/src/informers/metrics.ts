import definitions from "../metrics.json" with { type: "json" };
import { formatGroupResource, type ResourceRef } from "../objects/meta/group-version.ts";
import type { MetricsRegistry } from "../process/metrics/registry.ts";
import type { InformerFactory } from "./factory.ts";

/** Registers the failure counter; to be called once per registry. @returns `onFailure` for informer factories */
export function informerFailures(metrics: MetricsRegistry): (ref: ResourceRef) => void {
  const failures = metrics.counter(definitions.coxswain_informer_handler_failures_total);
  return (ref) => failures.labels(formatGroupResource(ref)).inc();
}

/** Registers the gauge of running informers that have not synced. @returns a health check that throws with their resources */
export function informerSync(metrics: MetricsRegistry, informers: InformerFactory): () => void {
  metrics.gauge({
    ...definitions.coxswain_informers_unsynced,
    collect(gauge) {
      gauge.reset();
      for (const resource of informers.unsynced()) gauge.labels(resource).set(1);
    },
  });
  return () => {
    const waiting = informers.unsynced();
    if (waiting.length > 0) throw new Error(`not synced: ${waiting.join(", ")}`);
  };
}
