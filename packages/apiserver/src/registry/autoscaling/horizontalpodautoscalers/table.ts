import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

/** kubectl get hpa. Source: pkg/printers/internalversion/printers.go printHorizontalPodAutoscaler */
export const autoscalerTable = tableOf<HorizontalPodAutoscaler>(
  [
    nameColumn,
    text(
      "Reference",
      "scaleTargetRef points to the target resource to scale, and is used to the pods for which metrics should be collected, as well as to actually change the replica count.",
    ),
    text(
      "Targets",
      "metrics contains the specifications for which to use to calculate the desired replica count (the maximum replica count across all metrics will be used).  The desired replica count is calculated multiplying the ratio between the target value and the current value by the current number of pods.  Ergo, metrics used must decrease as the pod count is increased, and vice-versa.  See the individual metric source types for more information about how each type of metric must respond. If not set, the default metric will be set to 80% average CPU utilization.",
    ),
    text(
      "MinPods",
      "minReplicas is the lower limit for the number of replicas to which the autoscaler can scale down.  It defaults to 1 pod.  minReplicas is allowed to be 0 if the alpha feature gate HPAScaleToZero is enabled and at least one Object or External metric is configured.  Scaling is active as long as at least one metric value is available.",
    ),
    text(
      "MaxPods",
      "maxReplicas is the upper limit for the number of replicas to which the autoscaler can scale up. It cannot be less that minReplicas.",
    ),
    text(
      "Replicas",
      "currentReplicas is current number of replicas of pods managed by this autoscaler, as last seen by the autoscaler.",
    ),
    ageColumn,
  ],
  (autoscaler, ages) => {
    const { spec, status } = autoscaler;
    return [
      autoscaler.metadata.name ?? "",
      `${spec?.scaleTargetRef?.kind ?? ""}/${spec?.scaleTargetRef?.name ?? ""}`,
      targetsText(spec?.metrics ?? [], status?.currentMetrics ?? []),
      spec?.minReplicas == null ? "<unset>" : String(spec.minReplicas),
      spec?.maxReplicas ?? 0,
      status?.currentReplicas ?? 0,
      age(autoscaler, ages),
    ];
  },
);

const most = 2;

function targetsText(metrics: readonly MetricSpec[], statuses: readonly MetricStatus[]): string {
  if (metrics.length === 0) return "<none>";
  const texts = metrics.map((metric, i) => targetText(metric, statuses[i]));
  return texts.length > most ? `${texts.slice(0, most).join(", ")} + ${texts.length - most} more...` : texts.join(", ");
}

function targetText(metric: MetricSpec, status: MetricStatus | undefined): string {
  const unknown = "<unknown>";
  switch (metric.type as string) {
    case "External":
    case "Object": {
      const key = metric.type === "External" ? "external" : "object";
      const target = metric[key]?.target;
      const current = status?.[key]?.current;
      if (target?.averageValue != null) return `${current?.averageValue ?? unknown}/${target.averageValue} (avg)`;
      return `${current?.value ?? unknown}/${target?.value ?? unknown}`;
    }
    case "Pods":
      return `${status?.pods?.current.averageValue ?? unknown}/${metric.pods?.target.averageValue}`;
    case "Resource":
    case "ContainerResource": {
      const key = metric.type === "Resource" ? "resource" : "containerResource";
      const target = metric[key]?.target;
      const current = status?.[key]?.current;
      if (target?.averageValue != null) return `${current?.averageValue ?? unknown}/${target.averageValue}`;
      const wanted = target?.averageUtilization == null ? "<auto>" : `${target.averageUtilization}%`;
      return `${current?.averageUtilization == null ? unknown : `${current.averageUtilization}%`}/${wanted}`;
    }
    default:
      return "<unknown type>";
  }
}
