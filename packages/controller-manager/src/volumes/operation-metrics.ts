import type { Counter, Histogram, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { operationBuckets, storageOperations } from "@coxswain/apimachinery/volumes/storage-operations";
import definitions from "../metrics.json" with { type: "json" };

/** Metrics shared by the volume controllers. */
export interface OperationMetrics {
  /** Duration of one plugin call. */
  readonly duration: Histogram;
  /** Duration from the first attempt to completion. */
  readonly total: Histogram;
  readonly errors: Counter;
}

/**
 * The metrics of a registry, which hands out the same ones on each call.
 * Source: pkg/volume/util/metrics.go, pkg/controller/volume/persistentvolume/metrics
 */
export function operationMetrics(registry: MetricsRegistry): OperationMetrics {
  return {
    duration: storageOperations(registry),
    total: registry.histogram({
      name: "volume_operation_total_seconds",
      help: "Storage operation end to end duration in seconds",
      labels: ["plugin_name", "operation_name"],
      buckets: [...operationBuckets],
    }),
    errors: registry.counter(definitions.volume_operation_total_errors),
  };
}
