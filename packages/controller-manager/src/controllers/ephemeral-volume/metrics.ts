import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

/** Counters of claim creations. Source: pkg/controller/volume/ephemeral/metrics */
export interface EphemeralVolumeMetrics {
  attempted(): void;
  failed(): void;
}

export function newEphemeralVolumeMetrics(registry: MetricsRegistry): EphemeralVolumeMetrics {
  const attempts = registry.counter({
    name: "ephemeral_volume_controller_create_total",
    help: "Number of PersistenVolumeClaims creation requests",
  });
  const failures = registry.counter({
    name: "ephemeral_volume_controller_create_failures_total",
    help: "Number of PersistenVolumeClaims creation requests",
  });
  return { attempted: () => attempts.inc(), failed: () => failures.inc() };
}
