import { isDeepStrictEqual } from "node:util";
import { entriesOf, keysOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { type Cidr, formatCidr, overlaps, parseCidr } from "./cidr.ts";
import type { ClusterRecord } from "./cluster-record.ts";
import { Failure, UsageFailure } from "./failure.ts";
import { flagOf, portFlag } from "./flag-names.ts";
import type { RegisteredCluster } from "./registry.ts";
import {
  type Choices,
  defaultChoices,
  mergeRequested,
  type PortName,
  portNames,
  portVariable,
  type RequestedChoices,
  withRequested,
} from "./settings.ts";

/** A route of the machine other than the default route. */
export interface Route {
  readonly cidr: Cidr;
  readonly device: string;
}

/** Inputs of the decision besides the user's settings. */
export interface Circumstances {
  /** Appended to suggested commands: ` --name b`, or empty for the default cluster. */
  readonly nameFlag: string;
  readonly record: ClusterRecord | undefined;
  /** True when data created with the record's networks and node name exist. */
  readonly hasData: boolean;
  /** True when at least one process of the cluster runs. */
  readonly isRunning: boolean;
  readonly others: readonly RegisteredCluster[];
  /** Without those of the cluster's own bridge. */
  readonly routes: readonly Route[];
  readonly isPortFree: (port: number) => Promise<boolean>;
  /** Reports decisions that the user may not expect. */
  readonly say: (text: string) => void;
}

/**
 * Chooses a cluster's ports and networks: the requested ones (in this or an earlier `up`), else free ones.
 * @throws Failure naming the setting, the conflict and the remedy
 */
export async function choose(requested: RequestedChoices, circumstances: Circumstances): Promise<ClusterRecord> {
  const { record, isRunning } = circumstances;
  const base = record?.choices ?? defaultChoices();
  const all = record === undefined ? requested : mergeRequested(record.requested, requested);
  if (requested.withNode && requested.fakeNodes) throw new UsageFailure(`--node and ${flagOf.fakeNodes} exclude each other`);
  checkForm(withRequested(base, requested), all);
  if (isRunning && record !== undefined) {
    const changed = changedFlags(base, withRequested(base, requested));
    if (changed.length > 0)
      throw new Failure(
        `the cluster is running with another ${changed.join(", ")}; stop it first: ./cox down${circumstances.nameFlag}`,
      );
    return { requested: all, choices: base };
  }
  refuseNewIdentity(base, requested, circumstances);
  const wanted = withRequested(base, all);
  const podCidr = chooseNetwork("podCidr", wanted.podCidr, all, circumstances, []);
  const serviceCidr = chooseNetwork("serviceCidr", wanted.serviceCidr, all, circumstances, [podCidr]);
  const ports = await choosePorts(wanted, all, circumstances);
  return { requested: all, choices: { ...wanted, podCidr: formatCidr(podCidr), serviceCidr: formatCidr(serviceCidr), ports } };
}

const nodeNameForm = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** @throws UsageFailure for invalid values. */
function checkForm(choices: Choices, requested: RequestedChoices): void {
  const { nodeName } = choices;
  if (nodeName.length > 63 || !nodeNameForm.test(nodeName))
    throw new UsageFailure(
      `${flagOf.nodeName}: ${JSON.stringify(nodeName)} is not a valid node name: lower-case letters, digits, dashes and dots, at most 63`,
    );
  for (const [key, smallest, largest] of [
    ["podCidr", 24, 8], // enough for 110 pods
    ["serviceCidr", 28, 12], // range accepted by kube-apiserver
  ] as const) {
    const cidr = parseCidr(choices[key]);
    if (cidr === undefined || cidr.prefix > smallest || cidr.prefix < largest)
      throw new UsageFailure(
        `${flagOf[key]}: ${JSON.stringify(choices[key])} is not an IPv4 network from /${largest} to /${smallest}, such as 10.244.0.0/16`,
      );
  }
  const owners = new Map<number, PortName>();
  // cast: Object.entries forgets the keys' type
  for (const [name, port] of Object.entries(requested.ports ?? {}) as [PortName, number][]) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      const given = Number.isNaN(port) ? `the value of ${portVariable(name)}` : port;
      throw new UsageFailure(`${portFlag(name)}: ${given} is not a port number from 1 to 65535`);
    }
    const owner = owners.get(port);
    if (owner !== undefined) throw new UsageFailure(`${portFlag(owner)} and ${portFlag(name)} are both ${port}`);
    owners.set(port, name);
  }
}

/** Flag names of the settings that differ. */
function changedFlags(from: Choices, to: Choices): string[] {
  const keys = keysOf(flagOf);
  return [
    ...keys.filter((key) => from[key] !== to[key]).map((key) => flagOf[key]),
    ...portNames.filter((name) => from.ports[name] !== to.ports[name]).map(portFlag),
    ...entriesOf(to.extraArgs)
      .filter(([name, args]) => !isDeepStrictEqual(args, from.extraArgs[name]))
      .map(([name]) => `--${name}-arg`),
  ];
}

/** Networks and node name cannot change once they are stored in etcd. */
function refuseNewIdentity(base: Choices, requested: RequestedChoices, { hasData, record, nameFlag }: Circumstances): void {
  if (!hasData || record === undefined) return;
  for (const key of ["nodeName", "podCidr", "serviceCidr"] as const) {
    const wanted = requested[key];
    if (wanted !== undefined && wanted !== base[key])
      throw new Failure(
        `${flagOf[key]}: the cluster's data were created with ${base[key]}, not ${wanted}; leave the flag out, or remove the data first: ./cox down --purge${nameFlag}`,
      );
  }
}

