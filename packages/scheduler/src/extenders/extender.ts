import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { NodeInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";

/** Pods that would have to go from a node, and how many disruption budgets that would break. */
export interface Victims {
  readonly pods: readonly Pod[];
  readonly violations: number;
}

/**
 * A program outside that has a say. A call that fails throws.
 * Source: k8s.io/kube-scheduler extender/v1; pkg/scheduler/framework/extender.go
 */
export interface Extender {
  /** Its URL. */
  readonly name: string;
  /** Scheduling goes on without it when it does not answer. */
  readonly ignorable: boolean;
  readonly binds: boolean;
  readonly preempts: boolean;
  /** Only pods that ask for a resource that it manages; all pods, when it names none. */
  isInterested(pod: Pod): boolean;
  filter(pod: Pod, nodes: readonly NodeInfo[]): Promise<ExtenderFilterResult>;
  /** @returns by node, 0 to 10 times its weight */
  prioritize(pod: Pod, nodes: readonly NodeInfo[]): Promise<ReadonlyMap<string, number>>;
  /** @returns those of the candidates that it agrees to, with the victims it would have. */
  preempt(pod: Pod, candidates: ReadonlyMap<string, Victims>, snapshot: ClusterSnapshot): Promise<ReadonlyMap<string, Victims>>;
  bind(pod: Pod, nodeName: string): Promise<void>;
}

export interface ExtenderFilterResult {
  readonly feasible: readonly NodeInfo[];
  /** Reasons by node. */
  readonly failed: ReadonlyMap<string, string>;
  /** Preemption would not help there. */
  readonly unresolvable: ReadonlyMap<string, string>;
}
