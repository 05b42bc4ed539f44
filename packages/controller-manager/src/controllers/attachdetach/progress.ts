import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";

/** In-memory state of one volume on one node during attach and detach. Losing it at a restart is harmless. */
export interface Progress {
  /** Start of the current attach or detach operation, in ms of the monotonic clock. */
  attachingSince?: number;
  detachingSince?: number;
  /** Time since which no Pod needs the volume, in ms of the monotonic clock. */
  unusedSince?: number;
  /** Still attached, but removed from the node's status because it is being detached. */
  leaving?: boolean;
  /** The Multi-Attach Event has been recorded for its Pods. */
  refused?: boolean;
  /** After a failure: time of the next attempt (monotonic clock) and the current backoff, both in ms. */
  retry?: { at: number; waitMs: number };
}

/** Progress by volume and node; `of` creates a missing entry, `peek` does not. */
export interface ProgressTable {
  of(id: VolumeId, node: string): Progress;
  peek(id: VolumeId, node: string): Progress | undefined;
  forget(id: VolumeId, node: string): void;
  /** Drops the entries of the volume for all other nodes. */
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
