/**
 * Conversion between the versions of HorizontalPodAutoscaler; v2 is the hub. v1 has a single cpu target and keeps everything
 * else in annotations, in v1 metric types; v2beta1 keeps only the behavior in an annotation. These annotations are dropped
 * when they are set in other versions or are invalid.
 * Source: pkg/apis/autoscaling/{v1,v2beta1,v2beta2}/conversion.go, pkg/apis/autoscaling/helpers.go
 */
import { decodeValue } from "@coxswain/apimachinery/objects/codec/json-decode";
import { encodeAny, encodeValue } from "@coxswain/apimachinery/objects/codec/json-encode";
import { parseJsonText } from "@coxswain/apimachinery/objects/codec/json-parse";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { TypeDescriptor } from "@coxswain/apimachinery/objects/schema/descriptor";
import type { HorizontalPodAutoscaler as HpaV1 } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v1";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerBehavior,
  HPAScalingRules,
  MetricSpec,
  MetricStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { HorizontalPodAutoscaler as HpaV2beta1 } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2beta1";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { flatSpec, flatStatus, specOfFlat, statusOfFlat } from "./metric-shapes.ts";

const annotation = {
  metrics: "autoscaling.alpha.kubernetes.io/metrics",
  currentMetrics: "autoscaling.alpha.kubernetes.io/current-metrics",
  conditions: "autoscaling.alpha.kubernetes.io/conditions",
  behavior: "autoscaling.alpha.kubernetes.io/behavior",
} as const;
const ours: readonly string[] = Object.values(annotation);

type Annotations = Record<string, string>;

/** Drops the annotations, which have no meaning in v2 and v2beta2. */
export function autoscalerWithoutAnnotations(object: KubeObject): KubeObject {
  return withAnnotations(object, withoutOurs(object.metadata?.annotations));
}

/** From v2, as a new object: the first cpu utilization target is a field, everything else that v1 lacks is in annotations. */
export function autoscalerToV1(hub: HorizontalPodAutoscaler): KubeObject {
  const { metrics = [], behavior, ...spec } = hub.spec;
  const { currentMetrics = [], conditions = [], ...status } = hub.status ?? {};
  const annotations = withoutOurs(hub.metadata.annotations);
  // v1 has one field for the first cpu utilization target; further ones are lost.
  const cpu = metrics.find((metric) => metric.type === "Resource" && metric.resource?.name === "cpu")?.resource;
  const others = metrics.filter((metric) => !isCpuUtilization(metric));
  if (others.length > 0) annotations[annotation.metrics] = listText("MetricSpec", others.map(flatSpec));
  if (currentMetrics.length > 0)
    annotations[annotation.currentMetrics] = listText("MetricStatus", currentMetrics.map(flatStatus));
  if (conditions.length > 0) annotations[annotation.conditions] = listText("HorizontalPodAutoscalerCondition", conditions);
  if (behavior) annotations[annotation.behavior] = behaviorText(behavior);
  const currentCpu = currentMetrics.findLast(isCurrentCpu)?.resource;
  // Cast: optional fields may be undefined, which the canonical form drops.
  const v1 = {
    ...hub,
    spec: { ...spec, targetCPUUtilizationPercentage: cpu?.target.averageUtilization },
    status: { ...status, currentCPUUtilizationPercentage: currentCpu?.current.averageUtilization },
  } as HpaV1;
  return withAnnotations(v1, annotations);
}

/** To v2, as a new object. Without metrics in field and annotations the target is 80 % of the requested cpu. */
export function autoscalerV1ToV2(v1: HpaV1): KubeObject {
  const annotations = v1.metadata.annotations ?? {};
  const { targetCPUUtilizationPercentage, ...spec } = v1.spec;
  const { currentCPUUtilizationPercentage, ...status } = v1.status ?? { currentReplicas: 0, desiredReplicas: 0 };
  const metrics: MetricSpec[] = (listOf("MetricSpec", annotations[annotation.metrics]) ?? []).map(specOfFlat);
  if (targetCPUUtilizationPercentage !== undefined) metrics.push(cpuUtilization(targetCPUUtilizationPercentage));
  if (metrics.length === 0) metrics.push(cpuUtilization(80));
  const current = currentCPUUtilizationPercentage;
  const currentMetrics =
    listOf("MetricStatus", annotations[annotation.currentMetrics])?.map(statusOfFlat) ??
    (current === undefined ? [] : [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: current } } }]);
  const conditions = listOf("HorizontalPodAutoscalerCondition", annotations[annotation.conditions]);
  // Cast: optional fields may be undefined, which the canonical form drops.
  const hub = {
    ...v1,
    spec: { ...spec, metrics, behavior: behaviorOf(annotations[annotation.behavior]) },
    status: { ...status, currentMetrics, conditions },
  } as HorizontalPodAutoscaler; // cast: optional fields may be undefined, which the canonical form drops
  return autoscalerWithoutAnnotations(hub);
}

