import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { deepClone, semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { StatefulSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import { templateOptions, validateSelectedTemplate } from "../../core/pods/validation/pod-template.ts";
import { nonNegative } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { checkSelector, validateReplicaCounts } from "../replicasets/validation.ts";
import { templateWarningsOnChange } from "../template-warnings.ts";

type Spec = NonNullable<StatefulSet["spec"]>;

/** Source: pkg/registry/apps/statefulset/strategy.go, pkg/apis/apps/validation ValidateStatefulSet */
export const statefulSetStrategy: Strategy<StatefulSet> = strategyOf<StatefulSet>({
  namespaced: true,
  status: true,
  generation: true,
  prepareForCreate(next, ctx) {
    next.status = { replicas: 0, availableReplicas: 0 };
    dropDisabled(next, undefined, ctx.featureEnabled);
  },
  prepareForUpdate: (next, current, ctx) => dropDisabled(next, current, ctx.featureEnabled),
  validate: (next, ctx) => validateStatefulSet(next, templateOptions(ctx.featureEnabled)),
  validateUpdate: (next, current) => onlyMutableChanged(next, current),
  ...templateWarningsOnChange,
});

export const statefulSetStatusStrategy: Strategy<StatefulSet> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next) => validateStatus(next),
});

function dropDisabled(next: StatefulSet, current: StatefulSet | undefined, featureEnabled: (gate: string) => boolean): void {
  if (!featureEnabled("StatefulSetAutoDeletePVC") && current?.spec?.persistentVolumeClaimRetentionPolicy === undefined) {
    delete next.spec?.persistentVolumeClaimRetentionPolicy;
  }
  if (!featureEnabled("StatefulSetMinReadySeconds") && !current?.spec?.minReadySeconds) delete next.spec?.minReadySeconds;
}

function validateStatefulSet(statefulSet: StatefulSet, options: PodValidationOptions): FieldError[] {
  const spec = statefulSet.spec ?? ({} as Spec);
  const errors: FieldError[] = [];
  const policy: string = spec.podManagementPolicy ?? "";
  if (policy === "") errors.push(required("spec.podManagementPolicy", ""));
  else if (policy !== "OrderedReady" && policy !== "Parallel") {
    errors.push(invalidValue("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"));
  }
  const { type: strategy = "", rollingUpdate } = spec.updateStrategy ?? {};
  if (strategy === "") errors.push(required("spec.updateStrategy", ""));
  else if (strategy === "OnDelete") {
    if (rollingUpdate) {
      errors.push(
        invalidValue("spec.updateStrategy.rollingUpdate", rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'"),
      );
    }
  } else if (strategy === "RollingUpdate") {
    if (rollingUpdate) errors.push(...nonNegative(rollingUpdate.partition, "spec.updateStrategy.rollingUpdate.partition"));
  } else {
    errors.push(invalidValue("spec.updateStrategy", spec.updateStrategy, "must be 'RollingUpdate' or 'OnDelete'"));
  }
  errors.push(...nonNegative(spec.replicas, "spec.replicas"), ...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"));
  errors.push(...checkSelector(spec.selector, "spec.selector", "empty selector is invalid for statefulset"));
  errors.push(...validateSelectedTemplate(spec.template, spec.selector, "spec.template", options));
  return errors;
}

const immutableText =
  "updates to statefulset spec for fields other than 'replicas', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

function onlyMutableChanged(next: StatefulSet, current: StatefulSet): FieldError[] {
  const copy = deepClone(next.spec ?? {}) as unknown as Record<string, unknown>;
  const old = (current.spec ?? {}) as unknown as Record<string, unknown>;
  for (const field of ["replicas", "template", "updateStrategy", "minReadySeconds", "persistentVolumeClaimRetentionPolicy"]) {
    if (old[field] === undefined) delete copy[field];
    else copy[field] = old[field];
  }
  return semanticEqual(copy, old) ? [] : [forbiddenField("spec", immutableText)];
}

function validateStatus(statefulSet: StatefulSet): FieldError[] {
  const status = statefulSet.status;
  const errors = validateReplicaCounts({
    ...status,
    availableReplicas: Math.min(status?.availableReplicas ?? 0, status?.readyReplicas ?? 0),
  });
  for (const field of ["currentReplicas", "updatedReplicas"] as const) {
    const value = status?.[field] ?? 0;
    errors.push(...nonNegative(value, `status.${field}`));
    if (value > (status?.replicas ?? 0))
      errors.push(invalidValue(`status.${field}`, value, "cannot be greater than status.replicas"));
  }
  return errors;
}
