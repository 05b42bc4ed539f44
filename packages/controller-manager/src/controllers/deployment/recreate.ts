import type { ReplicaSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isFinished } from "../../pods/pod-state.ts";
import { activeSets, actualReplicasOf } from "./replica-counts.ts";
import type { Resize } from "./rolling-update.ts";

/** Pure: everything old goes to nothing. Source: recreate.go scaleDownOldReplicaSetsForRecreate */
export function planScaleDownAll(oldSets: readonly ReplicaSet[]): Resize[] {
  return activeSets(oldSets).map((replicaSet) => ({ replicaSet, replicas: 0 }));
}

/**
 * True as long as a Pod of an old template may still run: nothing new is started before. A Pod of an unknown phase may.
 * @param podsOf what each ReplicaSet of the deployment owns, by the set's uid
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