/** From v2, as a new object: metrics in the flat form, the behavior in an annotation. */
export function autoscalerToV2beta1(hub: HorizontalPodAutoscaler): KubeObject {
  const { behavior, ...spec } = hub.spec;
  const annotations = withoutOurs(hub.metadata.annotations);
  if (behavior) annotations[annotation.behavior] = behaviorText(behavior);
  // Cast: `flatSpec` makes metrics of v2beta1.
  const old = { ...hub, spec: { ...spec, metrics: spec.metrics?.map(flatSpec) } } as HpaV2beta1;
  // Cast: `flatStatus` and `statusOfFlat` make statuses of the other version.
  if (hub.status) old.status = { ...hub.status, currentMetrics: hub.status.currentMetrics?.map(flatStatus) } as never;
  return withAnnotations(old, annotations);
}

/** To v2, as a new object. An invalid annotation counts as no behavior. */
export function autoscalerFromV2beta1(old: HpaV2beta1): KubeObject {
  const behavior = behaviorOf(old.metadata.annotations?.[annotation.behavior]);
  // Cast: optional fields may be undefined, which the canonical form drops.
  const hub = { ...old, spec: { ...old.spec, metrics: old.spec.metrics?.map(specOfFlat), behavior } } as HorizontalPodAutoscaler;
  // Cast: `flatStatus` and `statusOfFlat` make statuses of the other version.
  if (old.status) hub.status = { ...old.status, currentMetrics: old.status.currentMetrics?.map(statusOfFlat) } as never;
  return autoscalerWithoutAnnotations(hub);
}

function isCpuUtilization({ type, resource }: MetricSpec): boolean {
  return type === "Resource" && resource?.name === "cpu" && resource.target.averageUtilization !== undefined;
}

function isCurrentCpu({ type, resource }: MetricStatus): boolean {
  return type === "Resource" && resource?.name === "cpu" && resource.current.averageUtilization !== undefined;
}

function cpuUtilization(averageUtilization: number): MetricSpec {
  return { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization } } };
}

function withoutOurs(annotations: Readonly<Annotations> | undefined): Annotations {
  return Object.fromEntries(Object.entries(annotations ?? {}).filter(([key]) => !ours.includes(key)));
}

function withAnnotations(object: KubeObject, annotations: Annotations): KubeObject {
  const { annotations: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata: Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations } };
}

const typeInV1 = (name: string): TypeDescriptor => scheme.type(`autoscaling/v1.${name}`)!;

function listText(typeName: string, items: readonly object[]): string {
  const type = typeInV1(typeName);
  return `[${items.map((item) => encodeValue(decodeValue(deepClone(item), type), type)).join(",")}]`;
}

/** Decodes an annotation. @returns undefined when it is missing or invalid, because annotations are user input */
function listOf(typeName: string, text: string | undefined): object[] | undefined {
  const list = parsed(text);
  if (!Array.isArray(list)) return undefined;
  try {
    return list.map((item) => decodeValue(item, typeInV1(typeName)));
  } catch {
    return undefined;
  }
}

function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return parseJsonText(text);
  } catch {
    return undefined;
  }
}

/** The annotation contains upstream's internal struct, which has no JSON tags: field names are those of Go. */
function behaviorText(behavior: HorizontalPodAutoscalerBehavior): string {
  const rules = (of: HPAScalingRules | undefined): string => {
    if (of === undefined) return "null";
    const policies = (of.policies ?? []).map(
      (policy) => `{"Type":${encodeAny(policy.type)},"Value":${policy.value},"PeriodSeconds":${policy.periodSeconds}}`,
    );
    return (
      `{"StabilizationWindowSeconds":${encodeAny(of.stabilizationWindowSeconds)},"SelectPolicy":${encodeAny(of.selectPolicy)},` +
      `"Policies":${policies.length === 0 ? "null" : `[${policies.join(",")}]`}}`
    );
  };
  return `{"ScaleUp":${rules(behavior.scaleUp)},"ScaleDown":${rules(behavior.scaleDown)}}`;
}

function behaviorOf(text: string | undefined): HorizontalPodAutoscalerBehavior | undefined {
  const value = parsed(text);
  if (typeof value !== "object" || value === null) return undefined;
  try {
    const { scaleUp, scaleDown }: HorizontalPodAutoscalerBehavior = decodeValue(
      lowerCaseNames(value),
      scheme.type("autoscaling/v2.HorizontalPodAutoscalerBehavior")!,
    );
    if (scaleUp === undefined && scaleDown === undefined) return undefined;
    return { ...(scaleUp && { scaleUp }), ...(scaleDown && { scaleDown }) };
  } catch {
    return undefined;
  }
}

/** Changes Go field names to JSON names (`ScaleUp` to `scaleUp`) recursively; the struct is at most five levels deep. */
function lowerCaseNames(value: unknown, levels = 5): unknown {
  if (typeof value !== "object" || value === null || levels === 0) return value;
  if (Array.isArray(value)) return value.map((item) => lowerCaseNames(item, levels - 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.charAt(0).toLowerCase() + name.slice(1),
      lowerCaseNames(inner, levels - 1),
    ]),
  );
}
