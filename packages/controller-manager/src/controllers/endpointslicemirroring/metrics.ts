import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { exponentialBuckets, type MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newSliceMetrics } from "../../services/slice-metrics.ts";
import type { MirrorPlan } from "./mirror.ts";

/** Metrics of the mirroring controller. Source: pkg/controller/endpointslicemirroring/metrics */
export interface MirrorMetrics {
  synced(durationMs: number): void;
  planned(endpoints: ObjectKey, plan: MirrorPlan): void;
  changed(operation: "create" | "update" | "delete"): void;
  forget(endpoints: ObjectKey): void;
}

/** @param maxPerSubset `--mirroring-max-endpoints-per-subset`, from which the desired number of slices is computed */
export function newMirrorMetrics(registry: MetricsRegistry, maxPerSubset: number): MirrorMetrics {
  const subsystem = "endpoint_slice_mirroring_controller";
  const { perSync, count, forget, changed } = newSliceMetrics(registry, subsystem, maxPerSubset);
  const added = perSync("endpoints_added", "Number of endpoints added on each Endpoints sync");
  const updated = perSync("endpoints_updated", "Number of endpoints updated on each Endpoints sync");
  const removed = perSync("endpoints_removed", "Number of endpoints removed on each Endpoints sync");
  const skipped = perSync(
    "addresses_skipped",
    "Number of addresses skipped on each Endpoints sync due to being invalid or exceeding MaxEndpointsPerSubset",
  );
  const duration = registry.histogram({
    name: `${subsystem}_endpoints_sync_duration`,
    help: "Duration of syncEndpoints() in seconds",
    buckets: exponentialBuckets(0.001, 2, 15),
  });
  return {
    synced: (durationMs) => duration.observe(durationMs / 1000),
    planned(key, plan) {
      added.observe(plan.added);
      updated.observe(plan.updated);
      removed.observe(plan.removed);
      skipped.observe(plan.skipped);
      count(key, plan.groups);
    },
    changed,
    forget,
  };
}
