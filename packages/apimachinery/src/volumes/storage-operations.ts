import definitions from "../metrics.json" with { type: "json" };
import type { Histogram, MetricsRegistry } from "../process/metrics/registry.ts";

/** Starts measuring a volume operation; the returned function ends it, with the error if it failed. */
export type BeginOperation = (plugin: string, operation: string) => (failure?: unknown) => void;

/** Buckets of all volume histograms, in seconds. */
export const operationBuckets: readonly number[] = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** `storage_operation_duration_seconds`. Source: pkg/volume/util/metrics.go */
export function storageOperations(registry: MetricsRegistry): Histogram {
  return registry.histogram(definitions.storage_operation_duration_seconds);
}

/** Measures operations of volume plugins in a histogram made by `storageOperations`. */
export function newOperations(duration: Histogram, clock: { monotonic(): number }): BeginOperation {
  return (plugin, operation) => {
    const start = clock.monotonic();
    return (failure) => {
      const status = failure === undefined ? "success" : "fail-unknown";
      duration.labels(plugin, operation, status, "false").observe((clock.monotonic() - start) / 1000);
    };
  };
}

/** Runs an operation and reports its outcome to `end`. */
export async function observed<T>(end: ReturnType<BeginOperation>, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    end();
    return result;
  } catch (err) {
    end(err);
    throw err;
  }
}
