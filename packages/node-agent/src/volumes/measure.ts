import { filesystemOf } from "../resources/machine.ts";
import { usageBelow } from "../resources/usage.ts";
import { contentsOf } from "./atomic-writer.ts";
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

type Walked = Awaited<ReturnType<typeof usageBelow>>;

/**
 * Usage of a directory that shares its file system, from quotas or by walking.
 * Source: pkg/volume/metrics_du.go
 */
export async function walked(path: string, quotas?: Pick<FolderQuotas, "usage">): Promise<VolumeSize> {
  const [usage, filesystem] = await Promise.all([usageBelow(path, quotas), filesystemOf(path)]);
  return sizeOf(usage, filesystem);
}

/**
 * Same for a directory that is written atomically, which is walked again only after its contents were replaced: a node has one or more
 * for each Pod.
 * Source: pkg/volume/metrics_cached.go, which measures once
 */
export function walkedOnChange(path: string): () => Promise<VolumeSize> {
  let known: { readonly contents: string; readonly usage: Walked } | undefined;
  const usageOf = async (): Promise<Walked> => {
    const contents = await contentsOf(path);
    if (contents === undefined) return usageBelow(path);
    if (known?.contents !== contents) known = { contents, usage: await usageBelow(path) };
    return known.usage;
  };
  return async () => {
    const [usage, filesystem] = await Promise.all([usageOf(), filesystemOf(path)]);
    return sizeOf(usage, filesystem);
  };
}

function sizeOf(
  { bytes, inodes }: Walked,
  { capacityBytes, availableBytes, inodes: all, inodesFree }: Awaited<ReturnType<typeof filesystemOf>>,
): VolumeSize {
  return { usedBytes: bytes, inodesUsed: inodes, availableBytes, capacityBytes, inodes: all, inodesFree };
}

/** Usage of a directory with a separate file system. Source: pkg/volume/metrics_statfs.go */
export async function filesystemSize(path: string): Promise<VolumeSize> {
  const size = await filesystemOf(path);
  return { ...size, inodesUsed: size.inodes - size.inodesFree };
}
