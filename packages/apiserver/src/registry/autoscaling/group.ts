import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import {
  autoscalerFromV2beta1,
  autoscalerToV1,
  autoscalerToV2beta1,
  autoscalerV1ToV2,
  autoscalerWithoutAnnotations,
} from "./horizontalpodautoscalers/conversion.ts";
import { defaultAutoscaler, defaultAutoscalerV1, defaultAutoscalerV2beta1 } from "./horizontalpodautoscalers/defaults.ts";
import { autoscalerStatusStrategy, autoscalerStrategy } from "./horizontalpodautoscalers/strategy.ts";
import { autoscalerTable } from "./horizontalpodautoscalers/table.ts";

const deprecated = (version: string, removed: string) =>
  `autoscaling/${version} HorizontalPodAutoscaler is deprecated in ${version === "v2beta1" ? "v1.22+" : "v1.23+"}, unavailable in ${removed}; use autoscaling/v2 HorizontalPodAutoscaler`;

export function autoscalingResources(): ResourceDefinition[] {
  return inGroup("autoscaling", [
    {
      resource: "horizontalpodautoscalers",
      kind: "HorizontalPodAutoscaler",
      shortNames: ["hpa"],
      categories: ["all"],
      namespaced: true,
      versions: [
        { version: "v2", defaults: defaultAutoscaler, toHub: autoscalerWithoutAnnotations },
        { version: "v1", defaults: defaultAutoscalerV1, toHub: autoscalerV1ToV2, fromHub: autoscalerToV1 },
        {
          version: "v2beta1",
          defaults: defaultAutoscalerV2beta1,
          toHub: autoscalerFromV2beta1,
          fromHub: autoscalerToV2beta1,
          deprecation: deprecated("v2beta1", "v1.25+"),
        },
        {
          version: "v2beta2",
          defaults: defaultAutoscaler,
          toHub: autoscalerWithoutAnnotations,
          deprecation: deprecated("v2beta2", "v1.26+"),
        },
      ],
      storage: { group: "autoscaling", version: "v1" },
      strategy: autoscalerStrategy,
      statusStrategy: autoscalerStatusStrategy,
      table: autoscalerTable,
    },
  ]);
}
