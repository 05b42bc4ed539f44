import type { NodeChanges } from "./node-changes.ts";
import type { NodeInfo } from "./node-info.ts";

/**
 * The view of one scheduling cycle. It is not a copy: cycles run sequentially, and without an await between filter and
 * assume nothing else changes node infos. In a long cycle, which takes several turns, and with extenders they may change.
 */
export interface ClusterSnapshot {
  /** Existing nodes, interleaved by zone. */
  readonly nodes: readonly NodeInfo[];
  /** Tells what changed since an earlier snapshot. */
  readonly changes: Pick<NodeChanges, "position" | "since">;
  /** The subsets of `nodes` with pods that have affinity terms, and with pods that have required anti-affinity terms. */
  havingAffinity(): readonly NodeInfo[];
  havingRequiredAntiAffinity(): readonly NodeInfo[];
  /** False only when the subset of that name is empty; costs less than making it. */
  hasAffinity(): boolean;
  hasRequiredAntiAffinity(): boolean;
  get(name: string): NodeInfo | undefined;
  /** Number of nodes that have the image. */
  nodesWithImage(name: string): number;
}
