import { addErrors, child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import { goLabelSelector } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { ReplicaSet, ReplicaSetSpec } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import { readSelector, validateSelectedTemplate } from "../../core/pods/validation/pod-template.ts";
import { checkingLabelSelector, fieldImmutableText, isEmptySelector, nonNegative } from "../../field-checks.ts";

/** Source: pkg/apis/apps/validation ValidateReplicaSet */
export function* validateReplicaSet(replicaSet: ReplicaSet, options: PodValidationOptions): Steps<FieldError[]> {
  const spec = replicaSet.spec ?? {};
  const errors = nonNegative(spec.replicas, "spec.replicas");
  errors.push(...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"));
  addErrors(errors, yield* checkSelector(spec.selector, "spec.selector", "empty selector is invalid for deployment"));
  addErrors(errors, yield* validateReplicatedTemplate(spec, "spec", options));
  return errors;
}

/** Validates a template and its selector; an invalid selector is the only error reported. */
export function* validateReplicatedTemplate(
  { template, selector, replicas = 0 }: Partial<ReplicaSetSpec>,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const read = readSelector(selector);
  if (!read) return [invalidValue(child(path, "selector"), goLabelSelector(selector), "invalid label selector")];
  const selected = { template, selector: read, replicated: replicas > 1, kind: "ReplicaSet" };
  return yield* validateSelectedTemplate(selected, child(path, "template"), options);
}

/** A required selector that must not be empty. @param emptyText error text for an empty selector */
export function* checkSelector(selector: LabelSelector | undefined, path: string, emptyText: string): Steps<FieldError[]> {
  if (!selector) return [required(path, "")];
  const errors = yield* checkingLabelSelector(selector, path);
  if (isEmptySelector(selector)) errors.push(invalidValue(path, goLabelSelector(selector), emptyText));
  return errors;
}

/** Selectors are immutable in apps/v1. */
export function immutableSelector(
  next: LabelSelector | undefined,
  current: LabelSelector | undefined,
  path: string,
): FieldError[] {
  return semanticEqual(next, current) ? [] : [invalidValue(path, goLabelSelector(next), fieldImmutableText)];
}

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
