import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { HorizontalPodAutoscaler as HpaV1 } from "@coxswain/apimachinery/schema/kinds/autoscaling/v1";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerSpec,
  MetricSpec,
  MetricStatus,
  MetricTarget,
} from "@coxswain/apimachinery/schema/kinds/autoscaling/v2";

/**
 * HorizontalPodAutoscalers between their versions. v1 knows one cpu target and keeps the rest in annotations, as
 * v2beta1 shapes; v2beta1 has targets spread over several fields.
 * Source: pkg/apis/autoscaling/{v1,v2beta1}/conversion.go, pkg/apis/autoscaling/annotations.go
 */
const metricSpecs = "autoscaling.alpha.kubernetes.io/metrics";
const metricStatuses = "autoscaling.alpha.kubernetes.io/current-metrics";
const conditions = "autoscaling.alpha.kubernetes.io/conditions";
const behavior = "autoscaling.alpha.kubernetes.io/behavior";
const ours = [metricSpecs, metricStatuses, conditions, behavior];

// biome-ignore lint/suspicious/noExplicitAny: v2beta1 shapes differ only in where numbers are.
type Loose = any;

function isCpuUtilization(metric: MetricSpec): boolean {
  return metric.type === "Resource" && metric.resource?.name === "cpu" && metric.resource.target.averageUtilization != null;
}

export function autoscalerToV1(object: KubeObject): KubeObject {
  const hub = object as HorizontalPodAutoscaler;
  const { metrics = [], behavior: rules, ...spec } = hub.spec ?? ({} as HorizontalPodAutoscalerSpec);
  const annotations = withoutOurs(hub.metadata.annotations);
  const v1: HpaV1 = {
    ...hub,
    apiVersion: "autoscaling/v1",
    metadata: { ...hub.metadata },
    spec: { ...spec },
    status: undefined,
  } as unknown as HpaV1;
  const cpu = metrics.find(isCpuUtilization);
  if (cpu?.resource?.target.averageUtilization != null)
    v1.spec.targetCPUUtilizationPercentage = cpu.resource.target.averageUtilization;
  const others = metrics.filter((metric) => metric !== cpu);
  if (others.length > 0) annotations[metricSpecs] = JSON.stringify(others.map(metricToV2beta1));
  const status = hub.status;
  if (status) {
    const { currentMetrics = [], conditions: hubConditions = [], ...rest } = status;
    v1.status = { ...rest } as NonNullable<HpaV1["status"]>;
    const currentCpu = (currentMetrics ?? []).find(
      (m) => m.type === "Resource" && m.resource?.name === "cpu" && m.resource.current.averageUtilization != null,
    );
    if (currentCpu?.resource?.current.averageUtilization != null) {
      v1.status.currentCPUUtilizationPercentage = currentCpu.resource.current.averageUtilization;
    }
    if ((currentMetrics ?? []).length > 0)
      annotations[metricStatuses] = JSON.stringify((currentMetrics ?? []).map(statusToV2beta1));
    if ((hubConditions ?? []).length > 0) annotations[conditions] = JSON.stringify(hubConditions);
  } else {
    delete v1.status;
  }
  if (rules) annotations[behavior] = JSON.stringify({ ScaleUp: goRules(rules.scaleUp), ScaleDown: goRules(rules.scaleDown) });
  if (Object.keys(annotations).length > 0) v1.metadata.annotations = annotations;
  else delete v1.metadata.annotations;
  return v1;
}

export function autoscalerV1ToV2(object: KubeObject): KubeObject {
  const v1 = object as HpaV1;
  const annotations = v1.metadata.annotations ?? {};
  const { targetCPUUtilizationPercentage: percent, ...spec } = v1.spec ?? ({} as HpaV1["spec"]);
  const hub = {
    ...v1,
    apiVersion: "autoscaling/v2",
    metadata: { ...v1.metadata },
    spec: { ...spec },
  } as unknown as HorizontalPodAutoscaler;
  const metrics: MetricSpec[] = [];
  if (percent != null)
    metrics.push({ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: percent } } });
  const others = parsed(annotations[metricSpecs]);
  if (Array.isArray(others)) metrics.push(...others.map(metricFromV2beta1));
  if (metrics.length === 0)
    metrics.push({ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } });
  hub.spec.metrics = metrics;
  const rules = parsed(annotations[behavior]);
  if (rules && typeof rules === "object") {
    hub.spec.behavior = {};
    if (rules.ScaleUp) hub.spec.behavior.scaleUp = rulesFromGo(rules.ScaleUp);
    if (rules.ScaleDown) hub.spec.behavior.scaleDown = rulesFromGo(rules.ScaleDown);
  }
  if (v1.status) {
    const { currentCPUUtilizationPercentage: current, ...status } = v1.status;
    hub.status = { ...status, desiredReplicas: status.desiredReplicas ?? 0 } as unknown as NonNullable<
      HorizontalPodAutoscaler["status"]
    >;
    const statuses = parsed(annotations[metricStatuses]);
    if (Array.isArray(statuses)) hub.status.currentMetrics = statuses.map(statusFromV2beta1);
    else if (current != null) {
      hub.status.currentMetrics = [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: current } } }];
    }
    const found = parsed(annotations[conditions]);
    if (Array.isArray(found)) hub.status.conditions = found;
  }
  const rest = withoutOurs(annotations);
  if (Object.keys(rest).length > 0) hub.metadata.annotations = rest;
  else delete hub.metadata.annotations;
  return hub;
}

