import { byCreation } from "@coxswain/apimachinery/objects/meta/creation";
import { scaledValue } from "@coxswain/apimachinery/objects/meta/int-or-string";
import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Eligibility } from "./eligibility.ts";
import { hashLabel, targetNodeOf } from "./pod-template.ts";

/** Pods of the DaemonSet by the node they run on or are pinned to. */
type NodePods = ReadonlyMap<string, readonly Pod[]>;

/** Consistent input of the pure planning functions. */
export interface View {
  readonly daemonSet: DaemonSet;
  /** All nodes of the cluster. */
  readonly nodes: readonly (Eligibility & { readonly name: string })[];
  readonly pods: NodePods;
  /** Hash of the current template. */
  readonly hash: string;
  /** Feature gate DaemonSetUpdateSurge. */
  readonly surgeEnabled: boolean;
  readonly now: number;
}

/** Nodes on which to create Pods, and Pods to delete. */
export interface Plan {
  readonly create: readonly string[];
  readonly delete: readonly Pod[];
}

/** Groups Pods by target node; Pods without one are ignored. */
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

/** Whether the Pod has this template hash; false for an empty hash. */
export function isUpdated(pod: Pod, hash: string): boolean {
  return hash !== "" && pod.metadata.labels?.[hashLabel] === hash;
}

/** Scheduled Pods first, then by age. Source: daemon_controller.go podByCreationTimestampAndPhase */
export function byBindingAndAge(a: Pod, b: Pod): number {
  const unbound = ({ spec }: Pod): number => (spec.nodeName ? 0 : 1);
  return unbound(a) - unbound(b) || byCreation(a, b);
}

/** Maximum number of additional Pods during a rolling update. Source: daemonset_util.go SurgeCount */
export function surgeCount({ daemonSet, surgeEnabled }: View, desired: number): number {
  const { type, rollingUpdate } = daemonSet.spec.updateStrategy ?? {};
  if (!surgeEnabled || type !== "RollingUpdate") return 0;
  return scaledValue(rollingUpdate?.maxSurge ?? 0, desired, true);
}

/**
 * Maximum number of unavailable Pods during a rolling update; 0 for other strategies.
 * Source: daemonset_util.go UnavailableCount
 */
export function unavailableCount({ daemonSet }: View, desired: number): number {
  const { type, rollingUpdate } = daemonSet.spec.updateStrategy ?? {};
  return type === "RollingUpdate" ? scaledValue(rollingUpdate?.maxUnavailable ?? 0, desired, true) : 0;
}
