import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscaler,
  HPAScalingRules,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from "@coxswain/apimachinery/schema/kinds/autoscaling/v2";
import { checkLabelSelector, nonNegative, quantityOf } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { isPathSegmentName } from "../../rbac/names.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";

type Autoscaler = HorizontalPodAutoscaler;

/** Source: pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go, pkg/apis/autoscaling/validation */
export const autoscalerStrategy: Strategy<Autoscaler> = strategyOf<Autoscaler>({
  namespaced: true,
  status: true,
  prepareForCreate(next) {
    next.status = { desiredReplicas: 0 } as NonNullable<Autoscaler["status"]>;
  },
  validate: (next, ctx) => validateAutoscaler(next, ctx.featureEnabled),
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

function validateAutoscaler(autoscaler: Autoscaler, featureEnabled: (gate: string) => boolean): FieldError[] {
  const spec = autoscaler.spec ?? ({} as Autoscaler["spec"]);
  const errors: FieldError[] = [];
  const least = featureEnabled("HPAScaleToZero") ? 0 : 1;
  const { minReplicas, maxReplicas = 0 } = spec;
  if (minReplicas != null && minReplicas < least) {
    errors.push(invalidValue("spec.minReplicas", minReplicas, `must be greater than or equal to ${least}`));
  }
  if (maxReplicas < 1) errors.push(invalidValue("spec.maxReplicas", maxReplicas, "must be greater than 0"));
  if (minReplicas != null && maxReplicas < minReplicas) {
    errors.push(invalidValue("spec.maxReplicas", maxReplicas, "must be greater than or equal to `minReplicas`"));
  }
  errors.push(...validateReference(spec.scaleTargetRef, "spec.scaleTargetRef"));
  for (const [i, metric] of (spec.metrics ?? []).entries()) errors.push(...validateMetric(metric, index("spec.metrics", i)));
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

function validateReference(reference: CrossVersionObjectReference | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ["kind", "name"] as const) {
    const value = reference?.[field] ?? "";
    if (value === "") errors.push(required(child(path, field), ""));
    else for (const message of isPathSegmentName(value)) errors.push(invalidValue(child(path, field), value, message));
  }
  return errors;
}

const sources = {
  Object: "object",
  Pods: "pods",
  Resource: "resource",
  External: "external",
  ContainerResource: "containerResource",
} as const;

function validateMetric(metric: MetricSpec, path: string): FieldError[] {
  const type: string = metric.type ?? "";
  if (type === "") return [required(child(path, "type"), "must specify a metric source type")];
  if (!Object.hasOwn(sources, type)) {
    return [notSupported(child(path, "type"), type, ["ContainerResource", "External", "Object", "Pods", "Resource"])];
  }
  const field = sources[type as keyof typeof sources];
  const errors: FieldError[] = [];
  if (!metric[field]) errors.push(required(child(path, field), "must populate information for the given metric source"));
  for (const other of Object.values(sources)) {
    if (other !== field && metric[other])
      errors.push(forbiddenField(child(path, other), "must populate the given metric source only"));
  }
  const at = child(path, field);
  if (metric.resource) {
    if (!metric.resource.name) errors.push(required(child(at, "name"), "must specify a resource name"));
    errors.push(...validateTarget(metric.resource.target, child(at, "target"), ["averageUtilization", "averageValue"]));
  }
  if (metric.containerResource) {
    if (!metric.containerResource.name) errors.push(required(child(at, "name"), "must specify a resource name"));
    if (!metric.containerResource.container) errors.push(required(child(at, "container"), "must specify a container"));
    errors.push(...validateTarget(metric.containerResource.target, child(at, "target"), ["averageUtilization", "averageValue"]));
  }
  if (metric.pods) {
    errors.push(
      ...validateIdentifier(metric.pods.metric, child(at, "metric")),
      ...validateTarget(metric.pods.target, child(at, "target"), []),
    );
    if (metric.pods.target?.averageValue == null || quantityOf(metric.pods.target.averageValue).sign <= 0) {
      errors.push(required(child(at, "target", "averageValue"), "must specify a positive target averageValue"));
    }
  }
  if (metric.object) {
    errors.push(...validateReference(metric.object.describedObject, child(at, "describedObject")));
    errors.push(...validateIdentifier(metric.object.metric, child(at, "metric")));
    errors.push(...validateTarget(metric.object.target, child(at, "target"), ["value", "averageValue"]));
  }
  if (metric.external) {
    errors.push(...validateIdentifier(metric.external.metric, child(at, "metric")));
    errors.push(...validateTarget(metric.external.target, child(at, "target"), ["value", "averageValue"]));
    if (metric.external.target?.value != null && metric.external.target.averageValue != null) {
      errors.push(
        forbiddenField(child(at, "target", "value"), "may not set both a target value for metric and a per-pod target"),
      );
    }
  }
  return errors;
}

function validateIdentifier(metric: MetricIdentifier | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!metric?.name) errors.push(required(child(path, "name"), ""));
  else for (const message of isPathSegmentName(metric.name)) errors.push(invalidValue(child(path, "name"), metric.name, message));
  return [...errors, ...checkLabelSelector(metric?.selector, child(path, "selector"))];
}

/** @param oneOf at least one of these must be there. */
function validateTarget(target: MetricTarget | undefined, path: string, oneOf: readonly (keyof MetricTarget)[]): FieldError[] {
  const errors: FieldError[] = [];
  const type: string = target?.type ?? "";
  if (type === "") errors.push(required(child(path, "type"), "must specify a metric target type"));
  else if (!["Utilization", "Value", "AverageValue"].includes(type)) {
    errors.push(invalidValue(child(path, "type"), type, "must be either Utilization, Value, or AverageValue"));
  }
  if (target?.value != null && quantityOf(target.value).sign !== 1)
    errors.push(invalidValue(child(path, "value"), String(target.value), "must be positive"));
  if (target?.averageValue != null && quantityOf(target.averageValue).sign !== 1) {
    errors.push(invalidValue(child(path, "averageValue"), String(target.averageValue), "must be positive"));
  }
  if (target?.averageUtilization != null && target.averageUtilization < 1) {
    errors.push(invalidValue(child(path, "averageUtilization"), target.averageUtilization, "must be greater than 0"));
  }
  if (oneOf.length > 0 && oneOf.every((field) => target?.[field] == null)) {
    errors.push(
      oneOf.includes("averageUtilization")
        ? required(child(path, "averageUtilization"), "must set either a target raw value or a target utilization")
        : required(child(path, "averageValue"), "must set either a target value for metric or a per-pod target"),
    );
  }
  if (oneOf.includes("averageUtilization") && target?.averageUtilization != null && target.averageValue != null) {
    errors.push(forbiddenField(child(path, "averageValue"), "may not set both a target raw value and a target utilization"));
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
