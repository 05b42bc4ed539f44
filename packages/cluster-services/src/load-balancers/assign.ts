import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce, type Steps, sortedInSteps } from "@coxswain/apimachinery/process/event-loop/steps";
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
  return atOnce(assigningAddresses(cluster));
}

/** As `assignAddresses`, in a step for each Service: anybody may create thousands. */
export function* assigningAddresses(cluster: Cluster): Steps<Assignment[]> {
  const served = cluster.services.filter(isServed).map((service) => ({ service, claim: claimOf(service, cluster.pool) }));
  const inOrder = (yield* sortedInSteps(served, byClaim)).map(({ service }) => service);
  const assign = cluster.pool.isEmpty ? newNodeAddresses(cluster) : newPoolAddresses(cluster.pool);
  const assignments: Assignment[] = [];
  for (const service of inOrder) {
    assignments.push(assign(service));
    yield;
  }
  return assignments;
}

interface Claim {
  readonly rank: number;
  readonly age: string;
}

function claimOf(service: Service, pool: Pool): Claim {
  const { creationTimestamp, namespace, name } = service.metadata;
  const current = statusAddresses(service);
  const pending = requestedBy(service);
  const holds = pool.isEmpty ? current.length > 0 : current.some((ip) => pool.has(ip));
  const keeps = holds && (pending === undefined || current.includes(pending));
  return { rank: keeps ? 0 : pending === undefined ? 2 : 1, age: `${creationTimestamp ?? ""} ${namespace}/${name}` };
}

function byClaim({ claim: a }: { readonly claim: Claim }, { claim: b }: { readonly claim: Claim }): number {
  return a.rank - b.rank || (a.age < b.age ? -1 : 1);
}

/** `spec.loadBalancerIP`, also when it is no address. */
const requestedBy = ({ spec }: Service): string | undefined =>
  spec.loadBalancerIP ? (canonical(spec.loadBalancerIP) ?? spec.loadBalancerIP) : undefined;

function familiesOf({ spec }: Service): IpFamily[] {
  if (spec.ipFamilies?.length) return spec.ipFamilies.map((family) => (family === "IPv6" ? "IPv6" : "IPv4"));
  return [familyOf(spec.clusterIP ?? "")];
}

const portsOf = ({ spec }: Service): string[] => (spec.ports ?? []).map(({ port, protocol = "TCP" }) => `${port}/${protocol}`);

/** The Services that have an address of the pool. */
interface Occupants {
  readonly services: Service[];
  /** As `sharingGroup`, the same for all of them. */
  readonly group: string | undefined;
  readonly ports: Set<string>;
}

type Assign = (service: Service) => Assignment;

