import type { HorizontalPodAutoscaler as HpaV1 } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v1";
import type { HorizontalPodAutoscaler, HPAScalingRules } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { HorizontalPodAutoscaler as HpaV2beta1 } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2beta1";

const averageCpuPercent = 80;

/** v2 and v2beta2. Source: pkg/apis/autoscaling/v2/defaults.go */
export function defaultAutoscaler({ spec }: HorizontalPodAutoscaler): void {
  if (!spec) return;
  spec.minReplicas ??= 1;
  if (!spec.metrics?.length) {
    spec.metrics = [
      { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: averageCpuPercent } } },
    ];
  }
  defaultBehavior(spec);
}

/** Scaling rules get defaults only when `behavior` is set. */
function defaultBehavior(spec: { behavior?: { scaleUp?: HPAScalingRules; scaleDown?: HPAScalingRules } }): void {
  const { behavior } = spec;
  if (!behavior) return;
  behavior.scaleUp = {
    stabilizationWindowSeconds: 0,
    selectPolicy: "Max",
    policies: [
      { type: "Pods", value: 4, periodSeconds: 15 },
      { type: "Percent", value: 100, periodSeconds: 15 },
    ],
    ...given(behavior.scaleUp),
  };
  behavior.scaleDown = {
    selectPolicy: "Max",
    policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
    ...given(behavior.scaleDown),
  };
}

function given(rules: HPAScalingRules | undefined): HPAScalingRules {
  return Object.fromEntries(Object.entries(rules ?? {}).filter(([, value]) => value !== undefined && value !== null));
}

/** The default CPU target is set by the conversion to v2, after the metrics were read from the annotations. */
export function defaultAutoscalerV1({ spec }: HpaV1): void {
  if (spec) spec.minReplicas ??= 1;
}

export function defaultAutoscalerV2beta1({ spec }: HpaV2beta1): void {
  if (!spec) return;
  spec.minReplicas ??= 1;
  if (!spec.metrics?.length)
    spec.metrics = [{ type: "Resource", resource: { name: "cpu", targetAverageUtilization: averageCpuPercent } }];
}
