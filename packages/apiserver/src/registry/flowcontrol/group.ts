import { inGroup } from "../definition.ts";
import type { ResourceDefinition, ResourceVersionDefinition } from "../generic/resource.ts";
import { defaultFlowSchema } from "./flowschemas/defaults.ts";
import { flowSchemaStatusStrategy, flowSchemaStrategy } from "./flowschemas/strategy.ts";
import { flowSchemaTable } from "./flowschemas/table.ts";
import { defaultPriorityLevel } from "./prioritylevelconfigurations/defaults.ts";
import { priorityLevelStatusStrategy, priorityLevelStrategy } from "./prioritylevelconfigurations/strategy.ts";
import { priorityLevelTable } from "./prioritylevelconfigurations/table.ts";

const group = "flowcontrol.apiserver.k8s.io";

function versions(defaults: NonNullable<ResourceVersionDefinition["defaults"]>, kind: string): ResourceVersionDefinition[] {
  const use = `use ${group}/v1beta2 ${kind}`;
  const deprecation = (version: string, since: string) => `${group}/${version} ${kind} is deprecated in ${since}; ${use}`;
  return [
    { version: "v1beta2", defaults },
    { version: "v1beta1", defaults, deprecation: deprecation("v1beta1", "v1.23+, unavailable in v1.26+") },
    {
      // Upstream does not serve it since 1.21, even when it is enabled explicitly.
      version: "v1alpha1",
      servedByDefault: false,
      defaults,
      deprecation: deprecation("v1alpha1", "v1.20+, unavailable in v1.21+"),
    },
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
