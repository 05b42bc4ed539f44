import { ProgramError, type RunProgram } from "../host/run-program.ts";
import type { Family } from "./addresses.ts";
import { type Jump, type Table, tables } from "./rule-set.ts";

/** The kernel's rules of one family, by Debian's iptables. */
interface Iptables {
  /** Each table of the text is replaced atomically; chains that it does not name stay. */
  restore(text: string): Promise<void>;
  /** Names of the chains of Services: they begin with the prefix, and not as those of other parts. */
  chains(prefix: string): Promise<Map<Table, string[]>>;
  /** Those of the jumps that the kernel lacks, or has before the ones that they come behind. */
  missing(jumps: readonly Jump[]): Promise<MissingJump[]>;
}

interface MissingJump extends Jump {
  /** Rules of the chain that come first, without this one. */
  readonly rulesBefore: number;
  /** It is in the chain, at another place. */
  readonly isMisplaced: boolean;
}

/** The parts `pod-network` and `load-balancers` have chains with the same prefix. */
const chainMarksOfOthers = ["NET-", "LB-"];

/** Waits for another program that holds the lock of iptables. */
const wait = ["-w", "5"];

const programOf = (family: Family): string => (family === "IPv4" ? "iptables" : "ip6tables");

/** Whether a chain is of the part `services`. */
export const isOfServices =
  (prefix: string) =>
  (chain: string): boolean =>
    chain.startsWith(prefix) && !chainMarksOfOthers.some((mark) => chain.startsWith(`${prefix}${mark}`));

export function newIptables(family: Family, run: RunProgram): Iptables {
  const name = programOf(family);
  return {
    restore: async (text) => void (await run(`${name}-restore`, [...wait, "--noflush"], text)),
    async chains(prefix) {
      const found = new Map<Table, string[]>();
      for (const table of tables) {
        found.set(table, chainsIn(await run(`${name}-save`, ["-t", table])).filter(isOfServices(prefix)));
      }
      return found;
    },
    async missing(jumps) {
      const places = Map.groupBy(jumps, ({ table, from }) => `${table} ${from}`);
      const missing: MissingJump[] = [];
      for (const place of places.values()) {
        const { table, from } = place[0]!;
        const present = (await run(name, [...wait, "-t", table, "-S", from]))
          .split("\n")
          .filter((line) => line.startsWith("-A "));
        missing.push(...place.flatMap((jump) => missingFrom(present, jump) ?? []));
      }
      return missing;
    },
  };
}

/** Pure. @param saved output of `iptables-save` */
const chainsIn = (saved: string): string[] => [...saved.matchAll(/^:(\S+)/gm)].map((match) => match[1]!);

/** Pure. @param present rules of the chain, as `iptables -S` prints them */
function missingFrom(present: readonly string[], jump: Jump): MissingJump | undefined {
  const at = present.indexOf(`-A ${jump.from} ${jump.rule}`);
  const others = present.toSpliced(at, at < 0 ? 0 : 1);
  const rulesBefore = 1 + others.findLastIndex((rule) => leadsTo(rule, jump.behind ?? []));
  return at >= rulesBefore ? undefined : { ...jump, rulesBefore, isMisplaced: at >= 0 };
}

const leadsTo = (rule: string, names: readonly string[]): boolean => {
  const chain = targetOf(rule);
  return names.some((name) => chain === name || (name.endsWith("-") && chain.startsWith(name)));
};

/** Where a rule leads, in the format of `iptables-save`; "" for one without. A comment may contain anything, in quotes. */
const targetOf = (rule: string): string => / -[jg] (\S+)/.exec(rule.replaceAll(/"(?:[^"\\]|\\.)*"/g, ""))?.[1] ?? "";

/** Pure: input for `restore` that adds the jumps, or moves them to their places. */
export const addingJumps = (jumps: readonly MissingJump[]): string =>
  tables
    .map((table) => jumps.filter((jump) => jump.table === table))
    .filter((own) => own.length > 0)
    .map((own) =>
      [
        `*${own[0]?.table}`,
        ...own.filter(({ isMisplaced }) => isMisplaced).map(({ from, rule }) => `-D ${from} ${rule}`),
        ...own
          .toReversed()
          .map(({ from, rule, rulesBefore }) => `-I ${from} ${rulesBefore > 0 ? `${rulesBefore + 1} ` : ""}${rule}`),
        "COMMIT",
        "",
      ].join("\n"),
    )
    .join("");

/** Whether the kernel has such chains. A family that the machine does not have has none; nor has a machine without iptables. */
export async function hasChains(family: Family, isOne: (chain: string) => boolean, run: RunProgram): Promise<boolean> {
  const saved = await run(`${programOf(family)}-save`, []).catch((err: unknown) => {
    if (family === "IPv6" || (err instanceof ProgramError && err.exitCode === undefined)) return "";
    throw err;
  });
  return chainsIn(saved).some(isOne);
}

/** Removes chains that an earlier process has left. @returns whether there were any */
export async function removeLeftChains(isOne: (chain: string) => boolean, run: RunProgram): Promise<boolean> {
  const present = await Promise.all((["IPv4", "IPv6"] as const).map((family) => hasChains(family, isOne, run)));
  if (!present.includes(true)) return false;
  await removeChains(isOne, run);
  return true;
}

/** Pure: input for `restore` that removes the chains and all rules that lead to them. */
export function removing(saved: string, isOne: (chain: string) => boolean): string {
  const parts = saved.split(/^(?=\*)/m).flatMap((text) => {
    const table = /^\*(\S+)/.exec(text)?.[1];
    const chains = chainsIn(text).filter(isOne);
    if (table === undefined || chains.length === 0) return [];
    const own = new Set(chains);
    const leading = text.split("\n").filter((line) => {
      const [, from = ""] = /^-A (\S+) /.exec(line) ?? [];
      return from !== "" && !own.has(from) && own.has(targetOf(line));
    });
    return [
      `*${table}`,
      ...chains.map((chain) => `:${chain} - [0:0]`),
      ...leading.map((line) => line.replace(/^-A/, "-D")),
      ...chains.map((chain) => `-X ${chain}`),
      "COMMIT",
      "",
    ];
  });
  return parts.join("\n");
}

/** Removes everything that `prefix` begins, in both families. */
export const cleanUp = (prefix: string, run: RunProgram): Promise<void> => removeChains((chain) => chain.startsWith(prefix), run);

/** Removes chains and all rules that lead to them, in both families. A family that the machine does not have is passed over. */
export async function removeChains(isOne: (chain: string) => boolean, run: RunProgram): Promise<void> {
  for (const name of ["iptables", "ip6tables"]) {
    const saved = await run(`${name}-save`, []).catch((err: unknown) => {
      if (name === "iptables") throw err;
      return "";
    });
    const text = removing(saved, isOne);
    if (text !== "") await run(`${name}-restore`, [...wait, "--noflush"], text);
  }
}
