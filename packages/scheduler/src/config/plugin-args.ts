import type { NodeAffinity, TopologySpreadConstraint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Plugin arguments by plugin name. Source: pkg/scheduler/apis/config/types_pluginargs.go */
export interface PluginArgs {
  readonly DefaultPreemption: {
    readonly minCandidateNodesPercentage: number;
    readonly minCandidateNodesAbsolute: number;
  };
  readonly InterPodAffinity: { readonly hardPodAffinityWeight: number };
  readonly NodeAffinity: { readonly addedAffinity?: NodeAffinity };
  readonly NodeResourcesBalancedAllocation: { readonly resources: readonly ResourceWeight[] };
  readonly NodeResourcesFit: {
    readonly ignoredResources?: readonly string[];
    readonly ignoredResourceGroups?: readonly string[];
    readonly scoringStrategy: ScoringStrategy;
  };
  readonly PodTopologySpread: {
    readonly defaultConstraints?: readonly TopologySpreadConstraint[];
    readonly defaultingType: "System" | "List";
  };
  /** `shape` requires the feature gate VolumeCapacityPriority. */
  readonly VolumeBinding: { readonly bindTimeoutSeconds: number; readonly shape?: readonly ShapePoint[] };
}

export interface ResourceWeight {
  readonly name: string;
  readonly weight: number;
}

export interface ScoringStrategy {
  readonly type: "LeastAllocated" | "MostAllocated" | "RequestedToCapacityRatio";
  readonly resources: readonly ResourceWeight[];
  readonly requestedToCapacityRatio?: { readonly shape: readonly ShapePoint[] };
}

/** Utilization is a percentage from 0 to 100, score ranges from 0 to 10. */
export interface ShapePoint {
  readonly utilization: number;
  readonly score: number;
}

const cpuAndMemory: readonly ResourceWeight[] = [
  { name: "cpu", weight: 1 },
  { name: "memory", weight: 1 },
];

/** Prefers volumes of which the claim uses the larger part. */
export const defaultCapacityShape: readonly ShapePoint[] = [
  { utilization: 0, score: 0 },
  { utilization: 100, score: 10 },
];

/** Defaults. Source: pkg/scheduler/apis/config/v1beta3/defaults.go */
export const defaultPluginArgs: PluginArgs = {
  DefaultPreemption: { minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100 },
  InterPodAffinity: { hardPodAffinityWeight: 1 },
  NodeAffinity: {},
  NodeResourcesBalancedAllocation: { resources: cpuAndMemory },
  NodeResourcesFit: { scoringStrategy: { type: "LeastAllocated", resources: cpuAndMemory } },
  PodTopologySpread: { defaultingType: "System" },
  VolumeBinding: { bindTimeoutSeconds: 600 },
};
