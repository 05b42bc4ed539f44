import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { validateEndpointSlice, validateEndpointSliceUpdate } from "./validation.ts";

/** Source: pkg/registry/discovery/endpointslice/strategy.go */
export const endpointSliceStrategy: Strategy<EndpointSlice> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  prepareForCreate(next) {
    next.metadata.generation = 1;
  },
  prepareForUpdate(next, current) {
    const generation = current.metadata.generation ?? 0;
    const same =
      semanticEqual(next.ports, current.ports) &&
      semanticEqual(next.endpoints, current.endpoints) &&
      semanticEqual(next.metadata.labels, current.metadata.labels);
    next.metadata.generation = same ? generation : generation + 1;
  },
  validateInSteps: (next, current) =>
    current === undefined ? validateEndpointSlice(next) : validateEndpointSliceUpdate(next, current),
};
