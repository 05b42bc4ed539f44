import {
  addErrors,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { Deployment, DeploymentStatus } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import { nonNegative } from "../../field-checks.ts";
import { emptyStruct } from "../../rules.ts";
import { amount, goIntOrString, notAbove100Percent, positiveIntOrPercent } from "../int-or-percent.ts";
import { checkSelector, countsAboveTotal, neverDecremented, validateReplicatedTemplate } from "../replicasets/validation.ts";

/** Source: pkg/apis/apps/validation ValidateDeployment */
export function* validateDeployment(deployment: Deployment, options: PodValidationOptions): Steps<FieldError[]> {
  const spec = deployment.spec ?? emptyStruct();
  const errors = nonNegative(spec.replicas, "spec.replicas");
  addErrors(errors, yield* checkSelector(spec.selector, "empty selector is invalid for deployment"));
  addErrors(errors, yield* validateReplicatedTemplate(spec, options));
  errors.push(...validateStrategy(spec.strategy));
  errors.push(...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"));
  errors.push(...nonNegative(spec.revisionHistoryLimit, "spec.revisionHistoryLimit"));
  const deadline = spec.progressDeadlineSeconds;
  if (deadline !== undefined && deadline !== null) {
    errors.push(...nonNegative(deadline, "spec.progressDeadlineSeconds"));
    if (deadline <= (spec.minReadySeconds ?? 0)) {
      errors.push(invalidValue("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
    }
  }
  return errors;
}

type Strategy = NonNullable<NonNullable<Deployment["spec"]>["strategy"]>;

function validateStrategy(strategy: Strategy | undefined): FieldError[] {
  const type: string = strategy?.type ?? "";
  const rolling = strategy?.rollingUpdate;
  if (type === "Recreate") {
    return rolling
      ? [forbiddenField("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
      : [];
  }
  if (type !== "RollingUpdate")
    return [notSupported("spec.strategy", goStruct("apps/v1.DeploymentStrategy", strategy), ["Recreate", "RollingUpdate"])];
  if (!rolling) return [required("spec.strategy.rollingUpdate", "this should be defaulted and never be nil")];
  const path = "spec.strategy.rollingUpdate";
  const errors = positiveIntOrPercent(rolling.maxUnavailable, `${path}.maxUnavailable`);
  errors.push(...positiveIntOrPercent(rolling.maxSurge, `${path}.maxSurge`));
  if (amount(rolling.maxUnavailable) === 0 && amount(rolling.maxSurge) === 0) {
    errors.push(
      invalidValue(`${path}.maxUnavailable`, goIntOrString(rolling.maxUnavailable), "may not be 0 when `maxSurge` is 0"),
    );
  }
  return [...errors, ...notAbove100Percent(rolling.maxUnavailable, `${path}.maxUnavailable`)];
}

export function validateDeploymentStatus(
  next: DeploymentStatus | undefined,
  current: DeploymentStatus | undefined,
): FieldError[] {
  const status = next ?? {};
  const errors: FieldError[] = [];
  for (const field of [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
  ] as const) {
    errors.push(...nonNegative(status[field], `status.${field}`));
  }
  const collisions = status.collisionCount;
  if (collisions !== undefined) errors.push(...nonNegative(collisions, "status.collisionCount"));
  return [
    ...errors,
    ...countsAboveTotal(status, ["updatedReplicas", "readyReplicas", "availableReplicas"]),
    ...neverDecremented(collisions, current?.collisionCount),
  ];
}
