import { createHash } from "node:crypto";
import type { Family } from "./addresses.ts";
import type { ServicePort } from "./service-port.ts";

/** Settings of the rules that do not change while the program runs. */
export interface RuleSettings {
  readonly family: Family;
  /** Begins the name of every chain: `COX-`. */
  readonly prefix: string;
  /** Bit of the packet mark by which packets are masqueraded. */
  readonly masqueradeBit: number;
  /** Network of the pods of all nodes; undefined when it is not known. */
  readonly clusterCidr: string | undefined;
  /** Masquerades all connections to Services. */
  readonly masqueradeAll: boolean;
  /** Networks of the node's addresses that node ports answer on; empty: all addresses. */
  readonly nodePortNetworks: readonly string[];
  /** Whether node ports answer on 127.0.0.1. */
  readonly localhostNodePorts: boolean;
}

/**
 * The rules of one port of a Service. A packet first meets a bucket of its destination: an address by its last byte, a node port
 * by its upper bits; so it passes some tens of rules and not those of all Services, and a change rewrites one bucket.
 */
export interface PortRules {
  /** Its chains in the nat table, by name without prefix. */
  readonly chains: ReadonlyMap<string, readonly string[]>;
  readonly dispatch: readonly Dispatch[];
}

/** Rules in a bucket that other Services share. */
export interface Dispatch {
  readonly table: "nat" | "filter";
  readonly destination: "address" | "nodePort";
  /** `0` to `255` for an address, `0` to `1023` for a node port. */
  readonly bucket: number;
  readonly rules: readonly string[];
}

export const chainNames = {
  services: "SERVICES",
  nodePorts: "NODEPORTS",
  mark: "MARK-MASQ",
  postrouting: "POSTROUTING",
  hairpin: "HAIRPIN",
  filter: "FILTER",
  filterPorts: "FILTER-PORTS",
  forward: "FORWARD",
  firewall: "FIREWALL",
} as const;

/**
 * Pure: the rules of a port. Connections to a destination with endpoints are sent on in the nat table; whatever still has that
 * destination in the filter table was not, and is rejected or dropped there.
 */
export function portRules(port: ServicePort, settings: RuleSettings): PortRules {
  const chain = (name: string): string => `${settings.prefix}${name}`;
  const hash = createHash("sha256").update(`${port.id}/${port.protocol}`).digest("hex").slice(0, 12);
  const chains = new Map<string, readonly string[]>();
  const dispatch: Dispatch[] = [];
  const comment = `-m comment --comment "${port.id}"`;
  const toPort = (number: number): string => `-p ${port.protocol} -m ${port.protocol} --dport ${number}`;
  const toAddress = (ip: string): string =>
    `-d ${ip}${settings.family === "IPv4" ? "/32" : "/128"} ${toPort(port.port)} ${comment}`;
  const onAddress = (table: Dispatch["table"], ip: string, rules: readonly string[]): void => {
    if (rules.length > 0) dispatch.push({ table, destination: "address", bucket: addressBucket(ip), rules });
  };

  const balance = (name: string, endpoints: readonly string[]): string => {
    chains.set(name, balanceRules(port, endpoints, `${settings.prefix}${hash}`));
    return chain(name);
  };
  const rejection = rejectionOf(port, settings);
  const isLocal = port.internalPolicy === "Local";
  const external = externalDestinations(port);
  const usesAll = !isLocal || external;
  const all = usesAll && port.endpoints.length > 0 ? balance(`S-${hash}`, port.endpoints) : undefined;
  const usesLocal = isLocal || (port.externalPolicy === "Local" && external);
  const local = usesLocal && port.localEndpoints.length > 0 ? balance(`L-${hash}`, port.localEndpoints) : undefined;

  const internal = isLocal ? local : all;
  if (internal === undefined) onAddress("filter", port.clusterIp, [`${toAddress(port.clusterIp)} ${rejection}`]);
  else {
    const marked = settings.masqueradeAll ? "" : settings.clusterCidr === undefined ? undefined : `! -s ${settings.clusterCidr} `;
    onAddress("nat", port.clusterIp, [
      ...(marked === undefined ? [] : [`${marked}${toAddress(port.clusterIp)} -j ${chain(chainNames.mark)}`]),
      `${toAddress(port.clusterIp)} -j ${internal}`,
    ]);
  }
  if (!external) return { chains, dispatch };

  const leftOver = all === undefined ? rejection : port.externalPolicy === "Local" && local === undefined ? "-j DROP" : undefined;
  const entry = all === undefined ? undefined : `X-${hash}`;
  if (all !== undefined) chains.set(`X-${hash}`, externalRules(port, settings, all, local));
  const open = (ip: string, sources: readonly string[], otherwise: string | undefined): void => {
    if (entry !== undefined)
      onAddress(
        "nat",
        ip,
        sources.map((source) => `${source}${toAddress(ip)} -j ${chain(entry)}`),
      );
    if (otherwise !== undefined) onAddress("filter", ip, [`${toAddress(ip)} ${otherwise}`]);
  };
  for (const ip of port.externalIps) open(ip, [""], leftOver);
  const isRestricted = port.sourceRanges.length > 0;
  for (const ip of port.loadBalancerIps) {
    const sources = isRestricted ? [...port.sourceRanges, ip].map((range) => `-s ${range} `) : [""];
    open(ip, sources, isRestricted ? "-j DROP" : leftOver);
  }
  if (port.nodePort !== undefined) {
    const where = { destination: "nodePort", bucket: nodePortBucket(port.nodePort) } as const;
    const match = `${toPort(port.nodePort)} ${comment}`;
    if (entry !== undefined) dispatch.push({ ...where, table: "nat", rules: [`${match} -j ${chain(entry)}`] });
    if (leftOver !== undefined) dispatch.push({ ...where, table: "filter", rules: [`${match} ${leftOver}`] });
  }
  return { chains, dispatch };
}