function newPoolAddresses(pool: Pool): Assign {
  const taken = new Map<string, Occupants>();
  /** Addresses by `sharingGroup`, in the order in which they were taken. */
  const shared = new Map<string, string[]>();
  const cursors = new Map<IpFamily, { readonly rest: Iterator<string>; lowest: string | undefined }>();
  const mayUse = (ip: string, service: Service): boolean => {
    const occupants = taken.get(ip);
    if (occupants === undefined) return true;
    if (occupants.group === undefined || occupants.group !== sharingGroup(service)) return false;
    return !portsOf(service).some((port) => occupants.ports.has(port));
  };
  /** None that is taken becomes free again: the search goes on where it ended. */
  const lowestFree = (family: IpFamily): string | undefined => {
    const cursor = cursors.getOrInsertComputed(family, () => {
      const rest = pool.addresses(family);
      return { rest, lowest: rest.next().value ?? undefined };
    });
    while (cursor.lowest !== undefined && taken.has(cursor.lowest)) cursor.lowest = cursor.rest.next().value ?? undefined;
    return cursor.lowest;
  };
  const take = (ip: string, service: Service): void => {
    const group = sharingGroup(service);
    const occupants = taken.getOrInsertComputed(ip, () => {
      if (group !== undefined) shared.getOrInsertComputed(group, () => []).push(ip);
      return { services: [], group, ports: new Set() };
    });
    occupants.services.push(service);
    for (const port of portsOf(service)) occupants.ports.add(port);
  };
  return (service) => {
    const addresses: string[] = [];
    const lacking: string[] = [];
    const pending = requestedBy(service);
    if (pending !== undefined && !pool.has(pending))
      return {
        service,
        addresses,
        problem: { reason: "AddressNotInPool", message: `spec.loadBalancerIP ${pending} is not in the pool` },
      };
    if (pending !== undefined && !mayUse(pending, service)) {
      const holder = taken.get(pending)?.services.find((user) => !mayShare(user, service));
      const message = `spec.loadBalancerIP ${pending} belongs to the Service ${holder && keyOf(holder)}; Services of a namespace share an address when they have the annotation ${sharedAddressAnnotation} with the same value, no port in common, and externalTrafficPolicy Cluster`;
      return { service, addresses, problem: { reason: "AddressInUse", message } };
    }
    const current = statusAddresses(service).filter((ip) => pool.has(ip));
    for (const family of familiesOf(service)) {
      if (!pool.serves(family)) {
        lacking.push(`the pool has no ${family} addresses`);
        continue;
      }
      const isOf = (ip: string | undefined): ip is string => ip !== undefined && familyOf(ip) === family;
      const preferred = [pending, ...current, ...(shared.get(sharingGroup(service) ?? "") ?? [])].filter(isOf);
      const ip = preferred.find((one) => mayUse(one, service)) ?? lowestFree(family);
      if (ip === undefined) {
        lacking.push(`all ${family} addresses of the pool are taken`);
        continue;
      }
      take(ip, service);
      addresses.push(ip);
    }
    if (lacking.length === 0) return { service, addresses };
    return { service, addresses, problem: { reason: "PoolExhausted", message: lacking.join("; ") } };
  };
}

/** Equal, and not undefined, for Services that share an address unless they have a port in common. */
function sharingGroup({ metadata, spec }: Service): string | undefined {
  const key = metadata.annotations?.[sharedAddressAnnotation];
  // With policy Local each of the Services could need a different node.
  return key && spec.externalTrafficPolicy !== "Local" ? `${metadata.namespace}/${key}` : undefined;
}

function mayShare(one: Service, other: Service): boolean {
  const group = sharingGroup(one);
  if (group === undefined || group !== sharingGroup(other)) return false;
  const ports = new Set(portsOf(one));
  return !portsOf(other).some((port) => ports.has(port));
}

function newNodeAddresses(cluster: Cluster): Assign {
  const taken = new Map<string, string>();
  for (const port of cluster.reservedPorts) {
    for (const protocol of ["TCP", "UDP", "SCTP"]) taken.set(`${port}/${protocol}`, "the nodes' own programs");
  }
  for (const service of cluster.services) {
    for (const { nodePort, protocol = "TCP" } of service.spec.ports ?? [])
      if (nodePort) taken.set(`${nodePort}/${protocol}`, asNodePort(service));
  }
  const usable = cluster.nodes.filter(isUsable);
  /** Of all usable nodes: they are the same for most Services. */
  const ofAll = new Map<IpFamily, string[]>();
  return (service) => {
    const ports = portsOf(service);
    const ownNodePort = asNodePort(service);
    const conflict = ports.find((port) => taken.has(port) && taken.get(port) !== ownNodePort);
    if (conflict !== undefined) {
      const message = `port ${conflict} of the nodes' addresses belongs to ${taken.get(conflict)}`;
      return { service, addresses: [], problem: { reason: "PortConflict", message } };
    }
    for (const port of ports) taken.set(port, `the Service ${keyOf(service)}`);
    const local = service.spec.externalTrafficPolicy === "Local" ? cluster.nodesWithEndpoints(keyOf(service)) : undefined;
    const all = familiesOf(service).flatMap((family) => {
      if (local === undefined) return ofAll.getOrInsertComputed(family, () => addressesOf(usable, family));
      return addressesOf(
        usable.filter(({ metadata }) => local.has(metadata.name ?? "")),
        family,
      );
    });
    const pending = requestedBy(service);
    if (pending === undefined) return { service, addresses: all };
    if (all.includes(pending)) return { service, addresses: [pending] };
    const message = `spec.loadBalancerIP ${pending} is no address of a node that can serve it, and there is no pool of others (--load-balancer-pool)`;
    return { service, addresses: [], problem: { reason: "AddressNotInPool", message } };
  };
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
