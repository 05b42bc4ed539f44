import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { endpointSliceFromV1, endpointSliceToV1 } from "./endpointslices/conversion.ts";
import { defaultEndpointSlice } from "./endpointslices/defaults.ts";
import { endpointSliceStrategy } from "./endpointslices/strategy.ts";
import { endpointSliceTable } from "./endpointslices/table.ts";

export function discoveryResources(): ResourceDefinition[] {
  return inGroup("discovery.k8s.io", [
    {
      resource: "endpointslices",
      kind: "EndpointSlice",
      namespaced: true,
      versions: [
        { version: "v1", defaults: defaultEndpointSlice },
        {
          version: "v1beta1",
          defaults: defaultEndpointSlice,
          toHub: endpointSliceToV1,
          fromHub: endpointSliceFromV1,
          deprecation:
            "discovery.k8s.io/v1beta1 EndpointSlice is deprecated in v1.21+, unavailable in v1.25+; use discovery.k8s.io/v1 EndpointSlice",
        },
      ],
      // Storage version as in upstream 1.23; also readable by API servers of 1.20.
      storage: { group: "discovery.k8s.io", version: "v1beta1" },
      strategy: endpointSliceStrategy,
      table: endpointSliceTable,
    },
  ]);
}
