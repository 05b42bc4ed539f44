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
