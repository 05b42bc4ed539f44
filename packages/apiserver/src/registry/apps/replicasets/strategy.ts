import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { podValidationOptions } from "../../core/pods/validation/options.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import { immutableSelector, validateReplicaCounts, validateReplicaSet } from "./validation.ts";

/** Source: pkg/registry/apps/replicaset/strategy.go */
export const replicaSetStrategy: Strategy<ReplicaSet> = strategyOf<ReplicaSet>({
  namespaced: true,
  status: true,
  generation: true,
  prepareForCreate(next) {
    next.status = { replicas: 0 };
  },
  *validateInSteps(next, current, ctx) {
    const errors = yield* validateReplicaSet(next, podValidationOptions(ctx.featureEnabled, current?.spec?.template));
    if (current === undefined) return errors;
    return [...errors, ...immutableSelector(next.spec?.selector, current.spec?.selector, "spec.selector")];
  },
  template: specTemplate,
});

export const replicaSetStatusStrategy: Strategy<ReplicaSet> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next) => validateReplicaCounts(next.status),
});
