import { addErrors, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject, LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import { goLabelSelector } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { ReplicaSet, ReplicaSetSpec } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { type PodValidationOptions, podValidationOptions } from "../../core/pods/validation/options.ts";
import { readSelector, validateSelectedTemplate } from "../../core/pods/validation/pod-template.ts";
import { checkingLabelSelector, fieldImmutableText, isEmptySelector, nonNegative } from "../../field-checks.ts";
import type { StrategyContext } from "../../generic/strategy.ts";

const selectorPath = "spec.selector";

/** Source: pkg/apis/apps/validation ValidateReplicaSet */
export function* validateReplicaSet(replicaSet: ReplicaSet, options: PodValidationOptions): Steps<FieldError[]> {
  const spec = replicaSet.spec ?? {};
  const errors = nonNegative(spec.replicas, "spec.replicas");
  errors.push(...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"));
  addErrors(errors, yield* checkSelector(spec.selector, "empty selector is invalid for deployment"));
  addErrors(errors, yield* validateReplicatedTemplate(spec, options));
  return errors;
}

/** Validates a template and its selector; an invalid selector is the only error reported. */
export function* validateReplicatedTemplate(
  { template, selector, replicas = 0 }: Partial<ReplicaSetSpec>,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const read = readSelector(selector);
  if (!read) return [invalidValue(selectorPath, goLabelSelector(selector), "invalid label selector")];
  const selected = { template, selector: read, replicated: replicas > 1, kind: "ReplicaSet" };
  return yield* validateSelectedTemplate(selected, "spec.template", options);
}

/** A required selector that must not be empty. @param emptyText error text for an empty selector */
export function* checkSelector(selector: LabelSelector | undefined, emptyText: string): Steps<FieldError[]> {
  if (!selector) return [required(selectorPath, "")];
  const errors = yield* checkingLabelSelector(selector, selectorPath);
  if (isEmptySelector(selector)) errors.push(invalidValue(selectorPath, goLabelSelector(selector), emptyText));
  return errors;
}

/** `validateInSteps` of kinds of apps/v1 whose selectors are immutable. */
export const withImmutableSelector = <T extends KubeObject & { spec?: { selector?: LabelSelector; template?: PodTemplateSpec } }>(
  validate: (next: T, options: PodValidationOptions) => Steps<FieldError[]>,
) =>
  function* (next: T, current: T | undefined, { featureEnabled }: StrategyContext): Steps<FieldError[]> {
    const errors = yield* validate(next, podValidationOptions(featureEnabled, current?.spec?.template));
    const selector = next.spec?.selector;
    if (current === undefined || semanticEqual(selector, current.spec?.selector)) return errors;
    return [...errors, invalidValue(selectorPath, goLabelSelector(selector), fieldImmutableText)];
  };

interface Counts {
  replicas?: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  observedGeneration?: number;
}

/**
 * Counts of a status, shared with ReplicationControllers: none is negative or above `replicas`, and available ones are ready.
 * Source: pkg/apis/apps/validation ValidateReplicaSetStatus
 */
export function validateReplicaCounts(next: Counts | undefined): FieldError[] {
  const status = next ?? {};
  const errors: FieldError[] = [];
  for (const field of ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"] as const) {
    errors.push(...nonNegative(status[field], `status.${field}`));
  }
  return [...errors, ...countsAboveTotal(status, ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"])];
}

/** The counts of `fields` are at most `replicas`, and available ones are ready. */
export function countsAboveTotal<K extends string>(
  status: Readonly<Partial<Record<K | "replicas" | "readyReplicas" | "availableReplicas", number>>>,
  fields: readonly K[],
): FieldError[] {
  const { replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  const errors: FieldError[] = [];
  for (const field of fields) {
    const value = status[field] ?? 0;
    if (value > replicas) errors.push(invalidValue(`status.${field}`, value, "cannot be greater than status.replicas"));
  }
  if (availableReplicas > readyReplicas) {
    errors.push(invalidValue("status.availableReplicas", availableReplicas, "cannot be greater than readyReplicas"));
  }
  return errors;
}

/** collisionCount must not decrease. @param current the stored count */
export function neverDecremented(next: number | undefined, current: number | undefined): FieldError[] {
  const decremented = current !== undefined && (next === undefined || next < current);
  return decremented ? [invalidValue("status.collisionCount", next ?? 0, "cannot be decremented")] : [];
}
