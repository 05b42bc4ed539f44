import type { Controller } from "@coxswain/apimachinery/controller/controller";
import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { newProtectionController } from "../../volumes/protection.ts";

/**
 * pv-protection-controller: keeps a deleted PersistentVolume while it is bound to a claim.
 * Source: pkg/controller/volume/pvprotection
 */
export function newPvProtectionController(ctx: ControllerContext): Controller {
  return newProtectionController<PersistentVolume>(ctx, {
    name: "pvprotection",
    ref: persistentVolumes,
    finalizer: "kubernetes.io/pv-protection",
    isUsed: ({ status }) => status?.phase === "Bound",
  });
}
