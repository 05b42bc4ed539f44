import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import { withImmutableSelector } from "../replicasets/validation.ts";
import { countTemplateGeneration, keepTemplateGeneration, startTemplateGeneration } from "./template-generation.ts";
import { validateDaemonSet, validateDaemonSetStatus } from "./validation.ts";

/** Source: pkg/registry/apps/daemonset/strategy.go */
export const daemonSetStrategy: Strategy<DaemonSet> = strategyOf<DaemonSet>({
  namespaced: true,
  status: true,
  generation: true,
  prepareForCreate(next) {
    next.status = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
    startTemplateGeneration(next);
  },
  prepareForUpdate: countTemplateGeneration,
  validateInSteps: withImmutableSelector(validateDaemonSet),
  template: specTemplate,
});

export const daemonSetStatusStrategy: Strategy<DaemonSet> = statusStrategyOf({
  namespaced: true,
  prepareForUpdate: keepTemplateGeneration,
  validateUpdate: (next, current) => validateDaemonSetStatus(next, current),
});
