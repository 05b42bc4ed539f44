import type { RunProgram } from "../host/run-program.ts";
import { routeProtocol, vxlanLink } from "./names.ts";
import { gatewayOf, hostNetwork, parseNetwork } from "./networks.ts";
import type { Link, Plan, PodRoute, Vxlan } from "./plan.ts";

/** What the kernel has of this network. */
interface KernelState {
  readonly links: readonly Link[];
  /** All routes with this program's mark. */
  readonly routes: readonly PodRoute[];
  /** Permanent entries of the VXLAN interface: `<address> <MAC address>`. */
  readonly neighbours: readonly string[];
  /** `<MAC address> <address of the node>`. */
  readonly forwarding: readonly string[];
}

interface LinkJson {
  ifname?: string;
  mtu?: number;
  address?: string;
  flags?: string[];
  linkinfo?: { info_kind?: string; info_data?: { id?: number; port?: number; local?: string; local6?: string } };
  addr_info?: { local?: string; prefixlen?: number }[];
}

/** @throws ProgramError when the kernel cannot be queried */
export async function readKernelState(run: RunProgram, bridge: string): Promise<KernelState> {
  const link = vxlanLink(bridge);
  const links = await readLinks(run);
  const routes = (await Promise.all([readRoutes(run, "-4"), readRoutes(run, "-6")])).flat();
  if (!links.some(({ name }) => name === link)) return { links, routes, neighbours: [], forwarding: [] };
  const [neighbours, forwarding] = await Promise.all([
    json<{ dst?: string; lladdr?: string }>(run, "ip", "neigh show nud permanent dev".split(" "), link),
    json<{ mac?: string; dst?: string }>(run, "bridge", ["fdb", "show", "dev"], link),
  ]);
  return {
    links,
    routes,
    neighbours: neighbours.flatMap(({ dst, lladdr }) => (dst && lladdr ? [`${dst} ${lladdr}`] : [])),
    forwarding: forwarding.flatMap(({ mac, dst }) => (mac && dst ? [`${mac} ${dst}`] : [])),
  };
}

/** All interfaces of the machine's network namespace, with their addresses. */
export async function readLinks(run: RunProgram): Promise<Link[]> {
  const found = await json<LinkJson>(run, "ip", ["-d", "address", "show"]);
  return found.flatMap(({ ifname, mtu = 0, address = "", flags = [], linkinfo, addr_info = [] }): Link[] => {
    if (ifname === undefined) return [];
    const { info_kind: kind, info_data: data } = linkinfo ?? {};
    return [
      {
        ...{ name: ifname, mtu, address, isUp: flags.includes("UP") },
        ...(kind !== undefined && { kind }),
        ...(kind === "vxlan" && {
          vxlan: { id: data?.id ?? 0, port: data?.port ?? 0, local: data?.local ?? data?.local6 ?? "" },
        }),
        addresses: addr_info.flatMap(({ local, prefixlen }) =>
          local === undefined || prefixlen === undefined ? [] : [{ ip: local, bits: prefixlen }],
        ),
      },
    ];
  });
}

async function readRoutes(run: RunProgram, family: "-4" | "-6"): Promise<PodRoute[]> {
  const args = [family, "route", "show", "proto", String(routeProtocol)];
  const found = await json<{ dst?: string; gateway?: string; dev?: string }>(run, "ip", args).catch((err: unknown) => {
    if (family === "-6") return []; // a kernel without IPv6
    throw err;
  });
  return found.flatMap(({ dst, gateway = "", dev = "" }) => {
    const destination = parseNetwork(dst?.includes("/") ? dst : `${hostNetwork(dst ?? "")?.text}`)?.text;
    return destination === undefined ? [] : [{ destination, gateway, link: dev }];
  });
}

/** @returns the list that a program of iproute2 writes with `-j`; `T` names what is read of its elements, all of it optional */
async function json<T>(run: RunProgram, program: string, args: readonly string[], ...more: string[]): Promise<T[]> {
  const text = (await run(program, ["-j", ...args, ...more])).trim();
  return text === "" ? [] : (JSON.parse(text) as T[]); // cast: iproute2's form, which it keeps
}

/** Commands for `ip -batch` and `bridge -batch`, one a line. `ip` before `bridge`. */
interface Commands {
  readonly ip: readonly string[];
  readonly bridge: readonly string[];
}

/**
 * Pure: what leads from one state to the other. Every command may be run again.
 * @param isOurs whether a marked route is this cluster's: several may share a machine
 */
