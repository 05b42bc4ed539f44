import type { EndpointAddress, EndpointPort, EndpointSubset } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce, Pace, type Steps, sortedInSteps } from "@coxswain/apimachinery/process/event-loop/steps";

/**
 * Pure: merges subsets into a minimal, ordered form. Addresses with the same ports are grouped; an address listed as
 * both ready and not ready for a port is not ready.
 * Source: k8s.io/kubernetes pkg/api/v1/endpoints/util.go RepackSubsets
 */
export function canonicalSubsets(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  return atOnce(canonicalSubsetsInSteps(subsets));
}

export function* canonicalSubsetsInSteps(subsets: readonly EndpointSubset[]): Steps<EndpointSubset[]> {
  /** The subsets of each port, by serialized port. */
  const byPort = new Map<string, { port: EndpointPort | undefined; of: EndpointSubset[] }>();
  /** Ports of the same subsets, by the numbers of these: their addresses are merged once, not for each of many ports. */
  const numbers = new Map(subsets.map((subset, at) => [subset, at]));
  for (const subset of subsets) {
    const { ports } = subset;
    const listed: (EndpointPort | undefined)[] = ports === undefined || ports.length === 0 ? [undefined] : ports;
    for (const port of listed) {
      const { of } = byPort.getOrInsertComputed(JSON.stringify(port && portKey(port)) ?? "", () => ({ port, of: [] }));
      if (of.at(-1) !== subset) of.push(subset);
    }
  }
  const merged = new Map<string, Merged>();
  /** Ports with identical addresses share a subset. */
  const byAddresses = new Map<string, { ports: EndpointPort[]; addresses: Merged["addresses"] }>();
  for (const { port, of } of byPort.values()) {
    const which = of.map((subset) => numbers.get(subset)).join();
    if (!merged.has(which)) merged.set(which, yield* mergedOf(of));
    const { key, addresses } = merged.get(which)!;
    const entry = byAddresses.getOrInsertComputed(key, () => ({ ports: [], addresses }));
    if (port !== undefined) entry.ports.push(port);
  }
  const keyed: { subset: EndpointSubset; key: string }[] = [];
  for (const entry of byAddresses.values()) {
    const subset = toSubset(entry);
    keyed.push({ subset, key: sortKey(subset) });
    yield;
  }
  return (yield* sortedInSteps(keyed, (a, b) => (a.key < b.key ? -1 : 1))).map(({ subset }) => subset);
}

interface Merged {
  /** Equal for the same addresses with the same readiness. */
  readonly key: string;
  /** In order. */
  readonly addresses: { address: EndpointAddress; ready: boolean }[];
}

/** Addresses that are merged between two yields. */
const addressesPerStep = 1000;

function* mergedOf(subsets: readonly EndpointSubset[]): Steps<Merged> {
  const pace = new Pace(addressesPerStep);
  const all = new Map<string, { address: EndpointAddress; ready: boolean }>();
  for (const { addresses = [], notReadyAddresses = [] } of subsets) {
    for (const address of addresses) {
      if (pace.isDue()) yield;
      const key = addressKey(address);
      if (!all.has(key)) all.set(key, { address, ready: true });
    }
    for (const address of notReadyAddresses) {
      if (pace.isDue()) yield;
      all.set(addressKey(address), { address, ready: false });
    }
  }
  const sorted = yield* sortedInSteps([...all], ([a], [b]) => (a < b ? -1 : 1));
  return { key: JSON.stringify(sorted.map(([name, { ready }]) => [name, ready])), addresses: sorted.map(([, value]) => value) };
}

/** Maximum number of addresses in one Endpoints object. Source: endpoints_controller.go maxCapacity */
const maxAddresses = 1000;

/**
 * Pure: truncates the addresses to the limit; ready addresses take precedence. Each subset keeps its proportional
 * share, rounded up, so the last subsets get what remains.
 * Source: truncateEndpoints
 */
export function limitAddresses(subsets: readonly EndpointSubset[]): { subsets: EndpointSubset[]; truncated: boolean } {
  const count = (list: "addresses" | "notReadyAddresses"): number =>
    subsets.reduce((sum, subset) => sum + (subset[list]?.length ?? 0), 0);
  const [ready, notReady] = [count("addresses"), count("notReadyAddresses")];
  if (ready + notReady <= maxAddresses) return { subsets: [...subsets], truncated: false };
  const cutsReady = ready > maxAddresses;
  const [limit, total] = cutsReady ? [maxAddresses, ready] : [maxAddresses - ready, notReady];
  let left = limit;
  const share = (addresses: readonly EndpointAddress[]): EndpointAddress[] => {
    const kept = addresses.slice(0, Math.min(left, Math.ceil((addresses.length / total) * limit)));
    left -= kept.length;
    return kept;
  };
  const cut = subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }): EndpointSubset[] => {
    const [kept, others] = cutsReady ? [share(addresses), []] : [addresses, share(notReadyAddresses)];
    if (kept.length + others.length === 0) return []; // empty subsets are dropped
    return [subsetOf(kept, others, ports)];
  });
  return { subsets: cut, truncated: true };
}

function toSubset({
  ports,
  addresses,
}: {
  ports: EndpointPort[];
  addresses: { address: EndpointAddress; ready: boolean }[];
}): EndpointSubset {
  const of = (wanted: boolean): EndpointAddress[] =>
    addresses.filter(({ ready }) => ready === wanted).map(({ address }) => address);
  const sorted = ports
    .map((port) => ({ port, key: JSON.stringify(portKey(port)) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ port }) => port);
  return subsetOf(of(true), of(false), sorted);
}

/** Empty lists are omitted. */
function subsetOf(
  addresses: EndpointAddress[],
  notReadyAddresses: EndpointAddress[],
  ports: EndpointPort[] | undefined,
): EndpointSubset {
  return {
    ...(addresses.length > 0 && { addresses }),
    ...(notReadyAddresses.length > 0 && { notReadyAddresses }),
    ...(ports !== undefined && ports.length > 0 && { ports }),
  };
}

function portKey({ name = "", port, protocol = "TCP", appProtocol = "" }: EndpointPort): unknown[] {
  return [name, protocol, port, appProtocol];
}

/** Sort key: address as text (upstream's order), then Pod. */
function addressKey({ ip, targetRef, hostname = "", nodeName = "" }: EndpointAddress): string {
  return [ip, targetRef?.uid ?? "", hostname, nodeName].join("/");
}

function sortKey({ ports = [], addresses = [], notReadyAddresses = [] }: EndpointSubset): string {
  return JSON.stringify([ports.map(portKey), addresses.map(addressKey), notReadyAddresses.map(addressKey)]);
}
