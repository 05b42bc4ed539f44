import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

interface UtilChainOptions {
  masqueradeBit: number;
  dropBit: number;
  clock: Clock;
  log: Logger;
  /** Executes a command; in tests in a network namespace. @throws Error when it fails */
  run?: RunCommand;
}

export type RunCommand = (program: string, args: readonly string[]) => Promise<void>;

interface Rule {
  table: "nat" | "filter";
  chain: string;
  /** Insert at the beginning of a chain that others use, too. */
  first?: boolean;
  rule: readonly string[];
}

const programs = ["iptables", "ip6tables"] as const;
const checkEveryMs = 60_000;
const canary = "KUBE-KUBELET-CANARY";
const canaryTables = ["mangle", "nat", "filter"] as const;
const chains: readonly (readonly [table: "nat" | "filter", chain: string])[] = [
  ["nat", "KUBE-MARK-DROP"],
  ["filter", "KUBE-FIREWALL"],
  ["nat", "KUBE-MARK-MASQ"],
  ["nat", "KUBE-POSTROUTING"],
];

/**
 * `--make-iptables-util-chains`: maintains the chains that kube-proxy and network plugins jump to for dropping and
 * masquerading packets. A canary chain detects every minute whether the rules were flushed. Resolves when the signal aborts.
 * Source: pkg/kubelet/kubelet_network_linux.go initNetworkUtil
 */
export async function keepUtilChains(options: UtilChainOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, run = runCommand } = options;
  /** `-w` waits for the xtables lock. */
  const call = (program: string, table: string, ...args: readonly string[]): Promise<void> =>
    run(program, ["-w", "5", "-t", table, ...args]);
  const succeeds = (call: Promise<void>): Promise<boolean> => call.then(() => true).catch(() => false);

  const present: string[] = [];
  for (const program of programs) {
    if (await ensure(program)) present.push(program);
    else log.warn("Failed to initialize iptables rules; some functionality may be missing.", { program });
  }
  while (!signal.aborted && present.length > 0) {
    await clock.sleep(checkEveryMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    for (const program of present) if (!(await hasCanary(program))) await ensure(program);
  }

  async function ensure(program: string): Promise<boolean> {
    try {
      for (const [table, chain] of chains) await ensureChain(program, table, chain);
      for (const rule of utilRules({ ...options, ipv6: program === "ip6tables" })) await ensureRule(program, rule);
      for (const table of canaryTables) await ensureChain(program, table, canary);
      log.info("Initialized iptables rules.", { program });
      return true;
    } catch (err) {
      log.error("cannot write iptables rules", err, { program });
      return false;
    }
  }

  async function ensureChain(program: string, table: string, chain: string): Promise<void> {
    if (!(await succeeds(call(program, table, "-S", chain, "1")))) await call(program, table, "-N", chain);
  }

  async function ensureRule(program: string, { table, chain, first = false, rule }: Rule): Promise<void> {
    if (await succeeds(call(program, table, "-C", chain, ...rule))) return;
    await call(program, table, first ? "-I" : "-A", chain, ...rule);
  }

  async function hasCanary(program: string): Promise<boolean> {
    for (const table of canaryTables) if (!(await succeeds(call(program, table, "-S", canary, "1")))) return false;
    return true;
  }
}

/** Pure: the rules in the required order. kube-proxy uses the same chains. */
export function utilRules(options: { masqueradeBit: number; dropBit: number; ipv6: boolean }): Rule[] {
  const drop = mark(options.dropBit);
  const masquerade = mark(options.masqueradeBit);
  const comment = (text: string): string[] => ["-m", "comment", "--comment", text];
  const has = (bits: string): string[] => ["-m", "mark", "--mark", `${bits}/${bits}`];
  const firewall = (...rule: string[]): Rule => ({ table: "filter", chain: "KUBE-FIREWALL", rule });
  const postrouting = (...rule: string[]): Rule => ({ table: "nat", chain: "KUBE-POSTROUTING", rule });
  const jumpToFirewall = (chain: string): Rule => ({ table: "filter", chain, first: true, rule: ["-j", "KUBE-FIREWALL"] });
  // With route_localnet, packets from other hosts could reach 127.0.0.0/8. IPv6 has no equivalent.
  const localnet = ["--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8"];
  const notOurs = ["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT"];
  return [
    { table: "nat", chain: "KUBE-MARK-DROP", rule: ["-j", "MARK", "--or-mark", drop] },
    firewall(...comment("kubernetes firewall for dropping marked packets"), ...has(drop), "-j", "DROP"),
    ...(options.ipv6 ? [] : [firewall(...comment("block incoming localnet connections"), ...localnet, ...notOurs, "-j", "DROP")]),
    jumpToFirewall("OUTPUT"),
    jumpToFirewall("INPUT"),
    { table: "nat", chain: "KUBE-MARK-MASQ", rule: ["-j", "MARK", "--or-mark", masquerade] },
    {
      table: "nat",
      chain: "POSTROUTING",
      first: true,
      rule: [...comment("kubernetes postrouting rules"), "-j", "KUBE-POSTROUTING"],
    },
    postrouting("-m", "mark", "!", "--mark", `${masquerade}/${masquerade}`, "-j", "RETURN"),
    // Clears the mark, so that the packet is not masqueraded again if it traverses the chain once more.
    postrouting("-j", "MARK", "--xor-mark", masquerade),
    postrouting(...comment("kubernetes service traffic requiring SNAT"), "-j", "MASQUERADE", "--random-fully"),
  ];
}

const mark = (bit: number): string => `0x${(2 ** bit).toString(16).padStart(8, "0")}`;

const execute = promisify(execFile);
const runCommand: RunCommand = async (program, args) => void (await execute(program, args));
