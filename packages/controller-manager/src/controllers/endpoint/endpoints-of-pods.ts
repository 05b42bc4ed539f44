import { parseBool } from "@coxswain/apimachinery/flags/types";
import type {
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  Pod,
  Service,
  ServicePort,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
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

/** Pods that are looked at between two yields: one Service may select tens of thousands. */
const podsPerStep = 500;

/** Pure: a subset for each list of ports and readiness, to be merged by canonicalSubsets. Source: endpoints_controller.go syncService */
export function endpointsOfPods(service: Service, pods: readonly Pod[]): EndpointSubset[] {
  return atOnce(endpointsOfPodsInSteps(service, pods));
}

export function* endpointsOfPodsInSteps(service: Service, pods: readonly Pod[]): Steps<EndpointSubset[]> {
  const pace = new Pace(podsPerStep);
  const tolerateUnready = toleratesUnready(service);
  const subsets = new Map<EndpointPort[], EndpointSubset>();
  const portsOf = portsResolver(service, endpointPort);
  for (const pod of pods) {
    if (pace.isDue()) yield;
    if (!countsAsEndpoint(pod, tolerateUnready)) continue;
    const address = addressOf(service, pod);
    if (address === undefined) continue;
    const ports = portsOf(pod);
    if (ports.length === 0 && !(isHeadless(service) && (service.spec?.ports ?? []).length === 0)) continue;
    const list = tolerateUnready || isReady(pod) ? "addresses" : "notReadyAddresses";
    const subset = subsets.getOrInsertComputed(ports, () => (ports.length === 0 ? {} : { ports }));
    subset[list] ??= [];
    subset[list].push(address);
  }
  return [...subsets.values()];
}

/**
 * The legacy annotation takes precedence over publishNotReadyAddresses unless its value is not a boolean. The
 * endpointslice controller ignores it.
 */
function toleratesUnready(service: Service): boolean {
  const annotation = service.metadata.annotations?.["service.alpha.kubernetes.io/tolerate-unready-endpoints"];
  try {
    return annotation === undefined ? publishesNotReady(service) : parseBool(annotation);
  } catch {
    return publishesNotReady(service);
  }
}

/** Endpoints contain addresses of one family only, the Service's first. */
function addressOf(service: Service, pod: Pod): EndpointAddress | undefined {
  const [family] = familiesOf(service);
  const ip = addressesOf(pod).find((candidate) => ipFamilyOf(candidate) === family);
  if (ip === undefined) return undefined;
  const { namespace, name, uid } = pod.metadata;
  const hostname = hostnameIn(pod, service);
  return {
    ip,
    ...(hostname === undefined ? {} : { hostname }),
    ...(pod.spec.nodeName ? { nodeName: pod.spec.nodeName } : {}),
    targetRef: { kind: "Pod", ...(namespace === undefined ? {} : { namespace }), name: name ?? "", uid: uid ?? "" },
  };
}

function endpointPort({ name, protocol = "TCP", appProtocol }: ServicePort, port: number): EndpointPort {
  return { ...(name ? { name } : {}), port, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) };
}
