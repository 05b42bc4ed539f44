import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { NodeInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";

/** Pods to evict from a node, and how many of these evictions violate a PodDisruptionBudget. */
export interface Victims {
  readonly pods: readonly Pod[];
  readonly violations: number;
}

/**
 * An external process that takes part in scheduling decisions. A failed call throws.
 * Source: k8s.io/kube-scheduler extender/v1; pkg/scheduler/framework/extender.go
 */
export interface Extender {
  /** The URL prefix. */
  readonly name: string;
  /** When true, failures of the extender do not fail scheduling. */
  readonly ignorable: boolean;
  readonly binds: boolean;
  readonly preempts: boolean;
  /** True for pods that request a managed resource; true for all pods when no managed resources are configured. */
  isInterested(pod: Pod): boolean;
  filter(pod: Pod, nodes: readonly NodeInfo[]): Promise<ExtenderFilterResult>;
  /** @returns node name → score from 0 to 10, multiplied by the extender's weight */
  prioritize(pod: Pod, nodes: readonly NodeInfo[]): Promise<ReadonlyMap<string, number>>;
  /** @returns the accepted candidates by node name, with the victims the extender selects */
  preempt(pod: Pod, candidates: ReadonlyMap<string, Victims>, snapshot: ClusterSnapshot): Promise<ReadonlyMap<string, Victims>>;
  bind(pod: Pod, nodeName: string): Promise<void>;
}

interface ExtenderFilterResult {
  readonly feasible: readonly NodeInfo[];
  /** Node name → reason. */
  readonly failed: ReadonlyMap<string, string>;
  /** Node name → reason; preemption would not help on these nodes. */
  readonly unresolvable: ReadonlyMap<string, string>;
}
