import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { podValidationOptions } from "../../core/pods/validation/options.ts";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateStatefulSet, validateStatefulSetStatus, validateStatefulSetUpdate } from "./validation.ts";

/** Source: pkg/registry/apps/statefulset/strategy.go */
export const statefulSetStrategy: Strategy<StatefulSet> = strategyOf<StatefulSet>({
  namespaced: true,
  status: true,
  generation: true,
  prepareForCreate(next, ctx) {
    next.status = { replicas: 0, availableReplicas: 0 };
    defaultClaimPolicy(next, ctx);
  },
  prepareForUpdate: (next, _current, ctx) => defaultClaimPolicy(next, ctx),
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

function defaultClaimPolicy({ spec }: StatefulSet, ctx: StrategyContext): void {
  if (!spec || !ctx.featureEnabled("StatefulSetAutoDeletePVC")) return;
  const { whenDeleted, whenScaled } = spec.persistentVolumeClaimRetentionPolicy ?? {};
  spec.persistentVolumeClaimRetentionPolicy = { whenDeleted: whenDeleted || "Retain", whenScaled: whenScaled || "Retain" };
}
