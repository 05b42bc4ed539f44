import {
  addErrors,
  child,
  type FieldError,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goLabelSelector, goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { DaemonSet, DaemonSetUpdateStrategy } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import {
  matchesTemplate,
  runsForEver,
  validatePodTemplate,
  validateReadOnlyDisks,
} from "../../core/pods/validation/pod-template.ts";
import { checkingLabelSelector, isEmptySelector, nonNegative } from "../../field-checks.ts";
import { emptyStruct } from "../../rules.ts";
import { amount, goIntOrString, notAbove100Percent, positiveIntOrPercent } from "../int-or-percent.ts";
import { neverDecremented } from "../replicasets/validation.ts";

/** Source: pkg/apis/apps/validation ValidateDaemonSet */
export function* validateDaemonSet(daemonSet: DaemonSet, options: PodValidationOptions): Steps<FieldError[]> {
  const spec = daemonSet.spec ?? emptyStruct();
  const { selector, template } = spec;
  const path = "spec.template";
  const errors = yield* checkingLabelSelector(selector, "spec.selector");
  addErrors(errors, matchesTemplate(selector, template, path));
  if (selector && isEmptySelector(selector))
    errors.push(invalidValue("spec.selector", goLabelSelector(selector), "empty selector is invalid for daemonset"));
  yield;
  addErrors(errors, yield* validatePodTemplate(template, path, options));
  addErrors(errors, yield* validateReadOnlyDisks(template?.spec?.volumes, child(path, "spec", "volumes")));
  return [
    ...errors,
    ...runsForEver(template, "DaemonSet", path),
    ...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"),
    ...validateUpdateStrategy(spec.updateStrategy ?? {}, "spec.updateStrategy"),
    ...nonNegative(spec.revisionHistoryLimit, "spec.revisionHistoryLimit"),
  ];
}

function validateUpdateStrategy(strategy: DaemonSetUpdateStrategy, path: string): FieldError[] {
  const type: string = strategy.type ?? "";
  if (type === "OnDelete") return [];
  const rolling = strategy.rollingUpdate;
  if (type !== "RollingUpdate")
    return [notSupported(path, goStruct("apps/v1.DaemonSetUpdateStrategy", strategy), ["RollingUpdate", "OnDelete"])];
  if (!rolling) return [required(child(path, "rollingUpdate"))];
  const [unavailable, surge] = [child(path, "rollingUpdate", "maxUnavailable"), child(path, "rollingUpdate", "maxSurge")];
  const { maxUnavailable, maxSurge } = rolling;
  const errors = [
    ...positiveIntOrPercent(maxUnavailable, unavailable),
    ...positiveIntOrPercent(maxSurge, surge),
    ...notAbove100Percent(maxUnavailable, unavailable),
    ...notAbove100Percent(maxSurge, surge),
  ];
  const [hasUnavailable, hasSurge] = [amount(maxUnavailable) !== 0, amount(maxSurge) !== 0];
  if (hasUnavailable && hasSurge)
    errors.push(invalidValue(surge, goIntOrString(maxSurge), "may not be set when maxUnavailable is non-zero"));
  if (!hasUnavailable && !hasSurge) errors.push(required(unavailable, "cannot be 0 when maxSurge is 0"));
  return errors;
}

const counts = [
  "currentNumberScheduled",
  "numberMisscheduled",
  "desiredNumberScheduled",
  "numberReady",
  "observedGeneration",
  "updatedNumberScheduled",
  "numberAvailable",
  "numberUnavailable",
  "collisionCount",
] as const;

/** No count is negative, and collisionCount does not decrease. Source: pkg/apis/apps/validation ValidateDaemonSetStatusUpdate */
export function validateDaemonSetStatus(next: DaemonSet, current: DaemonSet): FieldError[] {
  return [
    ...counts.flatMap((field) => nonNegative(next.status?.[field], child("status", field))),
    ...neverDecremented(next.status?.collisionCount, current.status?.collisionCount),
  ];
}
