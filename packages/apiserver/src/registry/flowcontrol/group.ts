import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultFlowSchema } from "./flowschemas/defaults.ts";
import { flowSchemaStatusStrategy, flowSchemaStrategy } from "./flowschemas/strategy.ts";
import { flowSchemaTable } from "./flowschemas/table.ts";
import { defaultPriorityLevel } from "./prioritylevelconfigurations/defaults.ts";
import { priorityLevelStatusStrategy, priorityLevelStrategy } from "./prioritylevelconfigurations/strategy.ts";
import { priorityLevelTable } from "./prioritylevelconfigurations/table.ts";

const group = "flowcontrol.apiserver.k8s.io";

function versions(defaults: typeof defaultFlowSchema, kind: string) {
  return [
    { version: "v1beta2", defaults },
    {
      version: "v1beta1",
      defaults,
      deprecation: `${group}/v1beta1 ${kind} is deprecated in v1.23+, unavailable in v1.26+; use ${group}/v1beta2 ${kind}`,
    },
    { version: "v1alpha1", servedByDefault: false, defaults },
  ];
}

export function flowControlResources(): ResourceDefinition[] {
  return inGroup(group, [
    {
      resource: "flowschemas",
      kind: "FlowSchema",
      namespaced: false,
      versions: versions(defaultFlowSchema, "FlowSchema"),
      storage: { group, version: "v1beta1" },
      strategy: flowSchemaStrategy,
      statusStrategy: flowSchemaStatusStrategy,
      table: flowSchemaTable,
    },
    {
      resource: "prioritylevelconfigurations",
      kind: "PriorityLevelConfiguration",
      namespaced: false,
      versions: versions(defaultPriorityLevel, "PriorityLevelConfiguration"),
      storage: { group, version: "v1beta1" },
      strategy: priorityLevelStrategy,
      statusStrategy: priorityLevelStatusStrategy,
      table: priorityLevelTable,
    },
  ]);
}
