import {
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goLabelSelector, goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { validatePodAnnotations } from "../../core/pods/validation/annotations.ts";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import { matchesTemplate, readSelector, runsForEver } from "../../core/pods/validation/pod-template.ts";
import { checkingAnnotations, checkingLabels, nonNegative } from "../../field-checks.ts";
import { emptyStruct, optionalOneOf } from "../../rules.ts";
import { checkSelector, neverDecremented } from "../replicasets/validation.ts";

type Spec = NonNullable<StatefulSet["spec"]>;

/** Source: pkg/apis/apps/validation ValidateStatefulSet */
export function* validateStatefulSet(statefulSet: StatefulSet, options: PodValidationOptions): Steps<FieldError[]> {
  const spec = statefulSet.spec ?? emptyStruct();
  const errors: FieldError[] = [];
  const policy: string = spec.podManagementPolicy ?? "";
  if (policy === "") errors.push(required("spec.podManagementPolicy"));
  else if (policy !== "OrderedReady" && policy !== "Parallel")
    errors.push(invalidValue("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"));
  return [
    ...errors,
    ...validateUpdateStrategy(spec, "spec.updateStrategy"),
    ...validateRetention(spec, "spec.persistentVolumeClaimRetentionPolicy"),
    ...nonNegative(spec.replicas, "spec.replicas"),
    ...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"),
    ...(yield* checkSelector(spec.selector, "empty selector is invalid for statefulset")),
    ...(yield* validateTemplate(spec, "spec.template", options)),
  ];
}

function validateUpdateStrategy(spec: Spec, path: string): FieldError[] {
  const { type, rollingUpdate } = spec.updateStrategy ?? {};
  switch (type ?? "") {
    case "":
      return [required(path)];
    case "OnDelete":
      if (!rollingUpdate) return [];
      return [
        invalidValue(
          child(path, "rollingUpdate"),
          goStruct("apps/v1.RollingUpdateStatefulSetStrategy", rollingUpdate),
          "only allowed for updateStrategy 'RollingUpdate'",
        ),
      ];
    case "RollingUpdate":
      return nonNegative(rollingUpdate?.partition, child(path, "rollingUpdate", "partition"));
    default:
      return [
        invalidValue(
          path,
          goStruct("apps/v1.StatefulSetUpdateStrategy", spec.updateStrategy),
          "must be 'RollingUpdate' or 'OnDelete'",
        ),
      ];
  }
}

function validateRetention(spec: Spec, path: string): FieldError[] {
  const policy = spec.persistentVolumeClaimRetentionPolicy;
  if (!policy) return [];
  return (["whenDeleted", "whenScaled"] as const).flatMap((field) =>
    optionalOneOf(policy[field] ?? "", ["Retain", "Delete"], child(path, field)),
  );
}

/** Does not validate the containers: their mounts may refer to volumes of the claim templates. */
function* validateTemplate({ template, selector }: Spec, path: string, options: PodValidationOptions): Steps<FieldError[]> {
  const annotations = template?.metadata?.annotations;
  const always = runsForEver(template, "StatefulSet", path);
  if (!readSelector(selector)) return [invalidValue("spec.selector", goLabelSelector(selector), ""), ...always];
  return [
    ...matchesTemplate(selector, template, path),
    ...(yield* checkingLabels(template?.metadata?.labels, child(path, "labels"))),
    ...(yield* checkingAnnotations(annotations, child(path, "annotations"))),
    ...(yield* validatePodAnnotations(annotations, template?.spec ?? { containers: [] }, child(path, "annotations"), options)),
    ...always,
  ];
}

const mutable = ["replicas", "template", "updateStrategy", "minReadySeconds", "persistentVolumeClaimRetentionPolicy"];
const immutableText =
  "updates to statefulset spec for fields other than 'replicas', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/**
 * Reports changes of immutable fields, all in one error; the strategy validates the new spec itself.
 * Source: pkg/apis/apps/validation ValidateStatefulSetUpdate
 */
export function* validateStatefulSetUpdate(next: StatefulSet, current: StatefulSet): Steps<FieldError[]> {
  const copy = { ...next.spec } as unknown as Record<string, unknown>; // cast: compared and copied by field names
  const old = (current.spec ?? {}) as unknown as Record<string, unknown>; // cast: compared and copied by field names
  for (const field of mutable) {
    if (old[field] === undefined) delete copy[field];
    else copy[field] = old[field];
  }
  return (yield* semanticEqualInSteps(copy, old)) ? [] : [forbiddenField("spec", immutableText)];
}

/** Source: pkg/apis/apps/validation ValidateStatefulSetStatusUpdate */
export function validateStatefulSetStatus(
  next: StatefulSet,
  current: StatefulSet,
  featureEnabled: (gate: string) => boolean,
): FieldError[] {
  const status = next.status ?? { replicas: 0, availableReplicas: 0 };
  const counted = ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"] as const;
  const errors = counted.flatMap((field) => nonNegative(status[field], child("status", field)));
  errors.push(...nonNegative(status.observedGeneration, "status.observedGeneration"));
  errors.push(...nonNegative(status.collisionCount, "status.collisionCount"));
  for (const field of ["readyReplicas", "currentReplicas", "updatedReplicas"] as const)
    errors.push(...atMost(status[field], status.replicas, "status.replicas", child("status", field)));
  if (featureEnabled("StatefulSetMinReadySeconds")) {
    errors.push(...atMost(status.availableReplicas, status.replicas, "status.replicas", "status.availableReplicas"));
    errors.push(...atMost(status.availableReplicas, status.readyReplicas, "status.readyReplicas", "status.availableReplicas"));
  }
  return [...errors, ...neverDecremented(status.collisionCount, current.status?.collisionCount)];
}

function atMost(value: number | undefined, most: number | undefined, name: string, path: string): FieldError[] {
  return (value ?? 0) > (most ?? 0) ? [invalidValue(path, value ?? 0, `cannot be greater than ${name}`)] : [];
}
