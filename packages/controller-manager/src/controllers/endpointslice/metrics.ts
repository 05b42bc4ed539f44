import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newSliceMetrics } from "../../services/slice-metrics.ts";
import type { SlicePlan } from "./labels.ts";
import type { CountedPlan } from "./plan.ts";

/** Metrics of the endpointslice controller. Source: pkg/controller/endpointslice/metrics */
export interface EndpointSliceMetrics {
  planned(service: ObjectKey, plan: CountedPlan): void;
  /** @param hinted whether topology hints are enabled for the Service */
  written(plan: SlicePlan, hinted: boolean): void;
  changed(operation: "create" | "update" | "delete"): void;
  /** @param result `stale`: the cache did not show this controller's writes yet */
  synced(result: "success" | "stale" | "error"): void;
  forget(service: ObjectKey): void;
}

/** @param maxPerSlice `--max-endpoints-per-slice`, from which the desired number of slices is computed */
export function newEndpointSliceMetrics(registry: MetricsRegistry, maxPerSlice: number): EndpointSliceMetrics {
  const subsystem = "endpoint_slice_controller";
  const { perSync, count, forget, changed } = newSliceMetrics(registry, subsystem, maxPerSlice);
  const added = perSync("endpoints_added", "Number of endpoints added on each Service sync");
  const removed = perSync("endpoints_removed", "Number of endpoints removed on each Service sync");
  const slices = registry.histogram({
    name: `${subsystem}_endpointslices_changed_per_sync`,
    help: "Number of EndpointSlices changed on each Service sync",
    labels: ["topology"],
  });
  const syncs = registry.counter({ name: `${subsystem}_syncs`, help: "Number of EndpointSlice syncs", labels: ["result"] });
  return {
    planned(service, { counts }) {
      added.observe(counts.added);
      removed.observe(counts.removed);
      count(service, counts.groups);
    },
    written: ({ create, update, delete: gone }, hinted) =>
      slices.labels(hinted ? "Auto" : "Disabled").observe(create.length + update.length + gone.length),
    changed,
    synced: (result) => syncs.labels(result).inc(),
    forget,
  };
}
