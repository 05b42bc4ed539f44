import { byCreation } from "@coxswain/apimachinery/objects/meta/creation";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { countIn, desiredReplicasAnnotation, maxReplicasAnnotation } from "./annotations.ts";
import {
  activeSets,
  bySizeNewer,
  bySizeOlder,
  desiredReplicas,
  isRollingUpdate,
  maxSurgeOf,
  replicasOf,
  specReplicas,
} from "./replica-counts.ts";
import type { Resize } from "./rolling-update.ts";

/** Whether the Deployment was scaled since its ReplicaSets were last resized. Source: sync.go isScalingEvent */
export function wasScaled(deployment: Deployment, all: readonly ReplicaSet[]): boolean {
  return activeSets(all).some((set) => {
    const desired = countIn(set, desiredReplicasAnnotation);
    return desired !== undefined && desired !== desiredReplicas(deployment);
  });
}

/**
 * Pure: computes sizes after the Deployment was scaled. A single active ReplicaSet gets all replicas. When the new
 * ReplicaSet is saturated, old ones are scaled to 0. During a rolling update every ReplicaSet is scaled in proportion,
 * and the largest one absorbs the rounding difference.
 * Source: sync.go scale
 */
export function planScaling(deployment: Deployment, newSet: ReplicaSet | undefined, oldSets: readonly ReplicaSet[]): Resize[] {
  const desired = desiredReplicas(deployment);
  const only = activeOrLatest(newSet, oldSets);
  // also when the size is right, to update the annotations
  if (only !== undefined) return [{ replicaSet: only, replicas: desired }];
  if (isSaturated(deployment, newSet)) return activeSets(oldSets).map((replicaSet) => ({ replicaSet, replicas: 0 }));
  if (!isRollingUpdate(deployment)) return [];

  const active = activeSets([...oldSets, ...(newSet === undefined ? [] : [newSet])]);
  const allowed = desired > 0 ? desired + maxSurgeOf(deployment) : 0;
  const toAdd = allowed - replicasOf(active);
  const sorted = toAdd > 0 ? active.toSorted(bySizeNewer) : toAdd < 0 ? active.toSorted(bySizeOlder) : active;
  let added = 0;
  const sizes = sorted.map((replicaSet) => {
    const share = toAdd === 0 ? 0 : shareOf(replicaSet, deployment, toAdd, added);
    added += share;
    return { replicaSet, replicas: specReplicas(replicaSet) + share };
  });
  return sizes.map(({ replicaSet, replicas }, i) => ({
    replicaSet,
    replicas: i === 0 && toAdd !== 0 ? Math.max(0, replicas + toAdd - added) : replicas,
  }));
}

/**
 * The only active ReplicaSet, or the newest when none is active; undefined when several are active.
 * Source: FindActiveOrLatest
 */
function activeOrLatest(newSet: ReplicaSet | undefined, oldSets: readonly ReplicaSet[]): ReplicaSet | undefined {
  if (newSet === undefined && oldSets.length === 0) return undefined;
  const active = activeSets([...oldSets, ...(newSet === undefined ? [] : [newSet])]);
  if (active.length === 0) return newSet ?? oldSets.toSorted(byCreation).at(-1);
  return active.length === 1 ? active[0] : undefined;
}

function isSaturated(deployment: Deployment, newSet: ReplicaSet | undefined): boolean {
  if (newSet === undefined) return false;
  const desired = desiredReplicas(deployment);
  return (
    countIn(newSet, desiredReplicasAnnotation) === desired &&
    specReplicas(newSet) === desired &&
    (newSet.status?.availableReplicas ?? 0) === desired
  );
}

/** Source: deployment_util.go GetProportion, getReplicaSetFraction */
function shareOf(set: ReplicaSet, deployment: Deployment, toAdd: number, added: number): number {
  const size = specReplicas(set);
  if (size === 0 || toAdd === added) return 0;
  const allowed = toAdd - added;
  const fraction = fractionOf(set, deployment);
  return toAdd > 0 ? Math.min(fraction, allowed) : Math.max(fraction, allowed);
}

function fractionOf(set: ReplicaSet, deployment: Deployment): number {
  const size = specReplicas(set);
  if (desiredReplicas(deployment) === 0) return -size;
  const total = desiredReplicas(deployment) + maxSurgeOf(deployment);
  // The maximum at the last resize; without the annotation the observed count, which may lag.
  const before = countIn(set, maxReplicasAnnotation) ?? deployment.status?.replicas ?? 0;
  const scaled = (size * total) / before;
  return Math.sign(scaled) * Math.floor(Math.abs(scaled) + 0.5) - size;
}
