import type { Counter, Histogram, MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";

/** What all controllers of volumes count their work in. */
export interface OperationMetrics {
  /** One call of a plugin. */
  readonly duration: Histogram;
  /** From the first try to the end that users see. */
  readonly total: Histogram;
  readonly errors: Counter;
}

const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];
const byRegistry = new WeakMap<MetricsRegistry, OperationMetrics>();

/** Source: pkg/volume/util/metrics.go, pkg/controller/volume/persistentvolume/metrics */
export function operationMetrics(registry: MetricsRegistry): OperationMetrics {
  const known = byRegistry.get(registry);
  if (known !== undefined) return known;
  const made: OperationMetrics = {
    duration: registry.histogram({
      name: "storage_operation_duration_seconds",
      help: "Storage operation duration",
      labels: ["volume_plugin", "operation_name", "status", "migrated"],
      buckets,
    }),
    total: registry.histogram({
      name: "volume_operation_total_seconds",
      help: "Storage operation end to end duration in seconds",
      labels: ["plugin_name", "operation_name"],
      buckets,
    }),
    errors: registry.counter({
      name: "volume_operation_total_errors",
      help: "Total volume operation errors",
      labels: ["plugin_name", "operation_name"],
    }),
  };
  byRegistry.set(registry, made);
  return made;
}

/** Does the work and observes how long it took and how it ended. */
export async function observed<T>(
  { duration }: OperationMetrics,
  clock: { monotonic(): number },
  plugin: string,
  operation: string,
  work: () => Promise<T>,
): Promise<T> {
  const start = clock.monotonic();
  const end = (status: string): void =>
    duration.labels(plugin, operation, status, "false").observe((clock.monotonic() - start) / 1000);
  try {
    const result = await work();
    end("success");
    return result;
  } catch (err) {
    end("fail-unknown");
    throw err;
  }
}
