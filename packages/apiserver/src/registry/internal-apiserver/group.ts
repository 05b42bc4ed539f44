import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { storageVersionStatusStrategy, storageVersionStrategy } from "./storageversions/strategy.ts";
import { storageVersionTable } from "./storageversions/table.ts";

export function internalApiserverResources(): ResourceDefinition[] {
  return inGroup("internal.apiserver.k8s.io", [
    {
      resource: "storageversions",
      kind: "StorageVersion",
      namespaced: false,
      versions: [{ version: "v1alpha1", servedByDefault: false }],
      strategy: storageVersionStrategy,
      statusStrategy: storageVersionStatusStrategy,
      table: storageVersionTable,
    },
  ]);
}
