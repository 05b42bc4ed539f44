import type { Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointPort } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { isReady } from "../../pods/pod-state.ts";
import {
  addressesOf,
  countsAsEndpoint,
  familiesOf,
  hostnameIn,
  ipFamilyOf,
  isHeadless,
  publishesNotReady,
  targetPortOf,
} from "../../services/service-pods.ts";

/** Endpoints with the same address type and list of ports. */
export interface EndpointGroup {
  readonly addressType: "IPv4" | "IPv6";
  readonly ports: EndpointPort[];
  readonly endpoints: Endpoint[];
}

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
  const groups = new Map<string, EndpointGroup>();
  for (const addressType of familiesOf(service)) {
    for (const pod of pods) {
      if (!countsAsEndpoint(pod, true)) continue;
      const addresses = addressesOf(pod).filter((address) => ipFamilyOf(address) === addressType);
      const ports = portsOf(service, pod);
      if (addresses.length === 0 || ports === undefined) continue;
      const key = JSON.stringify([addressType, ports]);
      const group = groups.get(key) ?? { addressType, ports, endpoints: [] };
      groups.set(key, group);
      group.endpoints.push(endpointOf(service, pod, addresses, zoneOf(pod)));
    }
  }
  return [...groups.values()];
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

/** Resolved ports; undefined when the Service has no ports and is not headless, so that the Pod is not an endpoint. */
function portsOf(service: Service, pod: Pod): EndpointPort[] | undefined {
  const servicePorts = service.spec?.ports ?? [];
  if (servicePorts.length === 0) return isHeadless(service) ? [] : undefined;
  return servicePorts.flatMap((servicePort) => {
    const port = targetPortOf(pod, servicePort);
    if (port === undefined) return [];
    const { name = "", protocol = "TCP", appProtocol } = servicePort;
    return [{ name, protocol, port, ...(appProtocol === undefined ? {} : { appProtocol }) }];
  });
}
