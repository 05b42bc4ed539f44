import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";

/** What is remembered of one volume on one node while something is done about it. Lost at a restart, without harm. */
export interface Progress {
  /** Since when it is being attached, or detached; of the monotonic clock. */
  attachingSince?: number;
  detachingSince?: number;
  /** Since when no Pod needs it. */
  unwantedSince?: number;
  /** It is not to be used any more, though it is attached still. */
  leaving?: boolean;
  /** Its Pods were told that it is somewhere else. */
  refused?: boolean;
  /** After a failure: when to try again, and how long that was. */
  retry?: { at: number; waitMs: number };
}

export interface ProgressTable {
  of(id: VolumeId, node: string): Progress;
  peek(id: VolumeId, node: string): Progress | undefined;
  forget(id: VolumeId, node: string): void;
  /** Keeps of a volume only what is about these nodes. */
  keep(id: VolumeId, nodes: ReadonlySet<string>): void;
}

export function newProgressTable(): ProgressTable {
  const byVolume = new Map<VolumeId, Map<string, Progress>>();
  const forget = (id: VolumeId, node: string): void => {
    const nodes = byVolume.get(id);
    nodes?.delete(node);
    if (nodes?.size === 0) byVolume.delete(id);
  };
  return {
    of: (id, node) => byVolume.getOrInsertComputed(id, () => new Map<string, Progress>()).getOrInsertComputed(node, () => ({})),
    peek: (id, node) => byVolume.get(id)?.get(node),
    forget,
    keep(id, nodes) {
      for (const node of byVolume.get(id)?.keys() ?? []) if (!nodes.has(node)) forget(id, node);
    },
  };
}
