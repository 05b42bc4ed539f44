import { exec, tryExec } from "./commands.ts";

/** Begins the names of all chains of the cluster's Services. */
export const chainPrefix = (clusterId: string): string => `COX-${clusterId}-`;

/** Chains and rules of a cluster in one iptables table. */
interface TableRules {
  readonly table: string;
  /** Chains used only by the cluster. */
  readonly chains: readonly string[];
  /** The cluster's rules in shared chains, in the format of `iptables-save`. */
  readonly rules: readonly string[];
}

/**
 * Pure: finds the chains and rules of a cluster. Its own chains contain its ID; chains of CNI plugins are named by a hash and
 * identified by the comment of the rule that jumps to them.
 * @param saved output of `iptables-save`
 */
export function rulesOf(saved: string, clusterId: string): TableRules[] {
  const tables: TableRules[] = [];
  for (const text of saved.split(/^(?=\*)/m)) {
    const table = /^\*(\S+)/.exec(text)?.[1];
    if (table === undefined) continue;
    const all = text.split("\n").filter((line) => line.startsWith("-A "));
    const marked = all.filter((line) => isMarked(line, clusterId));
    const chains = new Set([...text.matchAll(/^:(\S+)/gm)].map((match) => match[1]!).filter(isOwn(clusterId)));
    for (const line of marked) {
      const target = targetOf(line);
      if (target !== undefined && /^CNI-(?:DN-)?[0-9a-f]+$/.test(target)) chains.add(target);
    }
    const rules = all.filter((line) => !chains.has(chainOf(line)) && (marked.includes(line) || chains.has(targetOf(line) ?? "")));
    if (chains.size > 0 || rules.length > 0) tables.push({ table, chains: [...chains], rules });
  }
  return tables;
}

/** Pure: input for `iptables-restore --noflush` that removes them. */
export const removalOf = (tables: readonly TableRules[]): string =>
  tables
    .flatMap(({ table, chains, rules }) => [
      `*${table}`,
      ...chains.map((chain) => `:${chain} - [0:0]`), // flushes the chain
      ...rules.map((rule) => rule.replace(/^-A/, "-D")),
      ...chains.map((chain) => `-X ${chain}`),
      "COMMIT",
      "",
    ])
    .join("\n");

/** The cluster's rules in the IPv4 tables; none where `iptables-save` is missing or fails. */
export async function findRules(clusterId: string): Promise<TableRules[]> {
  return rulesOf((await tryExec("iptables-save", [])) ?? "", clusterId);
}

/** Waits up to 5 s for the xtables lock. @throws Error with the text of `iptables-restore` */
export async function removeRules(clusterId: string): Promise<void> {
  const found = await findRules(clusterId);
  if (found.length > 0) await exec("iptables-restore", ["-w", "5", "--noflush"], removalOf(found));
}

const isOwn =
  (clusterId: string) =>
  (chain: string): boolean =>
    chain.startsWith(chainPrefix(clusterId));
const chainOf = (rule: string): string => rule.split(" ")[1] ?? "";
const targetOf = (rule: string): string | undefined => / -j (\S+)/.exec(rule)?.[1];
/** Forwarding rules carry the ID as comment, CNI plugins' rules the name of the network. */
const isMarked = (rule: string, clusterId: string): boolean =>
  rule.includes(`--comment cox-${clusterId} `) || rule.includes(`name: \\"cox-${clusterId}\\"`);
