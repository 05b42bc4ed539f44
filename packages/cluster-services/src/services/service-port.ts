import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { type Family, isPort, openAddress, plainAddress, plainNetwork } from "./addresses.ts";

/** One port of a Service in one IP family, with the endpoints that this node sends its connections to. */
export interface ServicePort {
  /** `namespace/name:port name`. */
  readonly id: string;
  readonly protocol: "tcp" | "udp" | "sctp";
  readonly clusterIp: string;
  readonly port: number;
  readonly nodePort: number | undefined;
  readonly externalIps: readonly string[];
  readonly loadBalancerIps: readonly string[];
  /** Networks that may use the addresses of the load balancer; empty: all. */
  readonly sourceRanges: readonly string[];
  /** Timeout of session affinity in seconds; undefined without it. */
  readonly affinitySeconds: number | undefined;
  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  /** `address:port`, sorted; of all nodes, after topology hints. */
  readonly endpoints: readonly string[];
  /** Those on this node. */
  readonly localEndpoints: readonly string[];
}

type TrafficPolicy = "Cluster" | "Local";

/** The node that the rules are for. */
export interface ThisNode {
  readonly name: string;
  /** Label topology.kubernetes.io/zone; undefined without it. */
  readonly zone: string | undefined;
}

/**
 * Pure: the ports of a Service that rules are made for. Headless Services, ExternalName, and Services that name another proxy have none.
 * @param slices those of the Service
 * Source: the Service and EndpointSlice API, KEP 2433 (hints), KEP 1669 (terminating endpoints)
 */
export function servicePorts(service: Service, slices: readonly EndpointSlice[], node: ThisNode, family: Family): ServicePort[] {
  const { spec, status, metadata } = service;
  const clusterIp = clusterIpOf(service, family);
  if (clusterIp === undefined) return [];
  const ofFamily = (ips: readonly string[]): string[] => ips.flatMap((ip) => openAddress(ip, family) ?? []);
  const usesHints = /^[aA]uto$/.test(metadata.annotations?.["service.kubernetes.io/topology-aware-hints"] ?? "");
  const sourceRanges = (spec.loadBalancerSourceRanges ?? []).flatMap((range) => plainNetwork(range.trim(), family) ?? []);
  const externalIps = ofFamily(spec.externalIPs ?? []);
  const loadBalancerIps = ofFamily((status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip ? [ip] : [])));
  const ports = spec.ports ?? [];
  const destinations = ports.length * (1 + externalIps.length + loadBalancerIps.length * (1 + sourceRanges.length));
  // Of too many ports nobody needs the endpoints, of which each port may have thousands.
  const own = destinations > mostDestinations ? [] : slices.filter((one) => one.addressType === family && !isForOthers(one));
  const read = own.map((slice) => readSlice(slice, family));
  return ports.map((port): ServicePort => {
    const all = read.flatMap((slice) => endpointsOf(slice, port.name ?? "", family));
    return {
      id: `${keyOf(service)}:${port.name || port.port}`,
      protocol: (port.protocol ?? "TCP").toLowerCase() as ServicePort["protocol"], // cast: the API server accepts no others
      clusterIp,
      port: port.port,
      nodePort: port.nodePort || undefined,
      externalIps,
      loadBalancerIps,
      sourceRanges,
      affinitySeconds: affinityOf(service),
      internalPolicy: spec.internalTrafficPolicy === "Local" ? "Local" : "Cluster",
      externalPolicy: spec.externalTrafficPolicy === "Local" ? "Local" : "Cluster",
      endpoints: textOf(usable(usesHints ? nearby(all, node) : all)),
      localEndpoints: textOf(usable(all.filter(({ endpoint }) => endpoint.nodeName === node.name))),
    };
  });
}

/**
 * A Service needs rules for each of its ports on each of its addresses. The largest that the API server accepts would need a hundred
 * million, which neither this program's memory nor the kernel holds.
 */
export const mostDestinations = 10_000;

/** Number of addresses with a port, and of networks that may use them, for which the ports need rules. */
export const destinationsOf = (ports: readonly ServicePort[]): number =>
  ports.reduce(
    (sum, { externalIps, loadBalancerIps, sourceRanges }) =>
      sum + 1 + externalIps.length + loadBalancerIps.length * (1 + sourceRanges.length),
    0,
  );

/** Whether this program makes rules for the Service. */
function clusterIpOf(service: Service, family: Family): string | undefined {
  const { spec } = service;
  if (spec.type === "ExternalName" || isForOthers(service)) return undefined;
  const ips = spec.clusterIPs?.length ? spec.clusterIPs : [spec.clusterIP ?? ""];
  return ips.flatMap((ip) => plainAddress(ip, family) ?? [])[0];
}

/** Services and EndpointSlices that proxies leave alone whatever else they say. Source: cmd/kube-proxy/app/server.go */
export const isForOthers = ({ metadata }: Service | EndpointSlice): boolean =>
  ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"].some(
    (label) => metadata.labels?.[label] !== undefined,
  );

const defaultAffinitySeconds = 10_800;
const affinityOf = ({ spec }: Service): number | undefined =>
  spec.sessionAffinity === "ClientIP"
    ? (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds)
    : undefined;

interface Target {
  readonly text: string;
  readonly endpoint: Endpoint;
}

/** A slice with its ports by name, of which the first counts, and its endpoints with their addresses. */
interface ReadSlice {
  readonly ports: ReadonlyMap<string, number | null | undefined>;
  readonly endpoints: readonly { readonly address: string; readonly endpoint: Endpoint }[];
}

function readSlice(slice: EndpointSlice, family: Family): ReadSlice {
  const ports = new Map<string, number | null | undefined>();
  for (const { name, port } of slice.ports) ports.getOrInsert(name ?? "", port);
  const endpoints = slice.endpoints.flatMap((endpoint) => {
    const address = openAddress(endpoint.addresses[0] ?? "", family); // the API takes the addresses of one endpoint as alike
    return address === undefined ? [] : [{ address, endpoint }];
  });
  return { ports, endpoints };
}

function endpointsOf({ ports, endpoints }: ReadSlice, portName: string, family: Family): Target[] {
  const port = ports.get(portName);
  if (!isPort(port)) return [];
  return endpoints.map(({ address, endpoint }) => ({
    // Joined, it is one string; a template's would keep its parts, and there are as many as endpoints.
    text: [family === "IPv4" ? address : `[${address}]`, port].join(":"),
    endpoint,
  }));
}

const isReady = ({ endpoint: { conditions } }: Target): boolean => conditions?.ready !== false;

/** Ready endpoints; when there are none, those that terminate and still serve. */
function usable(targets: readonly Target[]): readonly Target[] {
  const ready = targets.filter(isReady);
  if (ready.length > 0) return ready;
  return targets.filter(({ endpoint: { conditions } }) => conditions?.serving === true && conditions.terminating === true);
}

/** Those with a hint for the node's zone; all when an endpoint lacks a hint or none is for the zone. */
function nearby(targets: readonly Target[], { zone }: ThisNode): readonly Target[] {
  const ready = targets.filter(isReady);
  if (zone === undefined || ready.some(({ endpoint }) => !endpoint.hints?.forZones?.length)) return targets;
  const near = ready.filter(({ endpoint }) => endpoint.hints?.forZones?.some(({ name }) => name === zone));
  return near.length > 0 ? near : targets;
}

const textOf = (targets: readonly Target[]): string[] => [...new Set(targets.map(({ text }) => text))].sort();
