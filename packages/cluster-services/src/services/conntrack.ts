import { ProgramError, type RunProgram } from "../host/run-program.ts";
import type { Family } from "./addresses.ts";
import type { ServicePort } from "./service-port.ts";

/**
 * Pure: the connection tracking entries to delete after a change of a Service. UDP connections have no end: a client that keeps
 * sending from one port would keep the entry, and its old endpoint, forever.
 */
export function staleEntries(before: readonly ServicePort[], after: readonly ServicePort[], family: Family): string[][] {
  const now = new Map(after.map((port) => [`${port.id}/${port.protocol}`, port]));
  const earlier = new Set(before.map((port) => `${port.id}/${port.protocol}`));
  const filters: string[][] = [];
  for (const port of before) {
    if (port.protocol === "tcp") continue;
    const next = now.get(`${port.id}/${port.protocol}`);
    const left = new Set(endpointsOf(next));
    const gone = new Set([...endpointsOf(port)].filter((endpoint) => !left.has(endpoint)).map(addressOf));
    for (const to of destinations(port)) for (const address of gone) filters.push([...to, "--dst-nat", address]);
    // Packets that were rejected or not sent on have an entry without an endpoint.
    if (next !== undefined && endpointsOf(port).length === 0 && left.size > 0) filters.push(...destinations(next));
  }
  for (const port of after) {
    if (port.protocol !== "tcp" && !earlier.has(`${port.id}/${port.protocol}`) && port.endpoints.length > 0)
      filters.push(...destinations(port));
  }
  return filters.map((filter) => ["-f", family === "IPv4" ? "ipv4" : "ipv6", ...filter]);
}

const endpointsOf = (port: ServicePort | undefined): readonly string[] => [
  ...(port?.endpoints ?? []),
  ...(port?.localEndpoints ?? []),
];
const addressOf = (endpoint: string): string => endpoint.slice(0, endpoint.lastIndexOf(":")).replace(/^\[|\]$/g, "");

function destinations({ protocol, clusterIp, externalIps, loadBalancerIps, port, nodePort }: ServicePort): string[][] {
  const ips = [clusterIp, ...externalIps, ...loadBalancerIps];
  return [
    ...ips.map((ip) => ["-p", protocol, "--orig-dst", ip, "--orig-port-dst", String(port)]),
    ...(nodePort === undefined ? [] : [["-p", protocol, "--orig-port-dst", String(nodePort)]]),
  ];
}

/** Deletes the entries. @throws ProgramError, not for a filter that matches none */
export async function deleteEntries(filters: readonly (readonly string[])[], run: RunProgram): Promise<void> {
  for (const filter of filters) {
    await run("conntrack", ["-D", ...filter]).catch((err: unknown) => {
      if (!(err instanceof ProgramError && err.message.includes("0 flow entries have been deleted"))) throw err;
    });
  }
}
