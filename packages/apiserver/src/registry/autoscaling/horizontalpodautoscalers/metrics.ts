import {
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goQuantity } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  CrossVersionObjectReference,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { checkContainerResourceName } from "../../core/pods/validation/resources.ts";
import { dns1123Label, quantityOf } from "../../field-checks.ts";
import { pathSegmentNameProblems } from "../../rbac/names.ts";
import { type Check, need, saying } from "../../rules.ts";

/** Validation of one type of metric. */
interface Source {
  readonly type: string;
  readonly field: "containerResource" | "external" | "object" | "pods" | "resource";
  readonly check: Check<MetricSpec>;
}

/** In upstream's order; only the first source that is set is validated. */
const sources: readonly Source[] = [
  {
    type: "Object",
    field: "object",
    check: ({ object }, path) => [
      ...validateReference(object?.describedObject, child(path, "describedObject")),
      ...validateIdentifier(object?.metric, child(path, "metric")),
      ...validateTarget(object?.target, child(path, "target")),
      ...validateValue(object?.target, child(path, "target"), "must set either a target value or averageValue"),
    ],
  },
  {
    type: "External",
    field: "external",
    check({ external }, path) {
      const [at, target] = [child(path, "target"), external?.target];
      const text = "may not set both a target value for metric and a per-pod target";
      return [
        ...validateIdentifier(external?.metric, child(path, "metric")),
        ...validateTarget(target, at),
        ...validateValue(target, at, "must set either a target value for metric or a per-pod target"),
        ...(target?.value != null && target.averageValue != null ? [forbiddenField(child(at, "value"), text)] : []),
      ];
    },
  },
  {
    type: "Pods",
    field: "pods",
    check({ pods }, path) {
      const at = child(path, "target");
      const text = "must specify a positive target averageValue";
      return [
        ...validateIdentifier(pods?.metric, child(path, "metric")),
        ...validateTarget(pods?.target, at),
        ...(pods?.target?.averageValue == null ? [required(child(at, "averageValue"), text)] : []),
      ];
    },
  },
  {
    type: "Resource",
    field: "resource",
    check: ({ resource }, path) => [
      ...need(resource?.name, child(path, "name"), "must specify a resource name"),
      ...validateTarget(resource?.target, child(path, "target")),
      ...validateUtilization(resource?.target, child(path, "target")),
    ],
  },
  {
    type: "ContainerResource",
    field: "containerResource",
    check: ({ containerResource }, path) => [
      ...(containerResource?.name
        ? checkContainerResourceName(containerResource.name, child(path, "name"))
        : [required(child(path, "name"), "must specify a resource name")]),
      ...(containerResource?.container
        ? dns1123Label(containerResource.container, child(path, "container"))
        : [required(child(path, "container"), "must specify a container")]),
      ...validateTarget(containerResource?.target, child(path, "target")),
      ...validateUtilization(containerResource?.target, child(path, "target")),
    ],
  },
];

const gateText = " (only allowed when HPAContainerMetrics feature is enabled)";
const types = sources.map(({ type }) => type).sort();

/** @param containers ContainerResource metrics are allowed. Source: pkg/apis/autoscaling/validation validateMetricSpec */
export function validateMetric(metric: MetricSpec, path: string, containers: boolean): FieldError[] {
  const type: string = metric.type ?? "";
  const at = child(path, "type");
  const unknown = types.includes(type) ? [] : [notSupported(at, type, types)];
  const expected = sources.find((source) => source.type === type)?.field;
  const present = sources.filter(({ field }) => metric[field]);
  const first = present[0];
  const others = present.length === 1 ? [] : present.filter(({ field }) => field !== expected);
  const missing = expected && !metric[expected];
  const gated = expected === "containerResource" && !containers;
  const missingText = `must populate information for the given metric source${gated ? gateText : ""}`;
  return [
    ...(type === "" ? [required(at, "must specify a metric source type")] : []),
    ...unknown,
    ...(first?.check(metric, child(path, first.field)) ?? []),
    ...(missing ? [required(child(path, expected), missingText)] : []),
    ...unknown, // upstream reports an unknown type twice
    ...others.map(({ field }) => forbiddenField(child(path, field), "must populate the given metric source only")),
  ];
}

/**
 * Kind and name are required and must be valid path segments; the apiVersion is not validated.
 * Source: pkg/apis/autoscaling/validation ValidateCrossVersionObjectReference
 */
export function validateReference(reference: CrossVersionObjectReference | undefined, path: string): FieldError[] {
  return (["kind", "name"] as const).flatMap((field) => segment(reference?.[field], child(path, field), ""));
}

function validateIdentifier(metric: MetricIdentifier | undefined, path: string): FieldError[] {
  return segment(metric?.name, child(path, "name"), "must specify a metric name");
}

function segment(name: string | undefined, path: string, missing: string): FieldError[] {
  return name ? saying(pathSegmentNameProblems(name), name, path) : [required(path, missing)];
}

function validateTarget(target: MetricTarget | undefined, path: string): FieldError[] {
  const { value, averageValue, averageUtilization } = target ?? {};
  const type: string = target?.type ?? "";
  const errors = need(type, child(path, "type"), "must specify a metric target type");
  if (!["Utilization", "Value", "AverageValue"].includes(type))
    errors.push(invalidValue(child(path, "type"), type, "must be either Utilization, Value, or AverageValue"));
  if (value != null && quantityOf(value).sign !== 1)
    errors.push(invalidValue(child(path, "value"), goQuantity(String(value)), "must be positive"));
  if (averageValue != null && quantityOf(averageValue).sign !== 1)
    errors.push(invalidValue(child(path, "averageValue"), goQuantity(String(averageValue)), "must be positive"));
  if (averageUtilization != null && averageUtilization < 1)
    errors.push(invalidValue(child(path, "averageUtilization"), averageUtilization, "must be greater than 0"));
  return errors;
}

function validateValue(target: MetricTarget | undefined, path: string, text: string): FieldError[] {
  return target?.value == null && target?.averageValue == null ? [required(child(path, "averageValue"), text)] : [];
}

/** A resource target has either averageUtilization or averageValue. */
function validateUtilization(target: MetricTarget | undefined, path: string): FieldError[] {
  const [hasShare, hasAmount] = [target?.averageUtilization != null, target?.averageValue != null];
  const both = "may not set both a target raw value and a target utilization";
  const none = "must set either a target raw value or a target utilization";
  return [
    ...(hasShare || hasAmount ? [] : [required(child(path, "averageUtilization"), none)]),
    ...(hasShare && hasAmount ? [forbiddenField(child(path, "averageValue"), both)] : []),
  ];
}