export function autoscalerToV2beta1(object: KubeObject): KubeObject {
  const hub = object as HorizontalPodAutoscaler;
  const { behavior: rules, ...spec } = hub.spec ?? ({} as HorizontalPodAutoscalerSpec);
  const annotations = withoutOurs(hub.metadata.annotations);
  if (rules) annotations[behavior] = JSON.stringify({ ScaleUp: goRules(rules.scaleUp), ScaleDown: goRules(rules.scaleDown) });
  const converted: Loose = { ...hub, apiVersion: "autoscaling/v2beta1", metadata: { ...hub.metadata }, spec: { ...spec } };
  if (spec.metrics) converted.spec.metrics = spec.metrics.map(metricToV2beta1);
  if (hub.status) {
    converted.status = { ...hub.status };
    if (hub.status.currentMetrics) converted.status.currentMetrics = hub.status.currentMetrics.map(statusToV2beta1);
  }
  if (Object.keys(annotations).length > 0) converted.metadata.annotations = annotations;
  else delete converted.metadata.annotations;
  return converted;
}

export function autoscalerFromV2beta1(object: KubeObject): KubeObject {
  const old = object as Loose;
  const hub: Loose = { ...old, apiVersion: "autoscaling/v2", metadata: { ...old.metadata }, spec: { ...old.spec } };
  if (old.spec?.metrics) hub.spec.metrics = old.spec.metrics.map(metricFromV2beta1);
  if (old.status) {
    hub.status = { ...old.status };
    if (old.status.currentMetrics) hub.status.currentMetrics = old.status.currentMetrics.map(statusFromV2beta1);
  }
  const rules = parsed(old.metadata?.annotations?.[behavior]);
  if (rules && typeof rules === "object") {
    hub.spec.behavior = {};
    if (rules.ScaleUp) hub.spec.behavior.scaleUp = rulesFromGo(rules.ScaleUp);
    if (rules.ScaleDown) hub.spec.behavior.scaleDown = rulesFromGo(rules.ScaleDown);
    const rest = withoutOurs(old.metadata.annotations);
    if (Object.keys(rest).length > 0) hub.metadata.annotations = rest;
    else delete hub.metadata.annotations;
  }
  return hub;
}

/** Annotations are user input: what is no JSON is ignored. */
function parsed(text: string | undefined): Loose {
  if (text === undefined || text.length > 256 * 1024) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withoutOurs(annotations: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations ?? {}).filter(([key]) => !ours.includes(key)));
}

function metricToV2beta1(metric: MetricSpec): Loose {
  const { type } = metric;
  const target = (t: MetricTarget | undefined): MetricTarget => t ?? { type: "" };
  switch (type as string) {
    case "Resource":
      return { type, resource: compact({ name: metric.resource?.name, ...resourceTarget(target(metric.resource?.target)) }) };
    case "ContainerResource":
      return {
        type,
        containerResource: compact({
          name: metric.containerResource?.name,
          container: metric.containerResource?.container,
          ...resourceTarget(target(metric.containerResource?.target)),
        }),
      };
    case "Pods":
      return {
        type,
        pods: compact({
          metricName: metric.pods?.metric.name,
          selector: metric.pods?.metric.selector,
          targetAverageValue: metric.pods?.target.averageValue,
        }),
      };
    case "Object":
      return {
        type,
        object: compact({
          target: metric.object?.describedObject,
          metricName: metric.object?.metric.name,
          selector: metric.object?.metric.selector,
          targetValue: metric.object?.target.value ?? "0",
          averageValue: metric.object?.target.averageValue,
        }),
      };
    case "External":
      return {
        type,
        external: compact({
          metricName: metric.external?.metric.name,
          metricSelector: metric.external?.metric.selector,
          targetValue: metric.external?.target.value,
          targetAverageValue: metric.external?.target.averageValue,
        }),
      };
    default:
      return { type };
  }
}

function resourceTarget(target: MetricTarget): Loose {
  return { targetAverageUtilization: target.averageUtilization, targetAverageValue: target.averageValue };
}

