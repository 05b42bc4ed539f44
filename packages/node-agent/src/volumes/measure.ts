import { filesystemOf } from "../node/machine.ts";
import { usageBelow } from "../resources/usage.ts";
import type { FolderQuotas } from "./quota/folder-quotas.ts";

/** How full a volume is, and the file system that it is on. */
export interface VolumeSize {
  usedBytes: number;
  inodesUsed: number;
  availableBytes: number;
  capacityBytes: number;
  inodes: number;
  inodesFree: number;
}

/** What a look at a volume has found. */
export interface MeasuredVolume extends VolumeSize {
  /** What the driver says is wrong with it. */
  abnormal?: string;
}

/**
 * A folder that shares its file system with others: what is in it is counted, if not by the file system.
 * Source: pkg/volume/metrics_du.go
 */
export async function walked(path: string, quotas?: Pick<FolderQuotas, "usage">): Promise<VolumeSize> {
  const [{ bytes, inodes }, { capacityBytes, availableBytes, inodes: all, inodesFree }] = await Promise.all([
    usageBelow(path, quotas),
    filesystemOf(path),
  ]);
  return { usedBytes: bytes, inodesUsed: inodes, availableBytes, capacityBytes, inodes: all, inodesFree };
}

/** A folder that has its file system to itself. Source: pkg/volume/metrics_statfs.go */
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
