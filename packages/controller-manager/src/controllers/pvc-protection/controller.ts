import type { Controller } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { isTerminated } from "../../volumes/pod-volumes.ts";
import { claimKeysOf, podsByClaim } from "../../volumes/pods-by-claim.ts";
import { newProtectionController } from "../../volumes/protection.ts";
import { isShutDown, usesClaim } from "./claim-usage.ts";

/**
 * pvc-protection-controller: keeps a deleted claim until no scheduled Pod uses it.
 * Source: pkg/controller/volume/pvcprotection
 */
export function newPvcProtectionController(ctx: ControllerContext): Controller {
  const podInformer = ctx.informers.for<Pod>(pods);
  const usersOf = podsByClaim(podInformer);

  /**
   * Checks the API server before reporting the claim unused: deleting the claim of a Pod that is not cached yet would
   * lose its data.
   */
  const isUsed = async (claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> => {
    if (usersOf(keyOf(claim)).some((pod) => usesClaim(pod, claim))) return true;
    const { items } = await ctx.client.list<Pod>(pods, { namespace: claim.metadata.namespace }, { signal });
    return items.some((pod) => usesClaim(pod, claim));
  };

  return newProtectionController(ctx, {
    name: "pvcprotection",
    ref: persistentVolumeClaims,
    finalizer: "kubernetes.io/pvc-protection",
    sources: [enqueueBy(podInformer, (queue) => podHandlers(queue))],
    isUsed,
  });
}

/** Only deleted, finished or unscheduled Pods can release a claim. */
function podHandlers({ enqueue }: SourceQueue) {
  const enqueueClaims = (pod: Pod): void => {
    for (const key of claimKeysOf(pod)) enqueue(key);
  };
  const podChanged = (pod: Pod): void => {
    if (!pod.spec.nodeName || isTerminated(pod) || isShutDown(pod)) enqueueClaims(pod);
  };
  return { added: podChanged, updated: (_: Pod, now: Pod) => podChanged(now), deleted: enqueueClaims };
}
