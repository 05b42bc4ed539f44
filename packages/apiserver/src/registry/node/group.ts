import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { runtimeClassFromV1, runtimeClassToV1 } from "./runtimeclasses/conversion.ts";
import { runtimeClassStrategy } from "./runtimeclasses/strategy.ts";
import { runtimeClassTable } from "./runtimeclasses/table.ts";

export function nodeResources(): ResourceDefinition[] {
  return inGroup("node.k8s.io", [
    {
      resource: "runtimeclasses",
      kind: "RuntimeClass",
      namespaced: false,
      versions: [
        "v1",
        {
          version: "v1beta1",
          deprecation:
            "node.k8s.io/v1beta1 RuntimeClass is deprecated in v1.22+, unavailable in v1.25+; use node.k8s.io/v1 RuntimeClass",
        },
        { version: "v1alpha1", servedByDefault: false, toHub: runtimeClassToV1, fromHub: runtimeClassFromV1 },
      ],
      strategy: runtimeClassStrategy,
      table: runtimeClassTable,
    },
  ]);
}
