import { semanticEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import { withImmutableSelector } from "../replicasets/validation.ts";
import { validateDeployment, validateDeploymentStatus } from "./validation.ts";

/** Source: pkg/registry/apps/deployment/strategy.go */
export const deploymentStrategy: Strategy<Deployment> = strategyOf<Deployment>({
  namespaced: true,
  status: true,
  generation: true,
  *prepareForUpdate(next, current) {
    // The controller copies annotations to ReplicaSets, so changing them counts as a change of the spec.
    if (!(yield* semanticEqualInSteps(next.metadata.annotations, current.metadata.annotations))) {
      next.metadata.generation = (current.metadata.generation ?? 0) + 1;
    }
  },
  validateInSteps: withImmutableSelector(validateDeployment),
  template: specTemplate,
});

export const deploymentStatusStrategy: Strategy<Deployment> = statusStrategyOf({
  namespaced: true,
  keepLabels: true,
  validateUpdate: (next, current) => validateDeploymentStatus(next.status, current.status),
});
