import type { Pod, Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointPort } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { atOnce, Pace, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { isReady } from "../../pods/pod-state.ts";
import {
  addressesOf,
  countsAsEndpoint,
  familiesOf,
  hostnameIn,
  ipFamilyOf,
  isHeadless,
  portsResolver,
  publishesNotReady,
} from "../../services/service-pods.ts";

/** Endpoints with the same address type and list of ports. */
export interface EndpointGroup {
  readonly addressType: "IPv4" | "IPv6";
  readonly ports: EndpointPort[];
  readonly endpoints: Endpoint[];
}

/** Pods that are looked at between two yields: one Service may select tens of thousands. */
const podsPerStep = 500;

/**
 * Pure: computes the endpoints of a Service, grouped by address family and by the resolved ports of each Pod. A
 * terminating Pod stays with condition terminating and is ready only with publishNotReadyAddresses.
 * Source: endpointslice/reconciler.go, utils.go podToEndpoint
 */
export function endpointsOfPods(
  service: Service,
  pods: readonly Pod[],
  zoneOf: (pod: Pod) => string | undefined,
): EndpointGroup[] {
  return atOnce(endpointsOfPodsInSteps(service, pods, zoneOf));
}

export function* endpointsOfPodsInSteps(
  service: Service,
  pods: readonly Pod[],
  zoneOf: (pod: Pod) => string | undefined,
): Steps<EndpointGroup[]> {
  const pace = new Pace(podsPerStep);
  const groups = new Map<string, Map<EndpointPort[], EndpointGroup>>();
  const portsOf = portsResolver(service, endpointPort);
  // Without ports, Pods are endpoints of headless Services only.
  if ((service.spec?.ports ?? []).length === 0 && !isHeadless(service)) return [];
  for (const addressType of familiesOf(service)) {
    for (const pod of pods) {
      if (pace.isDue()) yield;
      if (!countsAsEndpoint(pod, true)) continue;
      const addresses = addressesOf(pod).filter((address) => ipFamilyOf(address) === addressType);
      if (addresses.length === 0) continue;
      const ports = portsOf(pod);
      const group = groups
        .getOrInsertComputed(addressType, () => new Map<EndpointPort[], EndpointGroup>())
        .getOrInsertComputed(ports, () => ({ addressType, ports, endpoints: [] }));
      group.endpoints.push(endpointOf(service, pod, addresses, zoneOf(pod)));
    }
  }
  return [...groups.values()].flatMap((ofType) => [...ofType.values()]);
}

function endpointOf(service: Service, pod: Pod, addresses: string[], zone: string | undefined): Endpoint {
  const serving = isReady(pod);
  const terminating = Boolean(pod.metadata.deletionTimestamp);
  const ready = publishesNotReady(service) || (serving && !terminating);
  const { namespace, name, uid } = pod.metadata;
  const hostname = hostnameIn(pod, service);
  return {
    addresses,
    conditions: { ready, serving, terminating },
    ...(hostname === undefined ? {} : { hostname }),
    targetRef: { kind: "Pod", ...(namespace === undefined ? {} : { namespace }), name: name ?? "", uid: uid ?? "" },
    ...(pod.spec.nodeName ? { nodeName: pod.spec.nodeName } : {}),
    ...(zone === undefined ? {} : { zone }),
  };
}

function endpointPort({ name = "", protocol = "TCP", appProtocol }: ServicePort, port: number): EndpointPort {
  return { name, protocol, port, ...(appProtocol === undefined ? {} : { appProtocol }) };
}
