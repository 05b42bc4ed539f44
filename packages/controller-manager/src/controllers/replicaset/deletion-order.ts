import { createdAt } from "@coxswain/apimachinery/meta/creation";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isReady, readySince } from "../../pods/pod-state.ts";
import { byProgress, mostRestarts } from "../../pods/removal-order.ts";

/** A Pod with how many active Pods of its kin share its node. */
export interface RankedPod {
  readonly pod: Pod;
  readonly onSameNode: number;
}

/**
 * Which Pods go first when there are too many: not bound to a node before bound; Pending, Unknown, then Running; not
 * ready before ready; lower deletion cost first; those that share a node with more of their kin; ready for a shorter
 * time; more restarts; younger. Times count by magnitude only, so that Pods of about the same age fall as by lot.
 * Source: pkg/controller/controller_utils.go, ActivePodsWithRanks
 */
export function byDeletionOrder(now: number): (a: RankedPod, b: RankedPod) => number {
  return (left, right) => {
    const [a, b] = [left.pod, right.pod];
    return (
      byProgress(a, b) ||
      deletionCost(a) - deletionCost(b) ||
      right.onSameNode - left.onSameNode ||
      (isReady(a) && isReady(b) ? byAge(a, b, readySince(a), readySince(b), now) : 0) ||
      mostRestarts(b) - mostRestarts(a) ||
      byAge(a, b, createdAt(a), createdAt(b), now)
    );
  };
}

/** What is not a number in the form that the API accepts counts as 0. */
function deletionCost({ metadata }: Pod): number {
  const text = metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"] ?? "";
  return /^(0|-?[1-9]\d{0,9})$/.test(text) ? Number(text) : 0;
}

/** Younger first, no time at all before any; within one power of two by uid. */
function byAge(a: Pod, b: Pod, since: number | undefined, otherSince: number | undefined, now: number): number {
  if (since === otherSince) return 0;
  if (since === undefined || otherSince === undefined) return since === undefined ? -1 : 1;
  const difference = magnitude(now - since) - magnitude(now - otherSince);
  if (difference !== 0) return difference;
  return (a.metadata.uid ?? "") < (b.metadata.uid ?? "") ? -1 : 1;
}

/** Of a duration in nanoseconds, as upstream counts them. */
function magnitude(durationMs: number): number {
  return durationMs > 0 ? Math.floor(Math.log2(durationMs * 1e6)) : -1;
}
