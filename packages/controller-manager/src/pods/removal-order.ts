import { createdAt } from "@coxswain/apimachinery/objects/meta/creation";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isReady, readySince } from "./pod-state.ts";

/** A Pod with its sort keys, extracted once because up to 100,000 Pods may be compared. */
export interface Rank {
  readonly pod: Pod;
  readonly isReady: boolean;
  /** In ms since the epoch, as `createdAt`; undefined when unknown. */
  readonly readySince: number | undefined;
  readonly restarts: number;
  readonly createdAt: number | undefined;
}

/** `restarts` is the largest number of restarts of a container. */
export function rankOf(pod: Pod): Rank {
  return {
    pod,
    isReady: isReady(pod),
    readySince: readySince(pod),
    restarts: Math.max(0, ...(pod.status?.containerStatuses ?? []).map(({ restartCount }) => restartCount)),
    createdAt: createdAt(pod),
  };
}

/**
 * Sorts Pods by removal priority: less progress first, then ready for a shorter time, more restarts, younger.
 * Source: pkg/controller/controller_utils.go, ActivePods
 */
export function inRemovalOrder(pods: readonly Pod[]): Pod[] {
  if (pods.length < 2) return [...pods];
  return pods
    .map(rankOf)
    .sort(byRank)
    .map(({ pod }) => pod);
}

function byRank(a: Rank, b: Rank): number {
  return (
    byProgress(a, b) ||
    (a.isReady && b.isReady ? laterFirst(a.readySince, b.readySince) : 0) ||
    b.restarts - a.restarts ||
    laterFirst(a.createdAt, b.createdAt)
  );
}

/** Unscheduled first; then Pending, Unknown, Running; then not ready first. */
export function byProgress(a: Rank, b: Rank): number {
  return (
    Number(Boolean(a.pod.spec.nodeName)) - Number(Boolean(b.pod.spec.nodeName)) ||
    phaseRank(a.pod) - phaseRank(b.pod) ||
    Number(a.isReady) - Number(b.isReady)
  );
}

function phaseRank({ status }: Pod): number {
  return status?.phase === "Pending" ? 0 : status?.phase === "Running" ? 2 : 1;
}

/** Later times first; an undefined time counts as the latest. */
function laterFirst(a: number | undefined, b: number | undefined): number {
  const [left, right] = [a ?? Number.MAX_SAFE_INTEGER, b ?? Number.MAX_SAFE_INTEGER];
  return right - left;
}
