import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { PersistentVolume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { persistentVolumes } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { protectionStep, withFinalizer, withoutFinalizer } from "../../volumes/protection.ts";

const finalizer = "kubernetes.io/pv-protection";

/**
 * pv-protection-controller: a volume that is deleted while it is bound to a claim stays until it is no longer.
 * Source: pkg/controller/volume/pvprotection
 */
export function newPvProtectionController(ctx: ControllerContext): Controller {
  const volumes = ctx.informers.for<PersistentVolume>(persistentVolumes);
  return newController({
    name: "pvprotection",
    sources: [enqueueSelf(volumes)],
    async reconcile(key, signal): Promise<Result> {
      const volume = volumes.lister.get(key);
      const step = volume === undefined ? "none" : protectionStep(volume, finalizer);
      if (volume === undefined || step === "none" || (step === "check" && volume.status?.phase === "Bound")) return done;
      const changed = step === "add" ? withFinalizer(volume, finalizer) : withoutFinalizer(volume, finalizer);
      try {
        await ctx.client.update(persistentVolumes, changed, { signal });
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
