import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { forEachLimited } from "@coxswain/apimachinery/process/event-loop/for-each-limited";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import type { VolumeSize } from "./measure.ts";
import type { VolumeManager } from "./volume-manager.ts";

export interface VolumeUsage extends VolumeSize {
  name: string;
  /** Time of the measurement, in ms since the epoch. */
  at: number;
}

/** Usage of the volumes of Pods. */
export interface VolumeUsages {
  /** Measures the volumes of every Pod. */
  refresh(): Promise<void>;
  /** Results of the last measurement. */
  of(uid: string): readonly VolumeUsage[];
}

/**
 * Pods that are measured at the same time, so that one Pod with a huge volume does not delay all others. Fewer than Node has threads for
 * files, of which a volume that does not respond holds one.
 */
const mostAtOnce = 2;

/**
 * Usage of Pod volumes, cached between measurements (`--volume-stats-agg-period`). Volumes without metrics (hostPath,
 * drivers without NodeGetVolumeStats) are left out. Abnormal volume conditions are reported as Pod events.
 * Source: pkg/kubelet/server/stats/{fs_resource_analyzer,volume_stat_calculator}.go
 */
export function newVolumeUsages(options: {
  pods: () => readonly NodePod[];
  volumes: Pick<VolumeManager, "of">;
  reportPodEvent: ContainerEvent;
  clock: Clock;
  log: Logger;
}): VolumeUsages {
  const known = new Map<string, VolumeUsage[]>();

  async function measure(pod: NodePod): Promise<VolumeUsage[]> {
    const usages: VolumeUsage[] = [];
    for (const [name, volume] of options.volumes.of(pod.metadata.uid)) {
      const measured = await volume.measure?.().catch((err) => {
        options.log.v(4)?.info("Volume cannot be measured", { volume: name, reason: messageOf(err) });
        return undefined;
      });
      if (measured === undefined) continue;
      const { abnormal, ...size } = measured;
      usages.push({ name, at: options.clock.now(), ...size });
      if (abnormal !== undefined)
        options.reportPodEvent(pod, undefined, "Warning", "VolumeConditionAbnormal", `Volume ${name}: ${abnormal}`);
    }
    return usages;
  }

  return {
    async refresh() {
      const pods = options.pods();
      const present = new Set(pods.map(({ metadata }) => metadata.uid));
      for (const uid of known.keys()) if (!present.has(uid)) known.delete(uid);
      await forEachLimited(pods, mostAtOnce, async (pod) => void known.set(pod.metadata.uid, await measure(pod)));
    },
    of: (uid) => known.get(uid) ?? [],
  };
}
