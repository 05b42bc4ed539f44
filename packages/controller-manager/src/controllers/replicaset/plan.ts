import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isActive } from "../../pods/pod-state.ts";
import { type DeletionRules, inDeletionOrder } from "./deletion-order.ts";

export interface Plan {
  readonly create: number;
  readonly delete: readonly Pod[];
}

/** No more than so many creates or deletes at once; the rest at the next look. Source: replica_set.go BurstReplicas */
const burstReplicas = 500;

/**
 * Pure: from how many are wanted and what exists to what has to change.
 * @param active the owner's active Pods
 * @param kin Pods of all that share the owner's own controller (the ReplicaSets of one Deployment), the owner's included;
 *   asked for only when it matters
 */
export function planReplicas(options: {
  wanted: number;
  active: readonly Pod[];
  kin: () => readonly Pod[];
  rules: DeletionRules;
}): Plan {
  const { wanted, active, kin, rules } = options;
  if (active.length <= wanted) return { create: Math.min(burstReplicas, wanted - active.length), delete: [] };
  const count = Math.min(burstReplicas, active.length - wanted);
  if (count >= active.length) return { create: 0, delete: active };
  const podsOnNode = new Map<string, number>();
  for (const pod of kin()) {
    const node = pod.spec.nodeName ?? "";
    if (isActive(pod)) podsOnNode.set(node, (podsOnNode.get(node) ?? 0) + 1);
  }
  const onSameNode = ({ spec }: Pod): number => podsOnNode.get(spec.nodeName ?? "") ?? 0;
  return { create: 0, delete: inDeletionOrder(active, onSameNode, rules).slice(0, count) };
}
