import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../../metrics.json" with { type: "json" };

/** Counters of claim creations. Source: pkg/controller/volume/ephemeral/metrics */
export interface EphemeralVolumeMetrics {
  attempted(): void;
  failed(): void;
}

export function newEphemeralVolumeMetrics(registry: MetricsRegistry): EphemeralVolumeMetrics {
  const attempts = registry.counter(definitions.ephemeral_volume_controller_create_total);
  const failures = registry.counter(definitions.ephemeral_volume_controller_create_failures_total);
  return { attempted: () => attempts.inc(), failed: () => failures.inc() };
}
