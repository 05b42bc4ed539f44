import { chainNames } from "../services/port-rules.ts";
import type { Jump } from "../services/rule-set.ts";
import { chainMark } from "./names.ts";
import { hostNetwork, type IpFamily, type Network, parseNetwork } from "./networks.ts";
import type { Plan } from "./plan.ts";
import type { PodNetworkSettings } from "./settings.ts";

/** Rules of one IP family: input for `iptables-restore --noflush`, and the rules that lead to its chains. */
interface PodRules {
  readonly text: string;
  readonly jumps: readonly Jump[];
}

/**
 * Pure: pods' connections to addresses outside of the cluster get the node's address; those among pods keep theirs. Packets of pods
 * are forwarded whatever the machine's policy is. VXLAN has no authentication: only nodes may send it, and no pod may.
 */
export function podRules(
  { own, all, nodeAddresses, vxlan: tunnel }: Pick<Plan, "own" | "all" | "nodeAddresses" | "vxlan">,
  { chainPrefix, clusterCidrs, vxlanPort }: Pick<PodNetworkSettings, "chainPrefix" | "clusterCidrs" | "vxlanPort">,
  family: IpFamily,
): PodRules {
  const chain = (name: string): string => `${chainPrefix}${chainMark}${name}`;
  const mine = own.filter((network) => network.family === family).map(({ text }) => text);
  const cluster = clusterNetworks(all, clusterCidrs, family).map(({ text }) => text);
  const nodes = [
    ...new Set(
      nodeAddresses
        .flatMap((ip) => hostNetwork(ip) ?? [])
        .filter((one) => one.family === family)
        .map(({ text }) => text),
    ),
  ];
  const multicast = family === 4 ? "224.0.0.0/4" : "ff00::/8";
  const vxlan = `-p udp -m udp --dport ${vxlanPort}`;
  const masquerade = mine.flatMap((network) => [
    ...[...cluster, multicast].map((to) => `-s ${network} -d ${to} -j RETURN`),
    `-s ${network} -j MASQUERADE --random-fully`,
  ]);
  const forward = mine.flatMap((network) => [
    ...cluster.map((to) => `-s ${network} -d ${to} -j ACCEPT`),
    ...(tunnel === undefined ? [] : [`-s ${network} ${vxlan} -j DROP`]),
    `-s ${network} -j ACCEPT`,
    `-d ${network} -j ACCEPT`,
  ]);
  // Without it the port may be another program's.
  const input = tunnel === undefined ? [] : [...nodes.map((address) => `-s ${address} -j RETURN`), "-j DROP"];
  const table = (name: string, chains: readonly (readonly [string, readonly string[]])[]): string =>
    [
      `*${name}`,
      ...chains.map(([one]) => `:${chain(one)} - [0:0]`),
      ...chains.flatMap(([one, rules]) => rules.map((rule) => `-A ${chain(one)} ${rule}`)),
      "COMMIT",
      "",
    ].join("\n");
  return {
    text:
      table("nat", [["MASQ", masquerade]]) +
      table("filter", [
        ["FORWARD", forward],
        ["VXLAN", input],
      ]),
    jumps: [
      { table: "nat", from: "POSTROUTING", rule: `-j ${chain("MASQ")}` },
      {
        table: "filter",
        from: "FORWARD",
        rule: `-j ${chain("FORWARD")}`,
        // Connections to Services without endpoints must be rejected there before they are accepted here.
        behind: [`${chainPrefix}${chainNames.forward}`, `${chainPrefix}${chainNames.filter}`, "KUBE-"],
      },
      { table: "filter", from: "INPUT", rule: `${vxlan} -j ${chain("VXLAN")}` },
    ],
  };
}

/** The given ones, and nodes' pod ranges that are in none of them. */
function clusterNetworks(all: readonly Network[], given: readonly string[], family: IpFamily): Network[] {
  const outer = given.flatMap((cidr) => parseNetwork(cidr) ?? []).filter((network) => network.family === family);
  const isCovered = (network: Network): boolean => outer.some((one) => one.first <= network.first && network.last <= one.last);
  return [...outer, ...all.filter((network) => network.family === family && !isCovered(network))];
}
