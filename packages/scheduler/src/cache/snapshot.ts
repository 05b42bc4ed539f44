import type { NodeInfo } from "./node-info.ts";

/**
 * What one scheduling cycle sees. Cycles run one after the other and nothing else changes node infos while one runs
 * (there is no await between filter and assume), so the view need not be a copy.
 */
export interface ClusterSnapshot {
  /** Nodes that exist, spread over zones in turn. */
  readonly nodes: readonly NodeInfo[];
  /** Those of `nodes` with pods that have affinity terms; and with pods that refuse others by required anti-affinity. */
  readonly havingAffinity: readonly NodeInfo[];
  readonly havingRequiredAntiAffinity: readonly NodeInfo[];
  get(name: string): NodeInfo | undefined;
  /** How many of `nodes` have an image of this name. */
  nodesWithImage(name: string): number;
}
