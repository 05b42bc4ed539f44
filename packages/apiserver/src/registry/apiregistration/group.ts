import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultApiService } from "./apiservices/defaults.ts";
import { apiServiceStatusStrategy, apiServiceStrategy } from "./apiservices/strategy.ts";
import { apiServiceTable } from "./apiservices/table.ts";

export function apiRegistrationResources(): ResourceDefinition[] {
  return inGroup("apiregistration.k8s.io", [
    {
      resource: "apiservices",
      kind: "APIService",
      categories: ["api-extensions"],
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultApiService }],
      storageFolder: "apiregistration.k8s.io/apiservices",
      strategy: apiServiceStrategy,
      statusStrategy: apiServiceStatusStrategy,
      table: apiServiceTable,
    },
  ]);
}
