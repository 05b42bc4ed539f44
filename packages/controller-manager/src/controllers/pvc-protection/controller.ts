import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { isTerminated } from "../../volumes/pod-volumes.ts";
import { claimKeysOf, podsByClaim } from "../../volumes/pods-by-claim.ts";
import { protectionStep, withFinalizer, withoutFinalizer } from "../../volumes/protection.ts";
import { isShutDown, usesClaim } from "./use.ts";

const finalizer = "kubernetes.io/pvc-protection";

/**
 * pvc-protection-controller: a claim that is deleted while Pods on nodes use it stays until the last of them is gone.
 * Source: pkg/controller/volume/pvcprotection
 */
export function newPvcProtectionController(ctx: ControllerContext): Controller {
  const claims = ctx.informers.for<PersistentVolumeClaim>(persistentVolumeClaims);
  const podInformer = ctx.informers.for<Pod>(pods);
  const usersOf = podsByClaim(podInformer);

  /** Asks the server too before it says no: a Pod that is not in the cache yet would lose its data. */
  const isUsed = async (claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> => {
    if (usersOf(keyOf(claim)).some((pod) => usesClaim(pod, claim))) return true;
    const { items } = await ctx.client.list<Pod>(pods, { namespace: claim.metadata.namespace }, { signal });
    return items.some((pod) => usesClaim(pod, claim));
  };

  return newController({
    name: "pvcprotection",
    sources: [enqueueSelf(claims), enqueueBy(podInformer, (queue) => podHandlers(queue))],
    async reconcile(key, signal): Promise<Result> {
      const claim = claims.lister.get(key);
      const step = claim === undefined ? "none" : protectionStep(claim, finalizer);
      if (claim === undefined || step === "none") return done;
      if (step === "check" && (await isUsed(claim, signal))) {
        ctx.log.v(2)?.info("Keeping PVC because it is being used", { claim: key });
        return done;
      }
      const changed = step === "add" ? withFinalizer(claim, finalizer) : withoutFinalizer(claim, finalizer);
      try {
        await ctx.client.update(persistentVolumeClaims, changed, { signal });
      } catch (err) {
        if (!isNotFound(err)) throw err;
      }
      return done;
    },
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.metrics,
  });
}

/** Only a Pod that went, ended, or was never placed can free a claim. */
function podHandlers({ enqueue }: SourceQueue) {
  const free = (pod: Pod): void => {
    for (const key of claimKeysOf(pod)) enqueue(key);
  };
  const look = (pod: Pod): void => {
    if (!pod.spec.nodeName || isTerminated(pod) || isShutDown(pod)) free(pod);
  };
  return { added: look, updated: (_: Pod, now: Pod) => look(now), deleted: free };
}
