import { createHash } from "node:crypto";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { Pace, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { vxlanLink } from "./names.ts";
import {
  contains,
  DisjointNetworks,
  familyOf,
  firstAddress,
  hostNetwork,
  type IpFamily,
  type Network,
  overlaps,
  parseNetwork,
} from "./networks.ts";
import type { PodNetworkSettings } from "./settings.ts";

/** An interface of this machine, as `ip -j -d address show` says. */
export interface Link {
  readonly name: string;
  readonly mtu: number;
  /** MAC address. */
  readonly address: string;
  readonly kind?: string;
  readonly vxlan?: { readonly id: number; readonly port: number; readonly local: string };
  readonly isUp: boolean;
  readonly addresses: readonly { readonly ip: string; readonly bits: number }[];
}

export interface PodRoute {
  readonly destination: string;
  readonly gateway: string;
  readonly link: string;
}

/** How packets to another node's VXLAN interface are addressed. */
interface Peer {
  readonly mac: string;
  /** Addresses to which routes lead. */
  readonly gateways: readonly string[];
  /** Of the node, to which the kernel sends. */
  readonly underlay: string;
}

export interface Vxlan {
  readonly link: string;
  readonly mac: string;
  readonly local: string;
  readonly device: string;
  readonly mtu: number;
  readonly addresses: readonly string[];
  readonly peers: readonly Peer[];
}

/** Something that keeps pods from reaching each other; for health, metrics and events. */
export interface Problem {
  /** For events and metrics: `PodCIDRConflict`. */
  readonly reason: string;
  readonly message: string;
}

/** What this machine is to have. */
export interface Plan {
  /** This node's pod ranges, those of IP families that the kernel has. */
  readonly own: readonly Network[];
  /** Pod ranges of all nodes. */
  readonly all: readonly Network[];
  readonly mtu: number;
  readonly routes: readonly PodRoute[];
  /** undefined: no node is behind another segment. */
  readonly vxlan: Vxlan | undefined;
  /** Addresses of the other nodes. */
  readonly nodeAddresses: readonly string[];
  readonly problems: readonly Problem[];
}

interface PlanInput {
  readonly nodeName: string;
  readonly nodes: readonly Node[];
  readonly links: readonly Link[];
  /** IP families that the kernel has. */
  readonly families: readonly IpFamily[];
  readonly settings: PodNetworkSettings;
}

/** Headers of VXLAN over IPv4 and over IPv6. */
const overhead = (family: IpFamily): number => (family === 4 ? 50 : 70);
const defaultMtu = 1500;

/** Nodes that are looked at in a few milliseconds. */
const nodesPerStep = 128;

/**
 * Pure, in steps: routes to the other nodes' pods. A node whose address is in a network of one of this machine's interfaces is the gateway to
 * its pods; others are reached in VXLAN. Of nodes with the same pod range the older one gets the route.
 * @returns a problem instead when this node has no pod range that it can use
 */
export function* planNetwork({ nodeName, nodes, links, families, settings }: PlanInput): Steps<Plan | Problem> {
  const { mode, bridge } = settings;
  const me = nodes.find(({ metadata }) => metadata.name === nodeName);
  if (me === undefined) return { reason: "NodeNotFound", message: `there is no Node ${nodeName} yet` };
  const own = networksOf(me, families);
  if (own.length === 0)
    return {
      reason: "NoPodCIDR",
      message: `the Node ${nodeName} has no spec.podCIDR; run kube-controller-manager with --allocate-node-cidrs and --cluster-cidr`,
    };
  const problems: Problem[] = [];
  const conflict = (message: string): void => void problems.push({ reason: "PodCIDRConflict", message });
  const link = vxlanLink(bridge);
  const foreign = links.filter(({ name }) => name !== bridge && name !== link);
  for (const network of own) {
    const other = foreign.find(({ addresses }) => networksOfLink(addresses).some((one) => overlaps(one, network)));
    // The addresses of that network, possibly the node's own, would become unreachable.
    if (other !== undefined)
      return {
        reason: "PodCIDRConflict",
        message: `the pod range ${network.text} of the Node ${nodeName} overlaps a network of its interface ${other.name}`,
      };
  }

  const myAddresses = internalAddresses(me);
  const uplink = foreign.find(({ addresses }) => addresses.some(({ ip }) => isSame(ip, myAddresses[0])));
  const segments = foreign.flatMap(({ name, addresses }) => networksOfLink(addresses).map((network) => ({ network, name })));
  const taken = new DisjointNetworks<string>();
  for (const network of own) taken.add(network, nodeName);
  const all = [...own];
  const routes: PodRoute[] = [];
  const peers: Peer[] = [];
  const nodeAddresses: string[] = [];

  const pace = new Pace(nodesPerStep);
  for (const node of byAge(nodes)) {
    if (pace.isDue()) yield;
    const { name = "" } = node.metadata;
    if (name === nodeName) continue;
    const addresses = internalAddresses(node);
    nodeAddresses.push(...addresses);
    const gateways: string[] = [];
    const underlay = addresses.find((ip) => myAddresses[0] !== undefined && familyOf(ip) === familyOf(myAddresses[0]));
    for (const network of networksOf(node, families)) {
      const other = taken.add(network, name);
      if (other !== undefined) {
        conflict(`the pod range ${network.text} of node ${name} overlaps ${other.network.text} of node ${other.of}`);
        continue;
      }
      all.push(network);
      if (addresses.length === 0) continue; // it has just been created
      if (addresses.some((ip) => isWithin(ip, network))) {
        conflict(`the pod range ${network.text} of node ${name} contains the node's own address`);
        continue;
      }
      const direct = addresses.find((ip) => familyOf(ip) === network.family);
      const segment = direct === undefined ? undefined : segments.find((one) => isWithin(direct, one.network));
      if (mode !== "vxlan" && direct !== undefined && segment !== undefined) {
        routes.push({ destination: network.text, gateway: direct, link: segment.name });
      } else if (mode === "host-gateway") {
        const message = `node ${name} (${addresses.join(", ")}) is in no network of this machine's interfaces; --pod-network-mode=host-gateway cannot reach its pods`;
        problems.push({ reason: "NodeNotOnSegment", message });
      } else if (underlay === undefined) {
        const message = `the Nodes ${nodeName} and ${name} have no addresses of the same IP family`;
        problems.push({ reason: "NoCommonFamily", message });
      } else {
        const gateway = firstAddress(network);
        routes.push({ destination: network.text, gateway, link });
        gateways.push(gateway);
      }
    }
    if (gateways.length > 0 && underlay !== undefined) peers.push({ mac: macOf(name), gateways, underlay });
  }

  const local = myAddresses[0];
  const underlayMtu = uplink?.mtu ?? defaultMtu;
  // Reserved even while all nodes are on one segment: the MTU of existing pods does not change when a node joins on another one.
  const mtu = settings.mtu ?? (mode === "host-gateway" ? underlayMtu : underlayMtu - overhead(familyOf(local ?? "0.0.0.0")));
  if (peers.length > 0 && uplink === undefined) {
    const message = `no interface of this machine has the address ${local ?? "(none)"} of the Node ${nodeName}`;
    problems.push({ reason: "NodeAddressNotFound", message });
  }
  const vxlan =
    peers.length === 0 || local === undefined || uplink === undefined
      ? undefined
      : { link, mac: macOf(nodeName), local, device: uplink.name, mtu, addresses: own.map(firstAddress), peers };
  const usable = vxlan === undefined ? routes.filter((route) => route.link !== link) : routes;
  return { own, all, mtu, routes: usable, vxlan, nodeAddresses, problems };
}

export const isProblem = (plan: Plan | Problem): plan is Problem => "message" in plan;

/** The MAC address of a node's VXLAN interface: every node can compute that of every other. */
export function macOf(nodeName: string): string {
  const hash = createHash("sha256").update(nodeName).digest("hex");
  return `02:${hash.slice(0, 10).match(/../g)!.join(":")}`; // locally administered, not multicast
}

/** The first address of each family, that of the node's first address before the other. */
export function internalAddresses({ status }: Node): string[] {
  const all = (status?.addresses ?? []).filter(({ type }) => type === "InternalIP").map(({ address }) => address);
  const first = all.filter((ip) => hostNetwork(ip) !== undefined);
  return first.filter((ip, index) => first.findIndex((other) => familyOf(other) === familyOf(ip)) === index);
}

/** Pod ranges of a node in the given families. */
function networksOf({ spec }: Node, families: readonly IpFamily[]): Network[] {
  const texts = spec?.podCIDRs?.length ? spec.podCIDRs : spec?.podCIDR ? [spec.podCIDR] : [];
  return texts.flatMap((text) => parseNetwork(text) ?? []).filter(({ family }) => families.includes(family));
}

/** Without those of one address and link-local ones, which all interfaces have. */
const networksOfLink = (addresses: Link["addresses"]): Network[] =>
  addresses
    .flatMap(({ ip, bits }) => parseNetwork(`${ip}/${bits}`) ?? [])
    .filter(({ text, first, last }) => first !== last && !/^(fe80:|127\.)/.test(text));

const isWithin = (ip: string, network: Network): boolean => {
  const host = hostNetwork(ip);
  return host !== undefined && contains(network, host);
};

const isSame = (ip: string, other: string | undefined): boolean =>
  other !== undefined && hostNetwork(ip)?.text === hostNetwork(other)?.text;

const ageOf = ({ metadata }: Node): string => `${metadata.creationTimestamp ?? ""} ${metadata.name}`;

const byAge = (nodes: readonly Node[]): Node[] => nodes.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1));