export function commandsFor(
  plan: Pick<Plan, "own" | "routes" | "vxlan" | "mtu">,
  state: KernelState,
  { bridge, vxlanId, vxlanPort }: { readonly bridge: string; readonly vxlanId: number; readonly vxlanPort: number },
  isOurs: (route: PodRoute) => boolean = () => true,
): Commands {
  const ip: string[] = [];
  const forwarding: string[] = [];
  const wanted = new Set(plan.routes.map(routeText));
  const link = vxlanLink(bridge);
  const found = state.links.find(({ name }) => name === link);
  const { vxlan } = plan;
  const isUsable = found !== undefined && vxlan !== undefined && isSameTunnel(found, vxlan, vxlanId, vxlanPort);
  // Routes, neighbours and entries end with their interface.
  if (found !== undefined && !isUsable) ip.push(`link delete dev ${link}`);
  const destinations = new Set(plan.routes.map(({ destination }) => destination));
  for (const route of state.routes) {
    if (!isOurs(route) || wanted.has(routeText(route)) || (route.link === link && !isUsable)) continue;
    if (!destinations.has(route.destination) || route.destination.includes(":"))
      ip.push(`route delete ${routeText(route)} proto ${routeProtocol}`);
  }
  if (vxlan !== undefined) {
    const { local, device, mac, mtu, addresses, peers } = vxlan;
    if (!isUsable)
      ip.push(
        `link add name ${link} address ${mac} mtu ${mtu} type vxlan id ${vxlanId} dstport ${vxlanPort} local ${local} dev ${device} nolearning`,
      );
    else if (found.mtu !== mtu) ip.push(`link set dev ${link} mtu ${mtu}`);
    if (!isUsable || !found.isUp) ip.push(`link set dev ${link} up`);
    const present = isUsable ? found.addresses.flatMap((one) => hostNetwork(one.ip)?.text ?? []) : [];
    const needed = addresses.flatMap((one) => hostNetwork(one)?.text ?? []);
    for (const address of needed.filter((one) => !present.includes(one)))
      ip.push(`address add ${address} dev ${link}${address.includes(":") ? " nodad" : ""}`);
    // Last: with its only address an interface loses all of its routes.
    for (const address of present.filter((one) => !needed.includes(one) && !one.startsWith("fe80:")))
      ip.push(`address delete ${address} dev ${link}`);
    // Sets: there are as many as nodes.
    const neighbours = new Set(peers.flatMap((peer) => peer.gateways.map((gateway) => `${gateway} ${peer.mac}`)));
    const entries = new Set(peers.map((peer) => `${peer.mac} ${peer.underlay}`));
    const knownNeighbours = new Set(isUsable ? state.neighbours : []);
    const knownEntries = new Set(isUsable ? state.forwarding : []);
    const replaced = new Set([...neighbours].map((one) => one.split(" ")[0]));
    for (const text of knownNeighbours.difference(neighbours)) {
      const [gateway] = text.split(" ");
      if (!replaced.has(gateway)) ip.push(`neighbour delete ${gateway} dev ${link}`);
    }
    for (const text of neighbours.difference(knownNeighbours)) {
      const [gateway, mac] = text.split(" ");
      ip.push(`neighbour replace ${gateway} lladdr ${mac} dev ${link} nud permanent`);
    }
    for (const text of knownEntries.difference(entries)) {
      const [mac, underlay] = text.split(" ");
      forwarding.push(`fdb delete ${mac} dev ${link} dst ${underlay} self`);
    }
    for (const text of entries.difference(knownEntries)) {
      const [mac, underlay] = text.split(" ");
      forwarding.push(`fdb append ${mac} dev ${link} dst ${underlay} self permanent`);
    }
  }
  const present = new Set(state.routes.filter((route) => isUsable || route.link !== link).map(routeText));
  for (const route of plan.routes) {
    if (present.has(routeText(route))) continue;
    const onLink = route.link === link ? " onlink" : "";
    ip.push(`route replace ${routeText(route)} proto ${routeProtocol}${onLink}`);
  }
  ip.push(...bridgeCommands(plan, state, bridge));
  return { ip, bridge: forwarding };
}

/** The bridge of pods, made by the plugin `bridge`, which refuses one with an address of an earlier range. */
function bridgeCommands({ own }: Pick<Plan, "own">, { links }: KernelState, bridge: string): string[] {
  const found = links.find(({ name }) => name === bridge);
  if (found === undefined || own.length === 0) return [];
  const gateways = own.map((network) => `${gatewayOf(network)}/${network.bits}`);
  return found.addresses
    .filter(({ ip }) => !ip.startsWith("fe80:"))
    .map(({ ip, bits }) => `${ip}/${bits}`)
    .filter((address) => !gateways.includes(address))
    .map((address) => `address delete ${address} dev ${bridge}`);
}

const isSameTunnel = (found: Link, wanted: Vxlan, id: number, port: number): boolean =>
  found.address === wanted.mac &&
  found.vxlan?.id === id &&
  found.vxlan.port === port &&
  hostNetwork(found.vxlan.local)?.text === hostNetwork(wanted.local)?.text;

const routeText = ({ destination, gateway, link }: PodRoute): string => `${destination} via ${gateway} dev ${link}`;

/** Runs all commands, also after one that failed. @throws ProgramError with what the failed ones said */
export async function runCommands(run: RunProgram, { ip, bridge }: Commands): Promise<void> {
  const failures: unknown[] = [];
  for (const [program, lines] of [
    ["ip", ip],
    ["bridge", bridge],
  ] as const) {
    if (lines.length === 0) continue;
    await run(program, ["-force", "-batch", "-"], `${lines.join("\n")}\n`).catch((err: unknown) => failures.push(err));
  }
  if (failures.length > 0) throw failures[0];
}
