import { byCreation } from "@coxswain/apimachinery/objects/meta/creation";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import {
  activeSets,
  availableOf,
  desiredReplicas,
  fenceposts,
  isRollingUpdate,
  maxUnavailableOf,
  replicasOf,
  specReplicas,
} from "./replica-counts.ts";

/** A ReplicaSet and its new `spec.replicas`. */
export interface Resize {
  readonly replicaSet: ReplicaSet;
  readonly replicas: number;
}

/**
 * Size of the new ReplicaSet for the next step: limited by maxSurge in a rolling update, otherwise all replicas.
 * Source: deployment_util.go NewRSNewReplicas
 */
export function newSetReplicas(deployment: Deployment, all: readonly ReplicaSet[], current: number): number {
  const desired = desiredReplicas(deployment);
  if (!isRollingUpdate(deployment)) return desired;
  const room = desired + fenceposts(deployment).maxSurge - replicasOf(all);
  return room <= 0 ? current : current + Math.min(room, desired - current);
}

/**
 * Pure: next scale-up of the new ReplicaSet; undefined when its size does not change.
 * Source: rolling.go reconcileNewReplicaSet
 */
export function planScaleUp(deployment: Deployment, newSet: ReplicaSet, all: readonly ReplicaSet[]): Resize | undefined {
  const desired = desiredReplicas(deployment);
  const current = specReplicas(newSet);
  if (current === desired) return undefined;
  const replicas = current > desired ? desired : newSetReplicas(deployment, all, current);
  return replicas === current ? undefined : { replicaSet: newSet, replicas };
}

/**
 * Pure: next scale-down of the old ReplicaSets. Removes unavailable replicas first, then available ones, oldest
 * ReplicaSet first, down to desired - maxUnavailable available replicas. Unavailable replicas of the new ReplicaSet
 * reduce the limit, so a new version that does not become available cannot take the service down.
 * Source: rolling.go reconcileOldReplicaSets
 */
export function planScaleDown(deployment: Deployment, newSet: ReplicaSet, oldSets: readonly ReplicaSet[]): Resize[] {
  if (replicasOf(oldSets) === 0) return [];
  const minAvailable = desiredReplicas(deployment) - maxUnavailableOf(deployment);
  const newUnavailable = specReplicas(newSet) - (newSet.status?.availableReplicas ?? 0);
  const most = replicasOf([...oldSets, newSet]) - minAvailable - newUnavailable;
  if (most <= 0) return [];

  const sizes = new Map(
    activeSets(oldSets)
      .toSorted(byCreation)
      .map((set) => [set, specReplicas(set)]),
  );
  const countsAreTrue = cleanUpUnhealthy(sizes, most);
  if (countsAreTrue) scaleDownAvailable(sizes, availableOf([...oldSets, newSet]) - minAvailable);
  return [...sizes]
    .filter(([set, replicas]) => replicas !== specReplicas(set))
    .map(([replicaSet, replicas]) => ({ replicaSet, replicas }));
}

/**
 * Removes unavailable replicas from `sizes`.
 * @returns false when a ReplicaSet has more available replicas than its size; the excess is about to be deleted and
 * must not be counted as available
 */
function cleanUpUnhealthy(sizes: Map<ReplicaSet, number>, most: number): boolean {
  let left = most;
  for (const [set, replicas] of sizes) {
    if (left <= 0) break;
    const unhealthy = replicas - (set.status?.availableReplicas ?? 0);
    if (unhealthy < 0) return false;
    const down = Math.min(left, unhealthy);
    sizes.set(set, replicas - down);
    left -= down;
  }
  return true;
}

function scaleDownAvailable(sizes: Map<ReplicaSet, number>, most: number): void {
  let left = most;
  for (const [set, replicas] of sizes) {
    if (left <= 0) return;
    const down = Math.min(left, replicas);
    sizes.set(set, replicas - down);
    left -= down;
  }
}
