import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateReplicaCounts, validateReplicaSet, withImmutableSelector } from "./validation.ts";

/** Source: pkg/registry/apps/replicaset/strategy.go */
export const replicaSetStrategy: Strategy<ReplicaSet> = strategyOf<ReplicaSet>({
  namespaced: true,
  status: true,
  generation: true,
  prepareForCreate(next) {
    next.status = { replicas: 0 };
  },
  validateInSteps: withImmutableSelector(validateReplicaSet),
  template: specTemplate,
});

export const replicaSetStatusStrategy: Strategy<ReplicaSet> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next) => validateReplicaCounts(next.status),
});
