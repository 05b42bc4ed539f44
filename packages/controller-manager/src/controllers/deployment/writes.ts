import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { deployments, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { replicaAnnotations } from "./annotations.ts";
import type { Rollout } from "./context.ts";
import { desiredReplicas, maxSurgeOf, specReplicas } from "./replica-counts.ts";
import type { Resize } from "./rolling-update.ts";

/**
 * Updates the status (and annotations) and continues with the returned metadata, so that the next write has the
 * current resourceVersion.
 */
export async function writeDeploymentStatus(rollout: Rollout, changed: Deployment): Promise<void> {
  const { ctx, signal } = rollout;
  const stored = await ctx.client.update<Deployment>(deployments, changed, {
    subresource: "status",
    readsMetadataOnly: true,
    signal,
  });
  rollout.deployment = { ...changed, metadata: stored.metadata };
}

/**
 * Updates the size of a ReplicaSet and the annotations that detect later scaling, and records an Event when the size changed.
 * @returns the stored ReplicaSet
 * Source: sync.go scaleReplicaSet
 */
export async function resizeSet(rollout: Rollout, { replicaSet, replicas }: Resize): Promise<ReplicaSet> {
  const { ctx, deployment, signal } = rollout;
  const current = specReplicas(replicaSet);
  const counts = replicaAnnotations(desiredReplicas(deployment), desiredReplicas(deployment) + maxSurgeOf(deployment));
  const annotations = { ...replicaSet.metadata.annotations, ...counts };
  if (current === replicas && deepEqual(annotations, replicaSet.metadata.annotations ?? {})) return replicaSet;
  const changed = { ...replicaSet, metadata: { ...replicaSet.metadata, annotations }, spec: { ...replicaSet.spec, replicas } };
  const stored = await ctx.client.update<ReplicaSet>(replicaSets, changed, { signal });
  if (current !== replicas) {
    const direction = replicas > current ? "up" : "down";
    const message = `Scaled ${direction} replica set ${replicaSet.metadata.name} to ${replicas}`;
    ctx.recorder.event(deployment, "Normal", "ScalingReplicaSet", message);
  }
  return stored;
}

/**
 * Applies the sizes sequentially.
 * @returns all sets, the resized ones in their stored state
 */
export async function resizeSets(
  rollout: Rollout,
  sets: readonly ReplicaSet[],
  resizes: readonly Resize[],
): Promise<ReplicaSet[]> {
  const changed = new Map<string | undefined, ReplicaSet>();
  for (const resize of resizes) changed.set(resize.replicaSet.metadata.uid, await resizeSet(rollout, resize));
  return sets.map((set) => changed.get(set.metadata.uid) ?? set);
}
