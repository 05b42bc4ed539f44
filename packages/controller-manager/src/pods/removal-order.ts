import { createdAt } from "@coxswain/apimachinery/meta/creation";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isReady, readySince } from "./pod-state.ts";

/**
 * Which of several active Pods are given up first: those that are less far on, then those ready for a shorter time,
 * restarted more often, younger.
 * Source: pkg/controller/controller_utils.go, ActivePods
 */
export function byRemovalOrder(a: Pod, b: Pod): number {
  return (
    byProgress(a, b) ||
    (isReady(a) && isReady(b) ? laterFirst(readySince(a), readySince(b)) : 0) ||
    mostRestarts(b) - mostRestarts(a) ||
    laterFirst(createdAt(a), createdAt(b))
  );
}

/** Not bound to a node before bound; Pending, Unknown, then Running; not ready before ready. */
export function byProgress(a: Pod, b: Pod): number {
  return (
    Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName)) ||
    phaseRank(a) - phaseRank(b) ||
    Number(isReady(a)) - Number(isReady(b))
  );
}

function phaseRank({ status }: Pod): number {
  return status?.phase === "Pending" ? 0 : status?.phase === "Running" ? 2 : 1;
}

/** No time at all counts as the latest. */
function laterFirst(a: number | undefined, b: number | undefined): number {
  const [left, right] = [a ?? Number.MAX_SAFE_INTEGER, b ?? Number.MAX_SAFE_INTEGER];
  return right - left;
}

export function mostRestarts({ status }: Pod): number {
  return Math.max(0, ...(status?.containerStatuses ?? []).map(({ restartCount }) => restartCount));
}