const externalDestinations = ({ nodePort, externalIps, loadBalancerIps }: ServicePort): boolean =>
  nodePort !== undefined || externalIps.length > 0 || loadBalancerIps.length > 0;

/**
 * TCP over IPv6 is reset: a client on Linux (seen with 6.18) ignores the ICMPv6 error for its first SYN, and would see the
 * rejection a second later, when it repeats the SYN.
 */
const rejectionOf = ({ protocol }: ServicePort, { family }: RuleSettings): string =>
  family === "IPv6" && protocol === "tcp" ? "-j REJECT --reject-with tcp-reset" : "-j REJECT";

/** Rules for connections from outside: policy Cluster masquerades, so that replies pass this node; Local keeps the client's address. */
function externalRules(port: ServicePort, settings: RuleSettings, all: string, local: string | undefined): string[] {
  const mark = `-j ${settings.prefix}${chainNames.mark}`;
  if (port.externalPolicy === "Cluster") return [mark, `-j ${all}`];
  return [
    // Inside the cluster the policy does not apply: pods and the node itself reach endpoints of all nodes.
    ...(settings.clusterCidr === undefined ? [] : [`-s ${settings.clusterCidr} -j ${all}`]),
    `-m addrtype --src-type LOCAL ${mark}`,
    `-m addrtype --src-type LOCAL -j ${all}`,
    ...(local === undefined ? [] : [`-j ${local}`]),
  ];
}

/** Sends a connection to one endpoint, each with the same probability; with affinity to the client's last one first. */
function balanceRules({ protocol, affinitySeconds }: ServicePort, endpoints: readonly string[], list: string): string[] {
  const listOf = (endpoint: string): string => `${list}-${createHash("sha256").update(endpoint).digest("hex").slice(0, 8)}`;
  const remembered =
    affinitySeconds === undefined
      ? []
      : endpoints.map((endpoint) => {
          const recent = `-m recent --name ${listOf(endpoint)} --update --seconds ${affinitySeconds} --reap --rsource`;
          return `-p ${protocol} ${recent} -j DNAT --to-destination ${endpoint}`;
        });
  const balanced = endpoints.map((endpoint, index) => {
    const left = endpoints.length - index;
    const chance = left === 1 ? "" : `-m statistic --mode random --probability ${(1 / left).toFixed(10)} `;
    const remember = affinitySeconds === undefined ? "" : `-m recent --name ${listOf(endpoint)} --set --rsource `;
    return `-p ${protocol} ${chance}${remember}-j DNAT --to-destination ${endpoint}`;
  });
  return [...remembered, ...balanced];
}

/** The last byte of an address. */
export function addressBucket(ip: string): number {
  if (!ip.includes(":")) return Number(ip.slice(ip.lastIndexOf(".") + 1));
  const last = ip.slice(ip.lastIndexOf(":") + 1);
  return last.includes(".") ? addressBucket(last) : Number.parseInt(last || "0", 16) & 0xff;
}

const portsInBucket = 64;
/** The bucket of 64 consecutive ports that a node port is in; `portsOfBucket` gives its range. */
export const nodePortBucket = (port: number): number => Math.floor(port / portsInBucket);
/** Range of ports as iptables takes it: `30016:30079`. */
export const portsOfBucket = (bucket: number): string => `${bucket * portsInBucket}:${(bucket + 1) * portsInBucket - 1}`;
