import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { keep, statusStrategyOf } from "../../strategies.ts";
import { validatePersistentVolume, validatePersistentVolumeUpdate } from "./validation.ts";

/** Source: pkg/registry/core/persistentvolume/strategy.go */
export const persistentVolumeStrategy: Strategy<PersistentVolume> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next) {
    next.status = { phase: "Pending" };
  },
  prepareForUpdate: (next, current) => keep(next, current, "status"),
  validateInSteps(next, current, ctx) {
    const oncePod = ctx.featureEnabled("ReadWriteOncePod");
    return current ? validatePersistentVolumeUpdate(next, current, oncePod) : validatePersistentVolume(next, oncePod);
  },
};

export const persistentVolumeStatusStrategy: Strategy<PersistentVolume> = statusStrategyOf({ namespaced: false });
