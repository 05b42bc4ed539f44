import { byCreation } from "@coxswain/apimachinery/objects/meta/creation";
import { scaledValue } from "@coxswain/apimachinery/objects/meta/int-or-string";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";

/** Replica counts used throughout a rollout. Source: pkg/controller/deployment/util/deployment_util.go */
export function desiredReplicas({ spec }: Deployment): number {
  return spec.replicas ?? 1;
}

/** `spec.replicas`, which is 1 when absent. */
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

/** Sum of `status.availableReplicas`; undefined elements count as 0. */
export function availableOf(sets: readonly (ReplicaSet | undefined)[]): number {
  return sets.reduce((sum, set) => sum + (set?.status?.availableReplicas ?? 0), 0);
}

/** Sum of `status.readyReplicas`; undefined elements count as 0. */
export function readyOf(sets: readonly (ReplicaSet | undefined)[]): number {
  return sets.reduce((sum, set) => sum + (set?.status?.readyReplicas ?? 0), 0);
}

/** ReplicaSets with `spec.replicas` above 0. */
export function activeSets(sets: readonly ReplicaSet[]): ReplicaSet[] {
  return sets.filter((set) => specReplicas(set) > 0);
}

export function isRollingUpdate({ spec }: Deployment): boolean {
  return spec.strategy?.type === "RollingUpdate";
}

/**
 * Surge and unavailability limits of a rollout in Pods. Percentages are rounded up for surge and down for
 * unavailability. When both are 0, one unavailable Pod is allowed; otherwise the rollout could not proceed.
 * Source: ResolveFenceposts
 */
export function fenceposts(deployment: Deployment): { maxSurge: number; maxUnavailable: number } {
  const { maxSurge = 0, maxUnavailable = 0 } = deployment.spec.strategy?.rollingUpdate ?? {};
  const desired = desiredReplicas(deployment);
  const surge = scaledValue(maxSurge, desired, true);
  const unavailable = scaledValue(maxUnavailable, desired, false);
  return surge === 0 && unavailable === 0 ? { maxSurge: 0, maxUnavailable: 1 } : { maxSurge: surge, maxUnavailable: unavailable };
}

/** Maximum number of Pods above `spec.replicas`; 0 unless the strategy is RollingUpdate. */
export function maxSurgeOf(deployment: Deployment): number {
  return isRollingUpdate(deployment) ? fenceposts(deployment).maxSurge : 0;
}

/** Maximum number of unavailable Pods; 0 unless the strategy is RollingUpdate. */
export function maxUnavailableOf(deployment: Deployment): number {
  if (!isRollingUpdate(deployment) || desiredReplicas(deployment) === 0) return 0;
  return Math.min(desiredReplicas(deployment), fenceposts(deployment).maxUnavailable);
}

/** Largest first; older first among equal sizes. */
export function bySizeOlder(a: ReplicaSet, b: ReplicaSet): number {
  return specReplicas(b) - specReplicas(a) || byCreation(a, b);
}

/** Largest first; newer first among equal sizes. */
export function bySizeNewer(a: ReplicaSet, b: ReplicaSet): number {
  return specReplicas(b) - specReplicas(a) || byCreation(b, a);
}
