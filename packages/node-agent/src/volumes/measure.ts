import { filesystemOf } from "../resources/machine.ts";
import { usageBelow } from "../resources/usage.ts";
import type { FolderQuotas } from "./quota/folder-quotas.ts";

/** Usage of a volume and size of its file system. */
export interface VolumeSize {
  usedBytes: number;
  inodesUsed: number;
  availableBytes: number;
  capacityBytes: number;
  inodes: number;
  inodesFree: number;
}

export interface MeasuredVolume extends VolumeSize {
  /** The driver's message when it reports the volume as abnormal. */
  abnormal?: string;
}

/**
 * Usage of a directory that shares its file system, from quotas or by walking.
 * Source: pkg/volume/metrics_du.go
 */
export async function walked(path: string, quotas?: Pick<FolderQuotas, "usage">): Promise<VolumeSize> {
  const [{ bytes, inodes }, { capacityBytes, availableBytes, inodes: all, inodesFree }] = await Promise.all([
    usageBelow(path, quotas),
    filesystemOf(path),
  ]);
  return { usedBytes: bytes, inodesUsed: inodes, availableBytes, capacityBytes, inodes: all, inodesFree };
}

/** Usage of a directory with a separate file system. Source: pkg/volume/metrics_statfs.go */
export async function filesystemSize(path: string): Promise<VolumeSize> {
  const { capacityBytes, availableBytes, inodes, inodesFree } = await filesystemOf(path);
  return {
    usedBytes: capacityBytes - availableBytes,
    inodesUsed: inodes - inodesFree,
    availableBytes,
    capacityBytes,
    inodes,
    inodesFree,
  };
}
