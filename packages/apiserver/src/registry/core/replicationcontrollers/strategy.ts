import { addErrors, type FieldError, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type { ReplicationController } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { validateReplicaCounts } from "../../apps/replicasets/validation.ts";
import { nonNegative } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { specTemplate, statusStrategyOf, strategyOf } from "../../strategies.ts";
import { type PodValidationOptions, podValidationOptions } from "../pods/validation/options.ts";
import { validateSelectedTemplate } from "../pods/validation/pod-template.ts";

/** Source: pkg/registry/core/replicationcontroller/strategy.go, pkg/apis/core/validation ValidateReplicationController */
export const replicationControllerStrategy: Strategy<ReplicationController> = strategyOf<ReplicationController>({
  namespaced: true,
  status: true,
  generation: true,
  template: specTemplate,
  prepareForCreate(next) {
    next.status = { replicas: 0 };
  },
  // v1 deletes a controller without its pods by default.
  defaultGarbageCollection: "Orphan",
  validateInSteps: (next, current, ctx) =>
    validateController(next, podValidationOptions(ctx.featureEnabled, current?.spec?.template)),
});

export const replicationControllerStatusStrategy: Strategy<ReplicationController> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next) => validateReplicaCounts(next.status),
});

function* validateController(controller: ReplicationController, options: PodValidationOptions): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  const { spec = {} } = controller;
  errors.push(...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"));
  if (Object.keys(spec.selector ?? {}).length === 0) errors.push(required("spec.selector", ""));
  errors.push(...nonNegative(spec.replicas, "spec.replicas"));
  const { template, replicas = 0 } = spec;
  yield;
  const { selector = {} } = spec; // not validated, like upstream
  const selected = {
    template,
    selector: { matches: hasLabels(selector) },
    replicated: replicas > 1,
    kind: "ReplicationController",
  };
  addErrors(errors, yield* validateSelectedTemplate(selected, "spec.template", options));
  return errors;
}

function hasLabels(wanted: Readonly<Record<string, string>>): (labels: Readonly<Record<string, string>> | undefined) => boolean {
  return (labels = {}) => Object.keys(wanted).every((key) => Object.hasOwn(labels, key) && labels[key] === wanted[key]);
}
