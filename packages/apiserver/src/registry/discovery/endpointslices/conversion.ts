import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Endpoint } from "@coxswain/apimachinery/schema/kinds/discovery/v1";

const hostnameLabel = "kubernetes.io/hostname";
const zoneLabel = "topology.kubernetes.io/zone";

interface EndpointV1beta1 extends Omit<Endpoint, "deprecatedTopology" | "zone"> {
  topology?: Record<string, string>;
}

/** v1beta1 says node and zone in `topology`. Source: pkg/apis/discovery/v1beta1/conversion.go */
export function endpointSliceToV1(object: KubeObject): KubeObject {
  const slice = object as KubeObject & { endpoints?: EndpointV1beta1[] };
  return {
    ...slice,
    apiVersion: "discovery.k8s.io/v1",
    endpoints: (slice.endpoints ?? []).map((endpoint) => {
      const { topology, ...rest } = endpoint;
      const converted: Endpoint = { ...rest };
      if (topology === undefined || Object.keys(topology).length === 0) return converted;
      const others = Object.fromEntries(Object.entries(topology).filter(([key]) => key !== hostnameLabel && key !== zoneLabel));
      if (topology[zoneLabel] !== undefined) converted.zone = topology[zoneLabel];
      if (topology[hostnameLabel] !== undefined && converted.nodeName === undefined) converted.nodeName = topology[hostnameLabel];
      if (Object.keys(others).length > 0) converted.deprecatedTopology = others;
      return converted;
    }),
  } as KubeObject;
}

export function endpointSliceFromV1(object: KubeObject): KubeObject {
  const slice = object as KubeObject & { endpoints?: Endpoint[] };
  return {
    ...slice,
    apiVersion: "discovery.k8s.io/v1beta1",
    endpoints: (slice.endpoints ?? []).map((endpoint) => {
      const { deprecatedTopology, zone, ...rest } = endpoint;
      const topology: [string, string][] = Object.entries(deprecatedTopology ?? {});
      if (zone !== undefined) topology.push([zoneLabel, zone]);
      if (endpoint.nodeName !== undefined) topology.push([hostnameLabel, endpoint.nodeName]);
      return topology.length === 0 ? rest : { ...rest, topology: Object.fromEntries(topology) };
    }),
  } as KubeObject;
}