/** In order of preference; from all three private ranges, because a VPN may occupy a whole one. */
const candidates: Readonly<Record<"podCidr" | "serviceCidr", readonly string[]>> = {
  podCidr: [
    ...range(244, 255).map((byte) => `10.${byte}.0.0/16`),
    ...range(200, 243).map((byte) => `10.${byte}.0.0/16`),
    ...range(24, 31).map((byte) => `172.${byte}.0.0/16`),
    ...range(64, 95).map((byte) => `100.${byte}.0.0/16`),
  ],
  serviceCidr: [
    ...range(96, 127).map((byte) => `10.${byte}.0.0/16`),
    ...range(18, 23).map((byte) => `172.${byte}.0.0/16`),
    ...range(96, 127).map((byte) => `100.${byte}.0.0/16`),
  ],
};

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function chooseNetwork(
  key: "podCidr" | "serviceCidr",
  wanted: string,
  requested: RequestedChoices,
  circumstances: Circumstances,
  own: readonly Cidr[],
): Cidr {
  const obstacle = (cidr: Cidr): string | undefined =>
    own.some((other) => overlaps(cidr, other))
      ? "the cluster's own pod network"
      : (clusterInTheWay(cidr, circumstances.others) ?? routeInTheWay(cidr, circumstances.routes));
  const cidr = parseCidr(wanted)!;
  const inTheWay = obstacle(cidr);
  if (inTheWay === undefined) return cidr;
  const { hasData, nameFlag, others, routes } = circumstances;
  const narrowRoutes = routes.filter((route) => route.cidr.prefix >= cidr.prefix);
  if (hasData && clusterInTheWay(cidr, others) === undefined && routeInTheWay(cidr, narrowRoutes) === undefined) {
    // The conflicting route, e.g. of a VPN, is less specific: the cluster's route takes precedence.
    circumstances.say(`${flagOf[key]} ${wanted} hides a part of ${inTheWay}`);
    return cidr;
  }
  if (hasData)
    throw new Failure(
      `the cluster's data were created with ${flagOf[key]} ${wanted}, which overlaps ${inTheWay}; free it, or delete the cluster: ./cox down --purge${nameFlag}`,
    );
  if (requested[key] !== undefined)
    throw new Failure(`${flagOf[key]}: ${wanted} overlaps ${inTheWay}; choose another, or leave the flag out for a free one`);
  const free = candidates[key].map((text) => parseCidr(text)!).find((candidate) => obstacle(candidate) === undefined);
  if (free === undefined) throw new Failure(`no network is free; name one with ${flagOf[key]}`);
  circumstances.say(`${flagOf[key]} is ${formatCidr(free)}, since ${wanted} overlaps ${inTheWay}`);
  return free;
}

function clusterInTheWay(cidr: Cidr, others: readonly RegisteredCluster[]): string | undefined {
  for (const other of others) {
    for (const key of ["podCidr", "serviceCidr"] as const) {
      const theirs = parseCidr(other[key]);
      if (theirs !== undefined && overlaps(cidr, theirs))
        return `the ${key === "podCidr" ? "pod" : "service"} network ${other[key]} of cluster ${other.name} in ${other.root}`;
    }
  }
  return undefined;
}

function routeInTheWay(cidr: Cidr, routes: readonly Route[]): string | undefined {
  const route = routes.find((each) => overlaps(cidr, each.cidr));
  return route === undefined ? undefined : `this machine's route to ${formatCidr(route.cidr)} (${route.device})`;
}

/** Above the default cluster's ports and below the kernel's ephemeral ports. */
const firstShift = 10_000;
const lastPort = 32_767;

async function choosePorts(
  wanted: Choices,
  requested: RequestedChoices,
  circumstances: Circumstances,
): Promise<Choices["ports"]> {
  const reserved = new Map(
    circumstances.others.flatMap((other) => Object.values(other.ports).map((port) => [port, other] as const)),
  );
  const taken = new Set(Object.values(requested.ports ?? {}));
  const ports: Record<PortName, number> = { ...wanted.ports };
  const replaced: string[] = [];
  for (const name of portNames) {
    const port = wanted.ports[name];
    // Kubelet ports are not used without a node; fake nodes have one.
    const isNeeded =
      wanted.withNode || !(name.startsWith("kubelet") || name === "services") || (wanted.fakeNodes > 0 && name === "kubelet");
    const isFixed = requested.ports?.[name] !== undefined;
    if (!isNeeded && isFixed) continue;
    const isFree = await circumstances.isPortFree(port);
    if (isFixed) {
      const owner = reserved.get(port);
      const by = owner === undefined ? "another program" : `cluster ${owner.name} in ${owner.root}`;
      if (!isFree) throw new Failure(`port ${port} is taken by ${by}; end it, or give another ${portFlag(name)}`);
      continue;
    }
    if (isFree && !reserved.has(port) && !taken.has(port)) {
      taken.add(port);
      continue;
    }
    const free = await findPort(defaultChoices().ports[name] + firstShift, (candidate) =>
      reserved.has(candidate) || taken.has(candidate) ? Promise.resolve(false) : circumstances.isPortFree(candidate),
    );
    if (free === undefined) throw new Failure(`no port is free; name one with ${portFlag(name)}`);
    replaced.push(`${portFlag(name)} ${free} (not ${port})`);
    taken.add(free);
    ports[name] = free;
  }
  if (replaced.length > 0) circumstances.say(`ports that are taken are replaced: ${replaced.join(", ")}`);
  return ports;
}

async function findPort(first: number, isFree: (port: number) => Promise<boolean>): Promise<number | undefined> {
  for (let port = first; port <= lastPort; port += 10) if (await isFree(port)) return port;
  return undefined;
}
