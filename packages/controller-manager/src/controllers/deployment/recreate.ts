import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isFinished } from "../../pods/pod-state.ts";
import { activeSets, actualReplicasOf } from "./replica-counts.ts";
import type { Resize } from "./rolling-update.ts";

/** Pure: scales all old ReplicaSets to 0. Source: recreate.go scaleDownOldReplicaSetsForRecreate */
export function planScaleDownAll(oldSets: readonly ReplicaSet[]): Resize[] {
  return activeSets(oldSets).map((replicaSet) => ({ replicaSet, replicas: 0 }));
}

/**
 * True while a Pod of an old template may still run, including Pods without a phase. No new Pod is created before that.
 * @param podsOf Pods of each ReplicaSet of the Deployment, by the ReplicaSet's uid
 * Source: recreate.go oldPodsRunning
 */
export function oldPodsRun(
  newSet: ReplicaSet | undefined,
  oldSets: readonly ReplicaSet[],
  podsOf: ReadonlyMap<string, readonly Pod[]>,
): boolean {
  if (actualReplicasOf(oldSets) > 0) return true;
  for (const [uid, pods] of podsOf) {
    if (uid === newSet?.metadata.uid) continue;
    if (pods.some(({ status }) => !isFinished(status?.phase))) return true;
  }
  return false;
}
