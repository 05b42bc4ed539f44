import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { byProgress, type Rank, rankOf } from "../../pods/removal-order.ts";

/** Parameters of the deletion order. */
export interface DeletionRules {
  readonly now: number;
  /** Feature gate PodDeletionCost: honors the pod-deletion-cost annotation. */
  readonly byCost: boolean;
  /**
   * Feature gate LogarithmicScaleDown: compares times on a logarithmic scale, so that the order among Pods of similar
   * age is pseudo-random.
   */
  readonly byMagnitude: boolean;
}

interface DeletionRank extends Rank {
  readonly cost: number;
  /** Number of related active Pods on the same node. */
  readonly onSameNode: number;
}

/**
 * Sorts Pods by deletion priority: unscheduled first; Pending, Unknown, Running; not ready first; lower deletion cost
 * first; more related Pods on the same node first; ready for a shorter time; more restarts; younger.
 * @param onSameNode number of related active Pods on a Pod's node
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

/** Value of the annotation; 0 when it is malformed or no 32-bit integer. Leading zeros only after a minus sign, as upstream. */
function deletionCost({ metadata }: Pod): number {
  const text = metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"] ?? "";
  const cost = /^(0|[1-9]\d*|-\d+)$/.test(text) ? Number(text) : 0;
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? cost : 0;
}

/** Younger first, undefined times before others; equal magnitudes are ordered by uid. */
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

/** Binary logarithm of a duration in nanoseconds, as upstream computes it. */
function magnitude(durationMs: number): number {
  return durationMs > 0 ? Math.floor(Math.log2(durationMs * 1e6)) : -1;
}
