import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { podValidationOptions } from "../../core/pods/validation/options.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateStatefulSet, validateStatefulSetStatus, validateStatefulSetUpdate } from "./validation.ts";

/** Source: pkg/registry/apps/statefulset/strategy.go */
export const statefulSetStrategy: Strategy<StatefulSet> = strategyOf<StatefulSet>({
  namespaced: true,
  status: true,
  generation: true,
  prepareForCreate(next, ctx) {
    next.status = { replicas: 0, availableReplicas: 0 };
    settleGated(next, undefined, ctx.featureEnabled);
  },
  prepareForUpdate: (next, current, ctx) => settleGated(next, current, ctx.featureEnabled),
  *validateInSteps(next, current, ctx) {
    const errors = yield* validateStatefulSet(next, podValidationOptions(ctx.featureEnabled, current?.spec?.template));
    return current === undefined ? errors : [...errors, ...(yield* validateStatefulSetUpdate(next, current))];
  },
  template: specTemplate,
});

export const statefulSetStatusStrategy: Strategy<StatefulSet> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next, current, ctx) => validateStatefulSetStatus(next, current, ctx.featureEnabled),
});

/** Drops fields of disabled features unless the stored object has them; sets defaults for those of enabled features. */
function settleGated(next: StatefulSet, current: StatefulSet | undefined, featureEnabled: (gate: string) => boolean): void {
  const { spec } = next;
  if (featureEnabled("StatefulSetAutoDeletePVC")) {
    const { whenDeleted, whenScaled } = spec?.persistentVolumeClaimRetentionPolicy ?? {};
    const policy = { whenDeleted: whenDeleted || "Retain", whenScaled: whenScaled || "Retain" };
    if (spec) spec.persistentVolumeClaimRetentionPolicy = policy;
  } else if (current?.spec?.persistentVolumeClaimRetentionPolicy === undefined) {
    delete spec?.persistentVolumeClaimRetentionPolicy;
  }
  if (!featureEnabled("StatefulSetMinReadySeconds") && !current?.spec?.minReadySeconds) delete spec?.minReadySeconds;
}
