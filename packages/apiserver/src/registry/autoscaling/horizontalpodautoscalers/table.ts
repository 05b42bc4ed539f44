import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { age, tableOf } from "../../cells.ts";

/** kubectl get hpa. Source: pkg/printers/internalversion/printers.go printHorizontalPodAutoscaler */
export const autoscalerTable = tableOf<HorizontalPodAutoscaler>("horizontalpodautoscalers", (autoscaler, ages) => {
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
});

const most = 2;

function targetsText(metrics: readonly MetricSpec[], statuses: readonly MetricStatus[]): string {
  if (metrics.length === 0) return "<none>";
  const texts = metrics.map((metric, i) => targetText(metric, statuses[i]));
  return texts.length > most ? `${texts.slice(0, most).join(", ")} + ${texts.length - most} more...` : texts.join(", ");
}

function targetText(metric: MetricSpec, status: MetricStatus | undefined): string {
  const unknown = "<unknown>";
  switch (metric.type) {
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
