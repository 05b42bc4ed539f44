import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { definitionFromV1beta1, definitionToV1beta1 } from "./customresourcedefinitions/conversion.ts";
import { defaultCustomResourceDefinition } from "./customresourcedefinitions/defaults.ts";
import {
  customResourceDefinitionStatusStrategy,
  customResourceDefinitionStrategy,
} from "./customresourcedefinitions/strategy.ts";

export function apiExtensionsResources(): ResourceDefinition[] {
  return inGroup("apiextensions.k8s.io", [
    {
      resource: "customresourcedefinitions",
      kind: "CustomResourceDefinition",
      shortNames: ["crd", "crds"],
      categories: ["api-extensions"],
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultCustomResourceDefinition }],
      storage: { group: "apiextensions.k8s.io", version: "v1beta1" },
      formerVersions: [{ version: "v1beta1", toHub: definitionFromV1beta1, fromHub: definitionToV1beta1 }],
      storageFolder: "apiextensions.k8s.io/customresourcedefinitions",
      strategy: customResourceDefinitionStrategy,
      statusStrategy: customResourceDefinitionStatusStrategy,
    },
  ]);
}
