import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerStatus,
  MetricSpec,
  MetricStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";

/** A sentence with the replica count and the metrics that led to it. */
export function sumOf({ spec }: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus): Outcome {
  const condition = (type: string) => status.conditions?.find((one) => one.type === type);
  const inactive = condition("ScalingActive");
  const isInactive = inactive?.status === "False";
  const limited = condition("ScalingLimited");
  const isLimited = limited?.status === "True";
  return {
    verdict: isInactive ? "waiting" : "done",
    reason: (isInactive ? inactive.reason : isLimited ? limited.reason : undefined) ?? "Computed",
    description() {
      const { currentReplicas = 0, desiredReplicas, currentMetrics = [] } = status;
      const range = `${spec.minReplicas ?? 1} to ${spec.maxReplicas}`;
      const parts = [`has ${currentReplicas} replicas and wants ${desiredReplicas}, of ${range}`];
      for (const [i, metric] of currentMetrics.entries()) parts.push(...metricText(metric, spec.metrics?.[i]));
      if (isInactive) parts.push(inactive.message ?? "");
      if (isLimited) parts.push(limited.message ?? "");
      const able = condition("AbleToScale");
      if (able?.reason === "ScaleDownStabilized" || able?.reason === "ScaleUpStabilized") parts.push(able.message ?? "");
      return {
        summary: parts.filter((part) => part !== "").join("; "),
        details: { currentReplicas, desiredReplicas, currentMetrics },
      };
    },
    sizeBytes: 2000,
  };
}

interface Amounts {
  readonly averageUtilization?: number;
  readonly averageValue?: unknown;
  readonly value?: unknown;
}

/** `cpu 90% of the requests, target 50%` */
function metricText(metric: MetricStatus, spec: MetricSpec | undefined): string[] {
  for (const type of ["resource", "containerResource", "pods", "object", "external"] as const) {
    const current: { name?: string; metric?: { name?: string }; current?: Amounts } | undefined = metric[type];
    if (current === undefined) continue;
    const wanted: { target?: Amounts } | undefined = spec?.[type];
    const target = wanted?.target;
    const name = current.name ?? current.metric?.name ?? type;
    return [`${name} ${amountText(current.current, target)}, target ${amountText(target, target)}`];
  }
  return [];
}

function amountText(amounts: Amounts | undefined, like: Amounts | undefined): string {
  if (like?.averageUtilization !== undefined) return `${amounts?.averageUtilization ?? "?"}% of the requests`;
  if (like?.averageValue !== undefined) return `${String(amounts?.averageValue ?? "?")} on average`;
  return String(amounts?.value ?? amounts?.averageValue ?? "?");
}
