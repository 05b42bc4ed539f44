import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoint } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Endpoint as EndpointV1beta1 } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1beta1";

export const hostnameLabel = "kubernetes.io/hostname";
const zoneLabel = "topology.kubernetes.io/zone";

/**
 * v1beta1 has node and zone in `topology`. A hostname other than the node name and all other keys are kept in
 * `deprecatedTopology`. Source: pkg/apis/discovery/v1beta1/conversion.go
 */
export function endpointSliceToV1(object: KubeObject): KubeObject {
  return eachEndpoint(object, ({ topology = {}, ...endpoint }: EndpointV1beta1): Endpoint => {
    const { [zoneLabel]: zone, ...others } = topology;
    if (others[hostnameLabel] === endpoint.nodeName) delete others[hostnameLabel];
    return {
      ...endpoint,
      ...(zone !== undefined && { zone }),
      ...(Object.keys(others).length > 0 && { deprecatedTopology: others }),
    };
  });
}

/** The reverse of `endpointSliceToV1`: node and zone are added to `topology`. */
export function endpointSliceFromV1(object: KubeObject): KubeObject {
  return eachEndpoint(object, ({ deprecatedTopology = {}, zone, ...endpoint }: Endpoint): EndpointV1beta1 => {
    const topology = { ...deprecatedTopology };
    if (zone !== undefined) topology[zoneLabel] = zone;
    if (endpoint.nodeName !== undefined) topology[hostnameLabel] ??= endpoint.nodeName;
    return Object.keys(topology).length === 0 ? endpoint : { ...endpoint, topology };
  });
}

function eachEndpoint<From, To>(
  object: KubeObject & { endpoints?: From[] },
  change: (endpoint: From) => To,
): KubeObject & { endpoints?: To[] } {
  const { endpoints, ...rest } = object;
  return endpoints === undefined ? rest : { ...object, endpoints: endpoints.map(change) };
}
