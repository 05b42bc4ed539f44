import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isActive } from "../../pods/pod-state.ts";
import { type DeletionRules, inDeletionOrder } from "./deletion-order.ts";

/** Number of Pods to create, or Pods to delete. */
interface Plan {
  readonly create: number;
  readonly delete: readonly Pod[];
}

/**
 * Upper bound of creations or deletions in one reconciliation; the rest follows in the next one.
 * Source: replica_set.go BurstReplicas
 */
const burstReplicas = 500;

/**
 * Pure: computes the number of Pods to create, or the Pods to delete.
 * @param active the owner's active Pods
 * @param related Pods of all owners that share the owner's controller (the ReplicaSets of one Deployment), including the
 * owner's; called only when needed
 */
export function planReplicas(options: {
  wanted: number;
  active: readonly Pod[];
  related: () => readonly Pod[];
  rules: DeletionRules;
}): Plan {
  const { wanted, active, related, rules } = options;
  if (active.length <= wanted) return { create: Math.min(burstReplicas, wanted - active.length), delete: [] };
  const count = Math.min(burstReplicas, active.length - wanted);
  if (count >= active.length) return { create: 0, delete: active };
  const podsOnNode = new Map<string, number>();
  for (const pod of related()) {
    const node = pod.spec.nodeName ?? "";
    if (isActive(pod)) podsOnNode.set(node, (podsOnNode.get(node) ?? 0) + 1);
  }
  const onSameNode = ({ spec }: Pod): number => podsOnNode.get(spec.nodeName ?? "") ?? 0;
  return { create: 0, delete: inDeletionOrder(active, onSameNode, rules).slice(0, count) };
}
