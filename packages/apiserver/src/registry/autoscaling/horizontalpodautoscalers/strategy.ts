import {
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type { HorizontalPodAutoscaler, HPAScalingRules } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { nonNegative } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { each, emptyStruct } from "../../rules.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateMetric, validateReference } from "./metrics.ts";

type Autoscaler = HorizontalPodAutoscaler;

/** Source: pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go, pkg/apis/autoscaling/validation */
export const autoscalerStrategy: Strategy<Autoscaler> = strategyOf<Autoscaler>({
  namespaced: true,
  status: true,
  prepareForCreate(next) {
    next.status = { ...emptyStruct<NonNullable<Autoscaler["status"]>>(), desiredReplicas: 0 };
  },
  validate: (next, ctx, current) => validateAutoscaler(next, ctx.featureEnabled, current),
});

export const autoscalerStatusStrategy: Strategy<Autoscaler> = statusStrategyOf({
  namespaced: true,
  validateUpdate(next) {
    return [
      ...nonNegative(next.status?.currentReplicas, "status.currentReplicas"),
      ...nonNegative(next.status?.desiredReplicas, "status.desiredReplicas"),
    ];
  },
});

/** @param current the stored object; minReplicas 0 stays allowed when it has it, even when the gate is off */
function validateAutoscaler(
  autoscaler: Autoscaler,
  featureEnabled: (gate: string) => boolean,
  current: Autoscaler | undefined,
): FieldError[] {
  const spec = autoscaler.spec ?? emptyStruct();
  const errors: FieldError[] = [];
  const least = featureEnabled("HPAScaleToZero") || current?.spec?.minReplicas === 0 ? 0 : 1;
  const { minReplicas, maxReplicas = 0 } = spec;
  if (minReplicas != null && minReplicas < least) {
    errors.push(invalidValue("spec.minReplicas", minReplicas, `must be greater than or equal to ${least}`));
  }
  if (maxReplicas < 1) errors.push(invalidValue("spec.maxReplicas", maxReplicas, "must be greater than 0"));
  if (minReplicas != null && maxReplicas < minReplicas) {
    errors.push(invalidValue("spec.maxReplicas", maxReplicas, "must be greater than or equal to `minReplicas`"));
  }
  errors.push(...validateReference(spec.scaleTargetRef, "spec.scaleTargetRef"));
  const containers = featureEnabled("HPAContainerMetrics");
  errors.push(...each(spec.metrics, "spec.metrics", (metric, at) => validateMetric(metric, at, containers)));
  if (minReplicas === 0 && !(spec.metrics ?? []).some(({ type }) => type === "Object" || type === "External")) {
    const text = "must specify at least one Object or External metric to support scaling to zero replicas";
    errors.push(forbiddenField("spec.metrics", text));
  }
  if (spec.behavior) {
    errors.push(...validateRules(spec.behavior.scaleUp, "spec.behavior.scaleUp"));
    errors.push(...validateRules(spec.behavior.scaleDown, "spec.behavior.scaleDown"));
  }
  return errors;
}

function validateRules(rules: HPAScalingRules | undefined, path: string): FieldError[] {
  if (!rules) return [];
  const errors: FieldError[] = [];
  const window = rules.stabilizationWindowSeconds;
  if (window != null && (window < 0 || window > 3600)) {
    errors.push(
      invalidValue(
        child(path, "stabilizationWindowSeconds"),
        window,
        window < 0 ? "must be greater than or equal to zero" : "must be less than or equal to 3600",
      ),
    );
  }
  const select: string | undefined = rules.selectPolicy;
  if (select != null && !["Disabled", "Max", "Min"].includes(select))
    errors.push(notSupported(child(path, "selectPolicy"), select, ["Disabled", "Max", "Min"]));
  if (!rules.policies?.length) errors.push(required(child(path, "policies"), "must specify at least one Policy"));
  for (const [i, policy] of (rules.policies ?? []).entries()) {
    const at = index(child(path, "policies"), i);
    if (policy.type !== "Pods" && policy.type !== "Percent")
      errors.push(notSupported(child(at, "type"), policy.type ?? "", ["Percent", "Pods"]));
    if ((policy.value ?? 0) <= 0) errors.push(invalidValue(child(at, "value"), policy.value ?? 0, "must be greater than zero"));
    if ((policy.periodSeconds ?? 0) <= 0)
      errors.push(invalidValue(child(at, "periodSeconds"), policy.periodSeconds ?? 0, "must be greater than zero"));
    if ((policy.periodSeconds ?? 0) > 1800) {
      errors.push(invalidValue(child(at, "periodSeconds"), policy.periodSeconds, "must be less than or equal to 1800"));
    }
  }
  return errors;
}
