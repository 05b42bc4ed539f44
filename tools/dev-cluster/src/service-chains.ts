import { createHash } from "node:crypto";
import type { Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/schema/kinds/discovery/v1";
import { exec, tryExec } from "./commands.ts";

/** A port of a Service with its endpoints. */
export interface Route {
  /** `namespace/name:port`; the chain name is derived from it. */
  readonly id: string;
  readonly clusterIp: string;
  readonly protocol: string;
  readonly port: number;
  readonly nodePort: number | undefined;
  readonly externalIps: readonly string[];
  /** `address:port`. */
  readonly endpoints: readonly string[];
}

/** Pure: routes for the Services and their EndpointSlices, in stable order; IPv4 only. */
export function routesOf(services: readonly Service[], slices: readonly EndpointSlice[]): Route[] {
  const routes: Route[] = [];
  for (const service of services) {
    const clusterIp = service.spec?.clusterIP;
    if (clusterIp === undefined || clusterIp === "" || clusterIp === "None" || clusterIp.includes(":")) continue;
    const own = slices.filter(
      (slice) =>
        slice.addressType === "IPv4" &&
        slice.metadata.namespace === service.metadata.namespace &&
        slice.metadata.labels?.["kubernetes.io/service-name"] === service.metadata.name,
    );
    for (const port of service.spec?.ports ?? []) {
      const endpoints = own.flatMap((slice) => {
        const target = slice.ports?.find((candidate) => (candidate.name ?? "") === (port.name ?? ""))?.port;
        if (target === undefined || target === null) return [];
        return slice.endpoints
          .filter((endpoint) => endpoint.conditions?.ready !== false)
          .flatMap((endpoint) => endpoint.addresses.map((address) => `${address}:${target}`));
      });
      routes.push({
        id: `${service.metadata.namespace}/${service.metadata.name}:${port.name || port.port}`,
        clusterIp,
        protocol: (port.protocol ?? "TCP").toLowerCase(),
        port: port.port,
        nodePort: port.nodePort || undefined,
        externalIps: [
          ...(service.spec?.externalIPs ?? []),
          ...(service.status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip ? [ip] : [])),
        ],
        endpoints: [...new Set(endpoints)].sort(),
      });
    }
  }
  return routes.sort((a, b) => (a.id < b.id ? -1 : 1));
}

const servicesChain = (clusterId: string): string => `COX-${clusterId}-SERVICES`;
const masqueradeChain = (clusterId: string): string => `COX-${clusterId}-MASQ`;
const rejectChain = (clusterId: string): string => `COX-${clusterId}-REJECT`;
const routeChain = (clusterId: string, route: Route): string =>
  `COX-${clusterId}-${createHash("sha256").update(`${route.id}/${route.protocol}`).digest("hex").slice(0, 12)}`;

/**
 * Pure: input for `iptables-restore --noflush` that makes the chains match the routes.
 * @param existing existing chains of this cluster; obsolete ones are removed
 */
export function restoreInput(
  clusterId: string,
  podCidr: string,
  routes: readonly Route[],
  existing: ReadonlySet<string>,
): string {
  const services = servicesChain(clusterId);
  const masquerade = masqueradeChain(clusterId);
  const reject = rejectChain(clusterId);
  const nat: string[] = [];
  const filter: string[] = [];
  const chains = new Set([services, masquerade]);
  for (const route of routes) {
    const destinations = [
      ...[route.clusterIp, ...route.externalIps].map((address) => `-d ${address}/32 -p ${route.protocol} --dport ${route.port}`),
      ...(route.nodePort === undefined ? [] : [`-p ${route.protocol} -m addrtype --dst-type LOCAL --dport ${route.nodePort}`]),
    ];
    if (route.endpoints.length === 0) {
      filter.push(...destinations.map((destination) => `-A ${reject} ${destination} -j REJECT`));
      continue;
    }
    const chain = routeChain(clusterId, route);
    chains.add(chain);
    nat.push(...destinations.map((destination) => `-A ${services} ${destination} -j ${chain}`));
    route.endpoints.forEach((endpoint, index) => {
      const left = route.endpoints.length - index;
      const chance = left === 1 ? "" : `-m statistic --mode random --probability ${(1 / left).toFixed(10)} `;
      nat.push(`-A ${chain} -p ${route.protocol} ${chance}-j DNAT --to-destination ${endpoint}`);
    });
  }
  // Hairpin: without it, replies between pods on the same bridge would bypass the reverse DNAT.
  nat.push(`-A ${masquerade} -d ${podCidr} -m conntrack --ctstate DNAT -j MASQUERADE`);
  const gone = [...existing].filter((chain) => !chains.has(chain) && chain !== reject);
  return [
    "*nat",
    ...[...chains, ...gone].map((chain) => `:${chain} - [0:0]`),
    ...nat,
    ...gone.map((chain) => `-X ${chain}`),
    "COMMIT",
    "*filter",
    `:${reject} - [0:0]`,
    ...filter,
    "COMMIT",
    "",
  ].join("\n");
}

/** Built-in chains that jump to the cluster's chains. */
const jumps = (clusterId: string): { table: string; from: string; to: string }[] => [
  { table: "nat", from: "PREROUTING", to: servicesChain(clusterId) },
  { table: "nat", from: "OUTPUT", to: servicesChain(clusterId) },
  { table: "nat", from: "POSTROUTING", to: masqueradeChain(clusterId) },
  { table: "filter", from: "FORWARD", to: rejectChain(clusterId) },
  { table: "filter", from: "OUTPUT", to: rejectChain(clusterId) },
];

/** Applies the routes to iptables. */
export async function applyRoutes(clusterId: string, podCidr: string, routes: readonly Route[]): Promise<void> {
  const existing = new Set(await chainsOf("nat", clusterId));
  await exec("iptables-restore", ["-w", "5", "--noflush"], restoreInput(clusterId, podCidr, routes, existing));
  for (const { table, from, to } of jumps(clusterId)) {
    if ((await tryExec("iptables", ["-w", "-t", table, "-C", from, "-j", to])) === undefined)
      await exec("iptables", ["-w", "-t", table, "-I", from, "-j", to]);
  }
}

/** Whether Service rules have been written since the cluster started; `down` removes them. */
export async function routesAreWritten(clusterId: string): Promise<boolean> {
  const { table, from, to } = jumps(clusterId).at(-1) as { table: string; from: string; to: string };
  return (await tryExec("iptables", ["-w", "-t", table, "-C", from, "-j", to])) !== undefined;
}

async function chainsOf(table: string, clusterId: string): Promise<string[]> {
  const rules = (await tryExec("iptables", ["-w", "-t", table, "-S"])) ?? "";
  return [...rules.matchAll(/^-N (\S+)$/gm)]
    .map((match) => match[1] as string)
    .filter((chain) => chain.startsWith(`COX-${clusterId}-`));
}