function metricFromV2beta1(old: Loose): MetricSpec {
  const type = String(old?.type ?? "");
  const part = (name: string): Loose => old?.[name] ?? {};
  switch (type) {
    case "Resource":
      return { type, resource: { name: part("resource").name ?? "", target: utilizationOrAverage(part("resource")) } };
    case "ContainerResource": {
      const c = part("containerResource");
      return { type, containerResource: { name: c.name ?? "", container: c.container ?? "", target: utilizationOrAverage(c) } };
    }
    case "Pods":
      return {
        type,
        pods: {
          metric: compact({ name: part("pods").metricName ?? "", selector: part("pods").selector }),
          target: compact({ type: "AverageValue", averageValue: part("pods").targetAverageValue }),
        },
      };
    case "Object": {
      const o = part("object");
      const target: Loose =
        o.averageValue != null ? { type: "AverageValue", averageValue: o.averageValue } : { type: "Value", value: o.targetValue };
      return {
        type,
        object: {
          describedObject: o.target ?? { kind: "", name: "" },
          metric: compact({ name: o.metricName ?? "", selector: o.selector }),
          target,
        },
      };
    }
    case "External": {
      const e = part("external");
      const target: Loose =
        e.targetAverageValue != null
          ? { type: "AverageValue", averageValue: e.targetAverageValue }
          : { type: "Value", value: e.targetValue };
      return { type, external: { metric: compact({ name: e.metricName ?? "", selector: e.metricSelector }), target } };
    }
    default:
      return { type };
  }
}

function utilizationOrAverage(old: Loose): MetricTarget {
  if (old.targetAverageUtilization != null) return { type: "Utilization", averageUtilization: old.targetAverageUtilization };
  return compact({ type: "AverageValue", averageValue: old.targetAverageValue }) as MetricTarget;
}

function statusToV2beta1(status: MetricStatus): Loose {
  const { type } = status;
  switch (type as string) {
    case "Resource":
    case "ContainerResource": {
      const key = type === "Resource" ? "resource" : "containerResource";
      const part = status[key] as Loose;
      return {
        type,
        [key]: compact({
          name: part?.name,
          container: part?.container,
          currentAverageUtilization: part?.current?.averageUtilization,
          currentAverageValue: part?.current?.averageValue ?? "0",
        }),
      };
    }
    case "Pods":
      return {
        type,
        pods: compact({
          metricName: status.pods?.metric.name,
          selector: status.pods?.metric.selector,
          currentAverageValue: status.pods?.current.averageValue ?? "0",
        }),
      };
    case "Object":
      return {
        type,
        object: compact({
          target: status.object?.describedObject,
          metricName: status.object?.metric.name,
          selector: status.object?.metric.selector,
          currentValue: status.object?.current.value ?? "0",
          averageValue: status.object?.current.averageValue,
        }),
      };
    case "External":
      return {
        type,
        external: compact({
          metricName: status.external?.metric.name,
          metricSelector: status.external?.metric.selector,
          currentValue: status.external?.current.value ?? "0",
          currentAverageValue: status.external?.current.averageValue,
        }),
      };
    default:
      return { type };
  }
}

function statusFromV2beta1(old: Loose): MetricStatus {
  const type = String(old?.type ?? "");
  switch (type) {
    case "Resource":
    case "ContainerResource": {
      const key = type === "Resource" ? "resource" : "containerResource";
      const part = old[key] ?? {};
      const current = compact({ averageUtilization: part.currentAverageUtilization, averageValue: part.currentAverageValue });
      return { type, [key]: compact({ name: part.name ?? "", container: part.container, current }) } as unknown as MetricStatus;
    }
    case "Pods":
      return {
        type,
        pods: {
          metric: compact({ name: old.pods?.metricName ?? "", selector: old.pods?.selector }),
          current: compact({ averageValue: old.pods?.currentAverageValue }),
        },
      };
    case "Object":
      return {
        type,
        object: {
          describedObject: old.object?.target ?? { kind: "", name: "" },
          metric: compact({ name: old.object?.metricName ?? "", selector: old.object?.selector }),
          current: compact({ value: old.object?.currentValue, averageValue: old.object?.averageValue }),
        },
      };
    case "External":
      return {
        type,
        external: {
          metric: compact({ name: old.external?.metricName ?? "", selector: old.external?.metricSelector }),
          current: compact({ value: old.external?.currentValue, averageValue: old.external?.currentAverageValue }),
        },
      };
    default:
      return { type };
  }
}

/** The annotation holds upstream's internal struct, which has no JSON names. */
function goRules(rules: Loose): Loose {
  if (!rules) return null;
  return {
    StabilizationWindowSeconds: rules.stabilizationWindowSeconds ?? null,
    SelectPolicy: rules.selectPolicy ?? null,
    Policies: (rules.policies ?? []).map((p: Loose) => ({ Type: p.type, Value: p.value, PeriodSeconds: p.periodSeconds })),
  };
}

function rulesFromGo(rules: Loose): Loose {
  return compact({
    stabilizationWindowSeconds: rules.StabilizationWindowSeconds ?? undefined,
    selectPolicy: rules.SelectPolicy ?? undefined,
    policies: (rules.Policies ?? []).map((p: Loose) => ({ type: p.Type, value: p.Value, periodSeconds: p.PeriodSeconds })),
  });
}

function compact<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== null)) as T;
}
