import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { exponentialBuckets, type HistogramChild, type MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

/** Size of a group of endpoints with the same ports and address family, and the number of its slices. */
export interface GroupSize {
  readonly endpoints: number;
  readonly slices: number;
}

/**
 * Metrics common to the EndpointSlice controllers.
 * Source: pkg/controller/endpointslice/metrics, endpointslicemirroring/metrics
 */
interface SliceMetrics {
  /** Creates a histogram of a count observed once per sync. */
  perSync(what: string, help: string): HistogramChild;
  /** Sets the current groups of a Service. */
  count(key: ObjectKey, groups: readonly GroupSize[]): void;
  forget(key: ObjectKey): void;
  changed(operation: "create" | "update" | "delete"): void;
}

/**
 * Registers the metrics under `subsystem`.
 * @param maxPerSlice maximum number of endpoints in a slice
 */
export function newSliceMetrics(registry: MetricsRegistry, subsystem: string, maxPerSlice: number): SliceMetrics {
  const name = (suffix: string): string => `${subsystem}_${suffix}`;
  const desired = registry.gauge({ name: name("endpoints_desired"), help: "Number of endpoints desired" });
  const slices = registry.gauge({ name: name("num_endpoint_slices"), help: "Number of EndpointSlices" });
  const desiredSlices = registry.gauge({
    name: name("desired_endpoint_slices"),
    help: "Number of EndpointSlices that would exist with perfect endpoint allocation",
  });
  const changes = registry.counter({ name: name("changes"), help: "Number of EndpointSlice changes", labels: ["operation"] });

  const sizes = new Map<ObjectKey, Sizes>();
  const total: Sizes = { endpoints: 0, slices: 0, desiredSlices: 0 };
  const set = (key: ObjectKey, now: Sizes | undefined): void => {
    const before = sizes.get(key);
    for (const what of ["endpoints", "slices", "desiredSlices"] as const)
      total[what] += (now?.[what] ?? 0) - (before?.[what] ?? 0);
    if (now === undefined) sizes.delete(key);
    else sizes.set(key, now);
    desired.set(total.endpoints);
    slices.set(total.slices);
    desiredSlices.set(total.desiredSlices);
  };
  return {
    perSync: (what, help) => registry.histogram({ name: name(`${what}_per_sync`), help, buckets: exponentialBuckets(2, 2, 15) }),
    count(key, groups) {
      const sum = (of: (group: GroupSize) => number): number => groups.reduce((all, group) => all + of(group), 0);
      set(key, {
        endpoints: sum(({ endpoints }) => endpoints),
        slices: sum((group) => group.slices),
        desiredSlices: sum(({ endpoints }) => Math.ceil(endpoints / maxPerSlice)),
      });
    },
    forget: (key) => set(key, undefined),
    changed: (operation) => changes.labels(operation).inc(),
  };
}

interface Sizes {
  endpoints: number;
  slices: number;
  desiredSlices: number;
}
