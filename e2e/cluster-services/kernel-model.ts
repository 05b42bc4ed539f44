/** The effect of a kernel's rules on connections to Services, computed without the code that writes the rules. */
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";

/** Endpoints by `address:port` of a Service; none: connections are rejected. */
export type Destinations = Readonly<Record<string, readonly string[]>>;

/** Pure: of ClusterIP Services, and those with addresses of a load balancer, whose endpoints are all ready. */
export function expectedDestinations(services: readonly Service[], slices: readonly EndpointSlice[]): Destinations {
  const byService = Map.groupBy(
    slices,
    ({ metadata }) => `${metadata.namespace}/${metadata.labels?.["kubernetes.io/service-name"]}`,
  );
  const entries = services.flatMap((service) =>
    (service.spec.ports ?? []).flatMap((port): [string, string[]][] => {
      const own = byService.get(keyOf(service)) ?? [];
      const endpoints = own.flatMap((slice) => {
        const target = slice.ports.find(({ name = "" }) => name === (port.name ?? ""))?.port;
        return (slice.endpoints ?? []).map(({ addresses }) => `${addresses[0]}:${target}`);
      });
      const balancers = (service.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip);
      return [service.spec.clusterIP, ...balancers].map((ip) => [`${ip}:${port.port}`, endpoints.toSorted()]);
    }),
  );
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Pure: what `iptables-save` shows. A packet's way is followed from the built-in chain, so that rules that nothing leads to do not count.
 * @returns chains that nothing leads to, too
 */
export function destinationsIn(save: string): { destinations: Destinations; unused: string[] } {
  const tables = new Map<string, Map<string, string[]>>();
  let chains = new Map<string, string[]>();
  for (const line of save.split("\n")) {
    if (line.startsWith("*")) {
      chains = new Map();
      tables.set(line.slice(1), chains);
    }
    const declared = /^:(\S+)/.exec(line)?.[1];
    if (declared !== undefined) chains.set(declared, []);
    const [, chain = "", rule] = /^-A (\S+) (.*)$/.exec(line) ?? [];
    if (rule !== undefined) chains.get(chain)?.push(rule);
  }
  const found = new Map<string, string[]>();
  const seen = new Set<string>();
  const follow = (table: string, chain: string, destination: string | undefined): void => {
    seen.add(`${table} ${chain}`);
    for (const rule of tables.get(table)?.get(chain) ?? []) {
      const [, ip, port] = /-d (\d+\.\d+\.\d+\.\d+)\/32 .*--dport (\d+)(?: |$)/.exec(rule) ?? [];
      const to = ip === undefined ? destination : `${ip}:${port}`;
      const endpoint = /--to-destination (\S+)/.exec(rule)?.[1];
      if (to !== undefined && endpoint !== undefined) found.set(to, [...(found.get(to) ?? []), endpoint]);
      if (to !== undefined && table === "filter" && / -j REJECT/.test(rule)) found.set(to, []);
      const next = / -j (COX-\S+)/.exec(` ${rule}`)?.[1];
      if (next !== undefined) follow(table, next, to);
    }
  };
  follow("nat", "OUTPUT", undefined);
  follow("nat", "POSTROUTING", undefined);
  for (const chain of ["INPUT", "FORWARD", "OUTPUT"]) follow("filter", chain, undefined);
  const unused = [...tables].flatMap(([table, all]) =>
    [...all.keys()].filter((chain) => chain.startsWith("COX-") && !seen.has(`${table} ${chain}`)),
  );
  const destinations = Object.fromEntries(
    [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([to, all]) => [to, all.toSorted()]),
  );
  return { destinations, unused };
}

/** The first differences. */
export function differences(are: Destinations, should: Destinations): string[] {
  return [...new Set([...Object.keys(are), ...Object.keys(should)])].flatMap((to) => {
    const [is, want] = [are[to]?.join(), should[to]?.join()];
    return is === want ? [] : [`${to}: ${is ?? "nothing"}, wanted ${want ?? "nothing"}`];
  });
}
