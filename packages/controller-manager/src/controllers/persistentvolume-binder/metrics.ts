import type { Newest } from "@coxswain/apimachinery/informers/newest";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Gauge, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../../metrics.json" with { type: "json" };
import { operationMetrics } from "../../volumes/operation-metrics.ts";
import { pluginOf } from "./plugins.ts";

/** Registers gauges of volumes and claims, computed on each scrape. Source: pkg/controller/volume/persistentvolume/metrics */
export function countVolumes(
  registry: MetricsRegistry,
  volumes: Newest<PersistentVolume>,
  claims: Newest<PersistentVolumeClaim>,
): void {
  for (const [bound, word] of [
    [true, "bound"],
    [false, "unbound"],
  ] as const) {
    registry.gauge({
      name: `pv_collector_${word}_pv_count`,
      help: `Gauge measuring number of persistent volume currently ${word}`,
      labels: ["storage_class"],
      collect: counting(volumes, ({ spec, status }) =>
        (status?.phase === "Bound") === bound ? [spec.storageClassName ?? ""] : undefined,
      ),
    });
    registry.gauge({
      name: `pv_collector_${word}_pvc_count`,
      help: `Gauge measuring number of persistent volume claim currently ${word}`,
      labels: ["namespace"],
      collect: counting(claims, ({ metadata, status }) =>
        (status?.phase === "Bound") === bound ? [metadata.namespace ?? ""] : undefined,
      ),
    });
  }
  registry.gauge({
    ...definitions.pv_collector_total_pv_count,
    collect: counting(volumes, (volume) => [metricName(volume), volume.spec.volumeMode ?? "Filesystem"]),
  });
}

/** @param labelsOf returns undefined for objects that are not counted */
function counting<T>(objects: Newest<T>, labelsOf: (object: T) => string[] | undefined): (gauge: Gauge) => void {
  return (gauge) => {
    gauge.reset();
    for (const object of objects.list()) {
      const labels = labelsOf(object);
      if (labels !== undefined) gauge.labels(...labels).inc();
    }
  };
}

function metricName({ spec }: PersistentVolume): string {
  return spec.csi === undefined ? (pluginOf(spec)?.name ?? "N/A") : `kubernetes.io/csi:${spec.csi.driver}`;
}

/** Measures provisioning and deletion from the first attempt to success, across retries. */
export interface Lifecycles {
  /**
   * Starts the measurement; later calls for the same key are ignored.
   * @param key claim key for provisioning, volume name for deletion
   */
  begin(key: string, plugin: string, operation: "provision" | "delete"): void;
  end(key: string): void;
  fail(key: string): void;
  /** Discards the measurement; the operation will not complete. */
  forget(key: string): void;
}

export function newLifecycles(registry: MetricsRegistry, clock: Clock): Lifecycles {
  const { total, errors } = operationMetrics(registry);
  const begun = new Map<string, { plugin: string; operation: string; at: number }>();
  return {
    begin(key, plugin, operation) {
      if (!begun.has(key)) begun.set(key, { plugin, operation, at: clock.monotonic() });
    },
    end(key) {
      const entry = begun.get(key);
      if (entry === undefined) return;
      total.labels(entry.plugin, entry.operation).observe((clock.monotonic() - entry.at) / 1000);
      begun.delete(key);
    },
    fail(key) {
      const entry = begun.get(key);
      if (entry !== undefined) errors.labels(entry.plugin, entry.operation).inc();
    },
    forget: (key) => void begun.delete(key),
  };
}
