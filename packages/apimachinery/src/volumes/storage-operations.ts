import type { Histogram, MetricsRegistry } from "../metrics/registry.ts";

/** An operation of a volume's plugin begins; what is returned is told how it ended. */
export type BeginOperation = (plugin: string, operation: string) => (failure?: unknown) => void;

/** Of all histograms of volumes. */
export const operationBuckets: readonly number[] = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** `storage_operation_duration_seconds`. Source: pkg/volume/util/metrics.go */
export function storageOperations(registry: MetricsRegistry): Histogram {
  return registry.histogram({
    name: "storage_operation_duration_seconds",
    help: "Storage operation duration",
    labels: ["volume_plugin", "operation_name", "status", "migrated"],
    buckets: [...operationBuckets],
  });
}

export function newOperations(duration: Histogram, clock: { monotonic(): number }): BeginOperation {
  return (plugin, operation) => {
    const start = clock.monotonic();
    return (failure) => {
      const status = failure === undefined ? "success" : "fail-unknown";
      duration.labels(plugin, operation, status, "false").observe((clock.monotonic() - start) / 1000);
    };
  };
}

/** Does an operation and observes how long it took and how it ended. */
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
