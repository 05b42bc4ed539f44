import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import { exponentialBuckets, type MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { MirrorPlan } from "./mirror.ts";

/** Upstream's metrics of mirroring. Source: pkg/controller/endpointslicemirroring/metrics */
export interface MirrorMetrics {
  synced(durationMs: number): void;
  planned(endpoints: ObjectKey, plan: MirrorPlan): void;
  changed(operation: "create" | "update" | "delete"): void;
  forget(endpoints: ObjectKey): void;
}

export function newMirrorMetrics(registry: MetricsRegistry, maxPerSubset: number): MirrorMetrics {
  const name = (suffix: string): string => `endpoint_slice_mirroring_controller_${suffix}`;
  const buckets = exponentialBuckets(2, 2, 15);
  const perSync = (what: string, help: string) => registry.histogram({ name: name(`${what}_per_sync`), help, buckets });
  const added = perSync("endpoints_added", "Number of endpoints added on each Endpoints sync");
  const updated = perSync("endpoints_updated", "Number of endpoints updated on each Endpoints sync");
  const removed = perSync("endpoints_removed", "Number of endpoints removed on each Endpoints sync");
  const skipped = perSync(
    "addresses_skipped",
    "Number of addresses skipped on each Endpoints sync due to being invalid or exceeding MaxEndpointsPerSubset",
  );
  const duration = registry.histogram({
    name: name("endpoints_sync_duration"),
    help: "Duration of syncEndpoints() in seconds",
    buckets: exponentialBuckets(0.001, 2, 15),
  });
  const desired = registry.gauge({ name: name("endpoints_desired"), help: "Number of endpoints desired" });
  const slices = registry.gauge({ name: name("num_endpoint_slices"), help: "Number of EndpointSlices" });
  const desiredSlices = registry.gauge({
    name: name("desired_endpoint_slices"),
    help: "Number of EndpointSlices that would exist with perfect endpoint allocation",
  });
  const changes = registry.counter({ name: name("changes"), help: "Number of EndpointSlice changes", labels: ["operation"] });

  const sizes = new Map<ObjectKey, Sizes>();
  const total: Sizes = { endpoints: 0, slices: 0, desiredSlices: 0 };
  const count = (key: ObjectKey, now: Sizes | undefined): void => {
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
    synced: (durationMs) => duration.observe(durationMs / 1000),
    planned(key, plan) {
      added.observe(plan.added);
      updated.observe(plan.updated);
      removed.observe(plan.removed);
      skipped.observe(plan.skipped);
      const sum = (of: (group: MirrorPlan["groups"][number]) => number): number =>
        plan.groups.reduce((all, group) => all + of(group), 0);
      count(key, {
        endpoints: sum((group) => group.endpoints),
        slices: sum((group) => group.slices),
        desiredSlices: sum((group) => Math.ceil(group.endpoints / maxPerSubset)),
      });
    },
    changed: (operation) => changes.labels(operation).inc(),
    forget: (key) => count(key, undefined),
  };
}

interface Sizes {
  endpoints: number;
  slices: number;
  desiredSlices: number;
}
