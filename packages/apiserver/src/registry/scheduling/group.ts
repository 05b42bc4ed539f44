import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultPriorityClass } from "./priorityclasses/defaults.ts";
import { priorityClassStrategy } from "./priorityclasses/strategy.ts";
import { priorityClassTable } from "./priorityclasses/table.ts";

export function schedulingResources(): ResourceDefinition[] {
  return inGroup("scheduling.k8s.io", [
    {
      resource: "priorityclasses",
      kind: "PriorityClass",
      shortNames: ["pc"],
      namespaced: false,
      versions: [
        { version: "v1", defaults: defaultPriorityClass },
        { version: "v1alpha1", servedByDefault: false, defaults: defaultPriorityClass },
      ],
      strategy: priorityClassStrategy,
      table: priorityClassTable,
    },
  ]);
}
