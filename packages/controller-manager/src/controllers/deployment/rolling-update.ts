import { byCreation } from "@coxswain/apimachinery/meta/creation";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import {
  activeSets,
  availableOf,
  fenceposts,
  isRollingUpdate,
  maxUnavailableOf,
  replicasOf,
  specReplicas,
  wantedOf,
} from "./replica-counts.ts";

/** A ReplicaSet and how many replicas it should be asked for. */
export interface Resize {
  readonly replicaSet: ReplicaSet;
  readonly replicas: number;
}

/**
 * How many replicas the newest set gets now: as many as fit under wanted + maxSurge in a rolling update, all at once
 * otherwise. Source: deployment_util.go NewRSNewReplicas
 */
export function newSetReplicas(deployment: Deployment, all: readonly ReplicaSet[], current: number): number {
  const wanted = wantedOf(deployment);
  if (!isRollingUpdate(deployment)) return wanted;
  const room = wanted + fenceposts(deployment).maxSurge - replicasOf(all);
  return room <= 0 ? current : current + Math.min(room, wanted - current);
}

/** Pure: one step up. undefined when the newest set is as big as it may be. Source: rolling.go reconcileNewReplicaSet */
export function planScaleUp(deployment: Deployment, newSet: ReplicaSet, all: readonly ReplicaSet[]): Resize | undefined {
  const wanted = wantedOf(deployment);
  const current = specReplicas(newSet);
  if (current === wanted) return undefined;
  const replicas = current > wanted ? wanted : newSetReplicas(deployment, all, current);
  return replicas === current ? undefined : { replicaSet: newSet, replicas };
}

/**
 * Pure: one step down. First what is not available anyway, then as much as leaves wanted - maxUnavailable available,
 * oldest sets first; never so much that a newest set that does not come up would take the service with it.
 * Source: rolling.go reconcileOldReplicaSets
 */
export function planScaleDown(deployment: Deployment, newSet: ReplicaSet, oldSets: readonly ReplicaSet[]): Resize[] {
  if (replicasOf(oldSets) === 0) return [];
  const minAvailable = wantedOf(deployment) - maxUnavailableOf(deployment);
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

/** @returns false when a set has more available than it is asked for: these are about to go, and must not be counted on */
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
