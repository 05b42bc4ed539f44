import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { claimNameOf } from "@coxswain/apimachinery/volumes/claims-of-pod";
import type { NodePod } from "../pod/pod.ts";
import type { VolumeUsage, VolumeUsages } from "../volumes/volume-usage.ts";

const series: readonly (readonly [name: string, field: keyof Omit<VolumeUsage, "name" | "at">, help: string])[] = [
  ["capacity_bytes", "capacityBytes", "Capacity in bytes of the volume"],
  ["available_bytes", "availableBytes", "Number of available bytes in the volume"],
  ["used_bytes", "usedBytes", "Number of used bytes in the volume"],
  ["inodes", "inodes", "Maximum number of inodes in the volume"],
  ["inodes_free", "inodesFree", "Number of free inodes in the volume"],
  ["inodes_used", "inodesUsed", "Number of used inodes in the volume"],
];

/**
 * `kubelet_volume_stats_*`: usage of volumes with a claim, one time series per claim even if several Pods use it.
 * Source: pkg/kubelet/metrics/collectors/volume_stats.go
 */
export function newVolumeMetrics(
  registry: MetricsRegistry,
  { pods, usages }: { pods: () => readonly NodePod[]; usages: Pick<VolumeUsages, "of"> },
): void {
  for (const [name, field, help] of series) {
    registry.gauge({
      name: `kubelet_volume_stats_${name}`,
      help,
      labels: ["namespace", "persistentvolumeclaim"],
      collect(gauge) {
        gauge.reset();
        for (const pod of pods()) {
          const claims = new Map((pod.spec.volumes ?? []).map((volume) => [volume.name, claimNameOf(pod, volume)]));
          for (const usage of usages.of(pod.metadata.uid)) {
            const claim = claims.get(usage.name);
            if (claim !== undefined) gauge.labels(pod.metadata.namespace, claim).set(usage[field]);
          }
        }
      },
    });
  }
}
