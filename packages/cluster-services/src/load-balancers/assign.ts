import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { excludedLabel, loadBalancerClass, sharedAddressAnnotation } from "./names.ts";
import { canonical, familyOf, type IpFamily, type Pool } from "./pool.ts";

/** The addresses that a Service is to have in its status. */
export interface Assignment {
  readonly service: Service;
  readonly addresses: readonly string[];
  /** Why it has none, or not all. */
  readonly problem?: { readonly reason: string; readonly message: string };
}

export interface Cluster {
  readonly nodes: readonly Node[];
  readonly pool: Pool;
  /** Names of the nodes with ready endpoints of a Service. */
  readonly nodesWithEndpoints: (service: ObjectKey) => ReadonlySet<string>;
  /** Ports of the nodes' addresses that no Service may take: those of the nodes' own programs. */
  readonly reservedPorts: ReadonlySet<number>;
  /** All Services, whose node ports are taken too. */
  readonly services: readonly Service[];
}

/** Whether this program gives the Service its addresses. */
export const isServed = ({ spec }: Service): boolean =>
  spec.type === "LoadBalancer" && (spec.loadBalancerClass === undefined || spec.loadBalancerClass === loadBalancerClass);

/** Addresses in the status of a Service. */
export const statusAddresses = ({ status }: Service): string[] =>
  (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => canonical(ip ?? "") ?? []);

/**
 * Pure: the addresses of all Services of type LoadBalancer: of the pool, or where there is none those of the nodes. A Service
 * keeps its address. If two Services want the same address, it goes to the one that has it, then to the one that names it, then
 * to the older one.
 */
export function assignAddresses(cluster: Cluster): Assignment[] {
  const served = cluster.services.filter(isServed).toSorted(byClaim(cluster.pool));
  return cluster.pool.isEmpty ? fromNodes(served, cluster) : fromPool(served, cluster.pool);
}

function byClaim(pool: Pool): (a: Service, b: Service) => number {
  const rank = (service: Service): number => {
    const current = statusAddresses(service);
    const pending = requestedBy(service);
    const holds = pool.isEmpty ? current.length > 0 : current.some((ip) => pool.has(ip));
    if (holds && (pending === undefined || current.includes(pending))) return 0;
    return pending === undefined ? 2 : 1;
  };
  const age = ({ metadata }: Service): string => `${metadata.creationTimestamp ?? ""} ${metadata.namespace}/${metadata.name}`;
  return (a, b) => rank(a) - rank(b) || (age(a) < age(b) ? -1 : 1);
}

/** `spec.loadBalancerIP`, also when it is no address. */
const requestedBy = ({ spec }: Service): string | undefined =>
  spec.loadBalancerIP ? (canonical(spec.loadBalancerIP) ?? spec.loadBalancerIP) : undefined;

function familiesOf({ spec }: Service): IpFamily[] {
  if (spec.ipFamilies?.length) return spec.ipFamilies.map((family) => (family === "IPv6" ? "IPv6" : "IPv4"));
  return [familyOf(spec.clusterIP ?? "")];
}

const portsOf = ({ spec }: Service): string[] => (spec.ports ?? []).map(({ port, protocol = "TCP" }) => `${port}/${protocol}`);

function fromPool(served: readonly Service[], pool: Pool): Assignment[] {
  const users = new Map<string, Service[]>();
  const isFree = (ip: string, service: Service): boolean => (users.get(ip) ?? []).every((user) => mayShare(user, service));
  return served.map((service): Assignment => {
    const addresses: string[] = [];
    const lacking: string[] = [];
    const pending = requestedBy(service);
    if (pending !== undefined && !pool.has(pending))
      return {
        service,
        addresses,
        problem: { reason: "AddressNotInPool", message: `spec.loadBalancerIP ${pending} is not in the pool` },
      };
    const holder = pending === undefined ? undefined : users.get(pending)?.find((user) => !mayShare(user, service));
    if (pending !== undefined && holder !== undefined) {
      const message = `spec.loadBalancerIP ${pending} belongs to the Service ${keyOf(holder)}; Services of a namespace share an address when they have the annotation ${sharedAddressAnnotation} with the same value, no port in common, and externalTrafficPolicy Cluster`;
      return { service, addresses, problem: { reason: "AddressInUse", message } };
    }
    const current = statusAddresses(service).filter((ip) => pool.has(ip));
    for (const family of familiesOf(service)) {
      if (!pool.serves(family)) {
        lacking.push(`the pool has no ${family} addresses`);
        continue;
      }
      const isOf = (ip: string | undefined): ip is string => ip !== undefined && familyOf(ip) === family;
      const preferred = [pending, ...current, ...sharedWith(service, users)].filter(isOf);
      const ip = preferred.find((one) => isFree(one, service)) ?? pool.free(family, new Set(users.keys()));
      if (ip === undefined) {
        lacking.push(`all ${family} addresses of the pool are taken`);
        continue;
      }
      users.set(ip, [...(users.get(ip) ?? []), service]);
      addresses.push(ip);
    }
    if (lacking.length === 0) return { service, addresses };
    return { service, addresses, problem: { reason: "PoolExhausted", message: lacking.join("; ") } };
  });
}

