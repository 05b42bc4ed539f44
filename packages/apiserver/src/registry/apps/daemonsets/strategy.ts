import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import type { DaemonSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PodValidationOptions } from "../../core/pods/validation/options.ts";
import { templateOptions, validateSelectedTemplate } from "../../core/pods/validation/pod-template.ts";
import { nonNegative } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { amount, goIntOrString, notAbove100Percent, positiveIntOrPercent } from "../int-or-percent.ts";
import { checkSelector, immutableSelector } from "../replicasets/validation.ts";
import { templateWarningsOnChange } from "../template-warnings.ts";

/** Source: pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/validation ValidateDaemonSet */
export const daemonSetStrategy: Strategy<DaemonSet> = strategyOf<DaemonSet>({
  namespaced: true,
  status: true,
  generation: true,
  prepareForCreate(next) {
    next.status = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
  },
  validate: (next, ctx) => validateDaemonSet(next, templateOptions(ctx.featureEnabled)),
  validateUpdate: (next, current) => immutableSelector(next.spec?.selector, current.spec?.selector, "spec.selector"),
  ...templateWarningsOnChange,
});

export const daemonSetStatusStrategy: Strategy<DaemonSet> = statusStrategyOf({
  namespaced: true,
  validateUpdate(next) {
    const status = next.status;
    const errors: FieldError[] = [];
    for (const field of [
      "currentNumberScheduled",
      "numberMisscheduled",
      "desiredNumberScheduled",
      "numberReady",
      "observedGeneration",
      "updatedNumberScheduled",
      "numberAvailable",
      "numberUnavailable",
      "collisionCount",
    ] as const) {
      errors.push(...nonNegative(status?.[field], `status.${field}`));
    }
    return errors;
  },
});

function validateDaemonSet(daemonSet: DaemonSet, options: PodValidationOptions): FieldError[] {
  const spec = daemonSet.spec ?? ({} as NonNullable<DaemonSet["spec"]>);
  const errors = checkSelector(spec.selector, "spec.selector", "empty selector is invalid for daemonset");
  errors.push(...validateSelectedTemplate(spec.template, spec.selector, "spec.template", options));
  errors.push(...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"));
  const type: string = spec.updateStrategy?.type ?? "";
  if (type === "RollingUpdate") {
    const rolling = spec.updateStrategy?.rollingUpdate;
    const path = "spec.updateStrategy.rollingUpdate";
    if (!rolling) errors.push(required(path, ""));
    else {
      errors.push(...positiveIntOrPercent(rolling.maxUnavailable, `${path}.maxUnavailable`));
      errors.push(...positiveIntOrPercent(rolling.maxSurge, `${path}.maxSurge`));
      const [unavailable, surge] = [amount(rolling.maxUnavailable), amount(rolling.maxSurge)];
      if (unavailable > 0 && surge > 0) {
        errors.push(
          invalidValue(`${path}.maxSurge`, goIntOrString(rolling.maxSurge), "may not be set when maxUnavailable is non-zero"),
        );
      } else if (unavailable === 0 && surge === 0) {
        errors.push(required(`${path}.maxUnavailable`, "cannot be 0 when maxSurge is 0"));
      }
      errors.push(...notAbove100Percent(rolling.maxUnavailable, `${path}.maxUnavailable`));
      errors.push(...notAbove100Percent(rolling.maxSurge, `${path}.maxSurge`));
    }
  } else if (type !== "OnDelete") {
    errors.push(notSupported("spec.updateStrategy", spec.updateStrategy ?? {}, ["OnDelete", "RollingUpdate"]));
  }
  errors.push(...nonNegative(spec.revisionHistoryLimit, "spec.revisionHistoryLimit"));
  return errors;
}
