import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import { notAbove100Percent, positiveIntOrPercent } from "../../apps/int-or-percent.ts";
import { validateConditions } from "../../conditions.ts";
import { checkLabelSelector, nonNegative } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";

/** Source: pkg/registry/policy/poddisruptionbudget/strategy.go, pkg/apis/policy/validation */
export const podDisruptionBudgetStrategy: Strategy<PodDisruptionBudget> = strategyOf<PodDisruptionBudget>({
  namespaced: true,
  status: true,
  generation: true,
  allowUnconditionalUpdate: false,
  // Upstream's validation does not check the metadata.
  validateName: pathSegmentFaults,
  metadataLast: true,
  anyFinalizer: true,
  prepareForCreate(next) {
    next.status = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
  },
  validate: (next) => validateBudget(next),
});

export const podDisruptionBudgetStatusStrategy: Strategy<PodDisruptionBudget> = statusStrategyOf({
  namespaced: true,
  validateUpdate(next, _current, ctx) {
    const errors = validateConditions(next.status?.conditions, "status.conditions");
    // v1beta1 never validated the counts.
    if (ctx.requestVersion === "v1beta1") return errors;
    for (const field of ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] as const) {
      errors.push(...nonNegative(next.status?.[field], `status.${field}`));
    }
    return errors;
  },
});

function validateBudget(budget: PodDisruptionBudget): FieldError[] {
  const { minAvailable, maxUnavailable, selector } = budget.spec ?? {};
  const errors: FieldError[] = [];
  if (minAvailable != null && maxUnavailable != null) {
    errors.push(
      invalidValue(
        "spec",
        goStruct("policy/v1.PodDisruptionBudgetSpec", budget.spec),
        "minAvailable and maxUnavailable cannot be both set",
      ),
    );
  }
  if (minAvailable != null) {
    errors.push(
      ...positiveIntOrPercent(minAvailable, "spec.minAvailable"),
      ...notAbove100Percent(minAvailable, "spec.minAvailable"),
    );
  }
  if (maxUnavailable != null) {
    errors.push(
      ...positiveIntOrPercent(maxUnavailable, "spec.maxUnavailable"),
      ...notAbove100Percent(maxUnavailable, "spec.maxUnavailable"),
    );
  }
  return [...errors, ...checkLabelSelector(selector, "spec.selector")];
}