/** Addresses of Services that this one may share one with, in the order in which they got them. */
const sharedWith = (service: Service, users: ReadonlyMap<string, readonly Service[]>): string[] =>
  sharingKey(service) === undefined
    ? []
    : [...users].filter(([, own]) => own.every((user) => mayShare(user, service))).map(([ip]) => ip);

const sharingKey = ({ metadata }: Service): string | undefined => metadata.annotations?.[sharedAddressAnnotation] || undefined;

function mayShare(one: Service, other: Service): boolean {
  const key = sharingKey(one);
  if (key === undefined || key !== sharingKey(other) || one.metadata.namespace !== other.metadata.namespace) return false;
  // With policy Local each of the Services could need a different node.
  if ([one, other].some(({ spec }) => spec.externalTrafficPolicy === "Local")) return false;
  const ports = new Set(portsOf(one));
  return !portsOf(other).some((port) => ports.has(port));
}

function fromNodes(served: readonly Service[], cluster: Cluster): Assignment[] {
  const taken = new Map<string, string>();
  for (const port of cluster.reservedPorts) {
    for (const protocol of ["TCP", "UDP", "SCTP"]) taken.set(`${port}/${protocol}`, "the nodes' own programs");
  }
  for (const service of cluster.services) {
    for (const { nodePort, protocol = "TCP" } of service.spec.ports ?? [])
      if (nodePort) taken.set(`${nodePort}/${protocol}`, asNodePort(service));
  }
  const usable = cluster.nodes.filter(isUsable);
  return served.map((service): Assignment => {
    const ports = portsOf(service);
    const ownNodePort = asNodePort(service);
    const conflict = ports.find((port) => taken.has(port) && taken.get(port) !== ownNodePort);
    if (conflict !== undefined) {
      const message = `port ${conflict} of the nodes' addresses belongs to ${taken.get(conflict)}`;
      return { service, addresses: [], problem: { reason: "PortConflict", message } };
    }
    for (const port of ports) taken.set(port, `the Service ${keyOf(service)}`);
    const local = service.spec.externalTrafficPolicy === "Local" ? cluster.nodesWithEndpoints(keyOf(service)) : undefined;
    const nodes = usable.filter(({ metadata }) => local?.has(metadata.name ?? "") ?? true);
    const all = familiesOf(service).flatMap((family) => addressesOf(nodes, family));
    const pending = requestedBy(service);
    if (pending === undefined) return { service, addresses: all };
    if (all.includes(pending)) return { service, addresses: [pending] };
    const message = `spec.loadBalancerIP ${pending} is no address of a node that can serve it, and there is no pool of others (--load-balancer-pool)`;
    return { service, addresses: [], problem: { reason: "AddressNotInPool", message } };
  });
}

const asNodePort = (service: Service): string => `the Service ${keyOf(service)} as node port`;

function isUsable({ metadata, status }: Node): boolean {
  if (metadata.labels?.[excludedLabel] !== undefined || metadata.deletionTimestamp) return false;
  return status?.conditions?.some(({ type, status: state }) => type === "Ready" && state === "True") === true;
}

/** The nodes' external addresses; where none has one, the internal ones. Sorted, so that a status changes only with the nodes. */
function addressesOf(nodes: readonly Node[], family: IpFamily): string[] {
  for (const type of ["ExternalIP", "InternalIP"]) {
    const found = nodes.flatMap(({ status }) =>
      (status?.addresses ?? []).filter((one) => one.type === type).flatMap(({ address }) => canonical(address) ?? []),
    );
    const own = found.filter((ip) => familyOf(ip) === family);
    if (own.length > 0) return [...new Set(own)].sort();
  }
  return [];
}
