import { byCreation } from "@coxswain/apimachinery/meta/creation";
import { scaledValue } from "@coxswain/apimachinery/meta/int-or-string";
import type { DaemonSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Eligibility } from "./eligibility.ts";
import { hashLabel, targetNodeOf } from "./pod-template.ts";

/** The set's pods by the node that they are on or for. */
export type NodePods = ReadonlyMap<string, readonly Pod[]>;

/** What a decision is made from, all of one moment. */
export interface View {
  readonly daemonSet: DaemonSet;
  /** All of the cluster. */
  readonly nodes: readonly (Eligibility & { readonly name: string })[];
  readonly pods: NodePods;
  /** Of the template that is wanted. */
  readonly hash: string;
  /** The gate DaemonSetUpdateSurge. */
  readonly surgeEnabled: boolean;
  readonly now: number;
}

/** What has to be done: pods to create, by their nodes, and pods to delete. */
export interface Plan {
  readonly create: readonly string[];
  readonly delete: readonly Pod[];
}

/** Pods that say no node are nobody's; they are left alone. */
export function groupByNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const groups = new Map<string, Pod[]>();
  for (const pod of pods) {
    const node = targetNodeOf(pod);
    if (node === undefined) continue;
    const group = groups.get(node);
    if (group === undefined) groups.set(node, [pod]);
    else group.push(pod);
  }
  return groups;
}

export function isUpdated(pod: Pod, hash: string): boolean {
  return hash !== "" && pod.metadata.labels?.[hashLabel] === hash;
}

/** Bound ones first, then the oldest. Source: daemon_controller.go podByCreationTimestampAndPhase */
export function byBindingAndAge(a: Pod, b: Pod): number {
  const unbound = ({ spec }: Pod): number => (spec.nodeName ? 0 : 1);
  return unbound(a) - unbound(b) || byCreation(a, b);
}

/** How many pods more than one for each node may run during an update. Source: daemonset_util.go SurgeCount */
export function surgeCount({ daemonSet, surgeEnabled }: View, desired: number): number {
  const { type, rollingUpdate } = daemonSet.spec.updateStrategy ?? {};
  if (!surgeEnabled || type !== "RollingUpdate") return 0;
  return scaledValue(rollingUpdate?.maxSurge ?? 0, desired, true);
}

/** Source: daemonset_util.go UnavailableCount */
export function unavailableCount({ daemonSet }: View, desired: number): number {
  const { type, rollingUpdate } = daemonSet.spec.updateStrategy ?? {};
  return type === "RollingUpdate" ? scaledValue(rollingUpdate?.maxUnavailable ?? 0, desired, true) : 0;
}
