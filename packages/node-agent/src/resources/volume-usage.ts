import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { filesystemOf } from "../node/machine.ts";
import type { NodePod } from "../pods/pod.ts";
import { usageBelow } from "./usage.ts";

/** How full a volume is, and the file system that it is on. */
export interface VolumeUsage {
  name: string;
  /** When it was looked at, in ms since the epoch. */
  at: number;
  usedBytes: number;
  inodesUsed: number;
  availableBytes: number;
  capacityBytes: number;
  inodes: number;
  inodesFree: number;
}

export interface VolumeUsages {
  /** Walks the volumes of every Pod. */
  refresh(): Promise<void>;
  /** As of the last walk. */
  of(uid: string): readonly VolumeUsage[];
}

/**
 * What Pods' volumes take on disk, kept from one walk to the next (`--volume-stats-agg-period`). Volumes that have no
 * folder of their own (hostPath) are not looked at. Source: pkg/kubelet/server/stats/fs_resource_analyzer.go
 */
export function newVolumeUsages(options: {
  pods: () => readonly NodePod[];
  podDir: (uid: string) => string;
  clock: Clock;
}): VolumeUsages {
  let known = new Map<string, VolumeUsage[]>();
  return {
    async refresh() {
      const next = new Map<string, VolumeUsage[]>();
      for (const { metadata } of options.pods()) {
        const folder = join(options.podDir(metadata.uid), "volumes");
        const usages: VolumeUsage[] = [];
        for (const plugin of await namesIn(folder)) {
          for (const name of await namesIn(join(folder, plugin))) {
            const path = join(folder, plugin, name);
            const [used, { capacityBytes, availableBytes, inodes, inodesFree }] = await Promise.all([
              usageBelow(path),
              filesystemOf(path),
            ]);
            const { bytes: usedBytes, inodes: inodesUsed } = used;
            const at = options.clock.now();
            usages.push({ name, at, usedBytes, inodesUsed, availableBytes, capacityBytes, inodes, inodesFree });
          }
        }
        next.set(metadata.uid, usages);
      }
      known = next;
    },
    of: (uid) => known.get(uid) ?? [],
  };
}

const namesIn = (dir: string): Promise<string[]> => readdir(dir).catch(() => []);
