import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { byProgress, type Rank, rankOf } from "../../pods/removal-order.ts";

/** What the order goes by besides the Pods themselves. */
export interface DeletionRules {
  readonly now: number;
  /** The gate PodDeletionCost: users may say which Pods they would miss most. */
  readonly byCost: boolean;
  /** The gate LogarithmicScaleDown: times count by magnitude only, so that Pods of about the same age fall as by lot. */
  readonly byMagnitude: boolean;
}

interface DeletionRank extends Rank {
  readonly cost: number;
  /** How many active Pods of its kin share its node. */
  readonly onSameNode: number;
}

/**
 * Which Pods go first when there are too many: not bound to a node before bound; Pending, Unknown, then Running; not
 * ready before ready; lower deletion cost first; those that share a node with more of their kin; ready for a shorter
 * time; more restarts; younger.
 * @param onSameNode how many active Pods of its kin share a Pod's node
 * Source: pkg/controller/controller_utils.go, ActivePodsWithRanks
 */
export function inDeletionOrder(pods: readonly Pod[], onSameNode: (pod: Pod) => number, rules: DeletionRules): Pod[] {
  return pods
    .map((pod): DeletionRank => ({ ...rankOf(pod), cost: rules.byCost ? deletionCost(pod) : 0, onSameNode: onSameNode(pod) }))
    .sort(
      (a, b) =>
        byProgress(a, b) ||
        a.cost - b.cost ||
        b.onSameNode - a.onSameNode ||
        (a.isReady && b.isReady ? byAge(a, b, a.readySince, b.readySince, rules) : 0) ||
        b.restarts - a.restarts ||
        byAge(a, b, a.createdAt, b.createdAt, rules),
    )
    .map(({ pod }) => pod);
}

/** What is not a number in the form that the API accepts counts as 0. */
function deletionCost({ metadata }: Pod): number {
  const text = metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"] ?? "";
  return /^(0|-?[1-9]\d{0,9})$/.test(text) ? Number(text) : 0;
}

/** Younger first, no time at all before any; within one power of two by uid. */
function byAge(
  { pod: a }: Rank,
  { pod: b }: Rank,
  since: number | undefined,
  otherSince: number | undefined,
  { now, byMagnitude }: DeletionRules,
): number {
  if (since === otherSince) return 0;
  if (since === undefined || otherSince === undefined) return since === undefined ? -1 : 1;
  if (!byMagnitude) return otherSince - since;
  const difference = magnitude(now - since) - magnitude(now - otherSince);
  if (difference !== 0) return difference;
  return (a.metadata.uid ?? "") < (b.metadata.uid ?? "") ? -1 : 1;
}

/** Of a duration in nanoseconds, as upstream counts them. */
function magnitude(durationMs: number): number {
  return durationMs > 0 ? Math.floor(Math.log2(durationMs * 1e6)) : -1;
}
