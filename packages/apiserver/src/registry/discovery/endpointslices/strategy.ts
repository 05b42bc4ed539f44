import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { dns1123SubdomainProblems } from "../../field-checks.ts";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { hostnameLabel } from "./conversion.ts";
import { validateEndpointSlice, validateEndpointSliceUpdate } from "./validation.ts";

/** Source: pkg/registry/discovery/endpointslice/strategy.go */
export const endpointSliceStrategy: Strategy<EndpointSlice> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  prepareForCreate(next, ctx) {
    next.metadata.generation = 1;
    dropTopology(next, undefined, ctx);
  },
  prepareForUpdate(next, current, ctx) {
    const generation = current.metadata.generation ?? 0;
    const sameEndpoints = semanticEqual(next.endpoints, current.endpoints);
    const same =
      sameEndpoints && semanticEqual(next.ports, current.ports) && semanticEqual(next.metadata.labels, current.metadata.labels);
    next.metadata.generation = same ? generation : generation + 1;
    if (!sameEndpoints) dropTopology(next, current, ctx);
  },
  validateInSteps: (next, current) =>
    current === undefined ? validateEndpointSlice(next) : validateEndpointSliceUpdate(next, current),
};

/**
 * Only requests in v1beta1 write the topology. A node name that only the old topology says becomes the node name of the endpoint.
 * Source: dropTopologyOnV1
 */
function dropTopology(next: EndpointSlice, current: EndpointSlice | undefined, { requestVersion }: StrategyContext): void {
  if (requestVersion === undefined || requestVersion === "v1beta1") return;
  const known = new Set((current?.endpoints ?? []).map((endpoint) => endpoint.deprecatedTopology?.[hostnameLabel]));
  for (const endpoint of next.endpoints ?? []) {
    const hostname = endpoint.deprecatedTopology?.[hostnameLabel];
    if (hostname !== undefined && known.has(hostname) && dns1123SubdomainProblems(hostname).length === 0) {
      endpoint.nodeName ??= hostname;
    }
    delete endpoint.deprecatedTopology;
  }
}
