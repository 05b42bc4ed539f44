import { exec, tryExec } from "./commands.ts";

/** What a cluster has in one table of iptables. */
interface TableRules {
  readonly table: string;
  /** Chains that are the cluster's alone. */
  readonly chains: readonly string[];
  /** Rules of the cluster in chains that others use too, as `iptables-save` prints them. */
  readonly rules: readonly string[];
}

/**
 * Pure: which chains and rules are a cluster's. Its own chains have its id in their names; those of the CNI plugins are named after a
 * hash, and are told by the comment of the rule that jumps to them.
 * @param saved what `iptables-save` prints
 */
export function rulesOf(saved: string, clusterId: string): TableRules[] {
  const tables: TableRules[] = [];
  for (const text of saved.split(/^(?=\*)/m)) {
    const table = /^\*(\S+)/.exec(text)?.[1];
    if (table === undefined) continue;
    const all = text.split("\n").filter((line) => line.startsWith("-A "));
    const marked = all.filter((line) => isMarked(line, clusterId));
    const chains = new Set([...text.matchAll(/^:(\S+)/gm)].map((match) => match[1] as string).filter(isOwn(clusterId)));
    for (const line of marked) {
      const target = targetOf(line);
      if (target !== undefined && /^CNI-(?:DN-)?[0-9a-f]+$/.test(target)) chains.add(target);
    }
    const rules = all.filter((line) => !chains.has(chainOf(line)) && (marked.includes(line) || chains.has(targetOf(line) ?? "")));
    if (chains.size > 0 || rules.length > 0) tables.push({ table, chains: [...chains], rules });
  }
  return tables;
}

/** Pure: the input of `iptables-restore --noflush` that removes them. */
export const removalOf = (tables: readonly TableRules[]): string =>
  tables
    .flatMap(({ table, chains, rules }) => [
      `*${table}`,
      ...chains.map((chain) => `:${chain} - [0:0]`), // empties it
      ...rules.map((rule) => rule.replace(/^-A/, "-D")),
      ...chains.map((chain) => `-X ${chain}`),
      "COMMIT",
      "",
    ])
    .join("\n");

export async function findRules(clusterId: string): Promise<TableRules[]> {
  return rulesOf((await tryExec("iptables-save", [])) ?? "", clusterId);
}

export async function removeRules(clusterId: string): Promise<void> {
  const found = await findRules(clusterId);
  if (found.length > 0) await exec("iptables-restore", ["-w", "5", "--noflush"], removalOf(found));
}

const isOwn =
  (clusterId: string) =>
  (chain: string): boolean =>
    chain.startsWith(`COX-${clusterId}-`);
const chainOf = (rule: string): string => rule.split(" ")[1] ?? "";
const targetOf = (rule: string): string | undefined => / -j (\S+)/.exec(rule)?.[1];
/** Forwarding rules have the id as their comment, the plugins' rules have it as their network's name. */
const isMarked = (rule: string, clusterId: string): boolean =>
  rule.includes(`--comment cox-${clusterId} `) || rule.includes(`name: \\"cox-${clusterId}\\"`);
