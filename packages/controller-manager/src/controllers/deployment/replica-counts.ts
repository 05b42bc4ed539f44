import { byCreation } from "@coxswain/apimachinery/meta/creation";
import { scaledValue } from "@coxswain/apimachinery/meta/int-or-string";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";

/** Questions that every part of a rollout asks. Source: pkg/controller/deployment/util/deployment_util.go */
export function wantedOf({ spec }: Deployment): number {
  return spec.replicas ?? 1;
}

export function specReplicas({ spec }: ReplicaSet): number {
  return spec.replicas ?? 1;
}

/** Sum of `spec.replicas`. */
export function replicasOf(sets: readonly (ReplicaSet | undefined)[]): number {
  return sets.reduce((sum, set) => sum + (set === undefined ? 0 : specReplicas(set)), 0);
}

/** Sum of `status.replicas`. */
export function actualReplicasOf(sets: readonly (ReplicaSet | undefined)[]): number {
  return sets.reduce((sum, set) => sum + (set?.status?.replicas ?? 0), 0);
}

export function availableOf(sets: readonly (ReplicaSet | undefined)[]): number {
  return sets.reduce((sum, set) => sum + (set?.status?.availableReplicas ?? 0), 0);
}

export function readyOf(sets: readonly (ReplicaSet | undefined)[]): number {
  return sets.reduce((sum, set) => sum + (set?.status?.readyReplicas ?? 0), 0);
}

/** Those that are asked for any replicas. */
export function activeSets(sets: readonly ReplicaSet[]): ReplicaSet[] {
  return sets.filter((set) => specReplicas(set) > 0);
}

export function isRollingUpdate({ spec }: Deployment): boolean {
  return spec.strategy?.type === "RollingUpdate";
}

/**
 * How many more and how many fewer than wanted there may be during a rollout. Percentages of surge round up, of
 * unavailability down; if both come to nothing one may be unavailable, or nothing could ever change.
 * Source: ResolveFenceposts
 */
export function fenceposts(deployment: Deployment): { maxSurge: number; maxUnavailable: number } {
  const { maxSurge = 0, maxUnavailable = 0 } = deployment.spec.strategy?.rollingUpdate ?? {};
  const wanted = wantedOf(deployment);
  const surge = scaledValue(maxSurge, wanted, true);
  const unavailable = scaledValue(maxUnavailable, wanted, false);
  return surge === 0 && unavailable === 0 ? { maxSurge: 0, maxUnavailable: 1 } : { maxSurge: surge, maxUnavailable: unavailable };
}

export function maxSurgeOf(deployment: Deployment): number {
  return isRollingUpdate(deployment) ? fenceposts(deployment).maxSurge : 0;
}

export function maxUnavailableOf(deployment: Deployment): number {
  if (!isRollingUpdate(deployment) || wantedOf(deployment) === 0) return 0;
  return Math.min(wantedOf(deployment), fenceposts(deployment).maxUnavailable);
}

/** Biggest first; of one size the older first. */
export function bySizeOlder(a: ReplicaSet, b: ReplicaSet): number {
  return specReplicas(b) - specReplicas(a) || byCreation(a, b);
}

/** Biggest first; of one size the younger first. */
export function bySizeNewer(a: ReplicaSet, b: ReplicaSet): number {
  return specReplicas(b) - specReplicas(a) || byCreation(b, a);
}
