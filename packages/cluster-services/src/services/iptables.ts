import type { RunProgram } from "../host/run-program.ts";
import type { Family } from "./addresses.ts";
import { type Jump, type Table, tables } from "./rule-set.ts";

/** The kernel's rules of one family, by Debian's iptables. */
export interface Iptables {
  /** Each table of the text is replaced atomically; chains that it does not name stay. */
  restore(text: string): Promise<void>;
  /** Names of the chains of Services: they begin with the prefix, and not as those of other parts. */
  chains(prefix: string): Promise<Map<Table, string[]>>;
  /** Those of the jumps that the kernel lacks, or has before the ones that they come behind. */
  missing(jumps: readonly Jump[]): Promise<MissingJump[]>;
}

export interface MissingJump extends Jump {
  /** Rules of the chain that come first, without this one. */
  readonly rulesBefore: number;
  /** It is in the chain, at another place. */
  readonly isMisplaced: boolean;
}

/** The parts `pod-network` and `load-balancers` have chains with the same prefix. */
const chainMarksOfOthers = ["NET-", "LB-"];

/** Waits for another program that holds the lock of iptables. */
const wait = ["-w", "5"];

export function newIptables(family: Family, run: RunProgram): Iptables {
  const name = family === "IPv4" ? "iptables" : "ip6tables";
  return {
    restore: async (text) => void (await run(`${name}-restore`, [...wait, "--noflush"], text)),
    async chains(prefix) {
      const found = new Map<Table, string[]>();
      for (const table of tables) {
        const all = chainsIn(await run(`${name}-save`, ["-t", table]), prefix);
        found.set(
          table,
          all.filter((chain) => !chainMarksOfOthers.some((mark) => chain.startsWith(`${prefix}${mark}`))),
        );
      }
      return found;
    },
    async missing(jumps) {
      const places = Object.values(Object.groupBy(jumps, ({ table, from }) => `${table} ${from}`)) as Jump[][];
      const missing: MissingJump[] = [];
      for (const place of places) {
        const { table, from } = place[0] as Jump;
        const present = (await run(name, [...wait, "-t", table, "-S", from]))
          .split("\n")
          .filter((line) => line.startsWith("-A "));
        missing.push(...place.flatMap((jump) => missingFrom(present, jump) ?? []));
      }
      return missing;
    },
  };
}

/** Pure: the chains of a table with the prefix. @param saved output of `iptables-save` */
const chainsIn = (saved: string, prefix: string): string[] =>
  [...saved.matchAll(/^:(\S+)/gm)].map((match) => match[1] as string).filter((chain) => chain.startsWith(prefix));

/** Pure. @param present rules of the chain, as `iptables -S` prints them */
function missingFrom(present: readonly string[], jump: Jump): MissingJump | undefined {
  const at = present.indexOf(`-A ${jump.from} ${jump.rule}`);
  const others = present.toSpliced(at, at < 0 ? 0 : 1);
  const rulesBefore = 1 + others.findLastIndex((rule) => leadsTo(rule, jump.behind ?? []));
  return at >= rulesBefore ? undefined : { ...jump, rulesBefore, isMisplaced: at >= 0 };
}

const leadsTo = (rule: string, names: readonly string[]): boolean => {
  const chain = / -[jg] (\S+)/.exec(rule)?.[1] ?? "";
  return names.some((name) => chain === name || (name.endsWith("-") && chain.startsWith(name)));
};

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

/** Pure: input for `restore` that removes the chains with the prefix and all rules that lead to them. */
export function removing(saved: string, prefix: string): string {
  const parts = saved.split(/^(?=\*)/m).flatMap((text) => {
    const table = /^\*(\S+)/.exec(text)?.[1];
    const chains = chainsIn(text, prefix);
    if (table === undefined || chains.length === 0) return [];
    const own = new Set(chains);
    const leading = text.split("\n").filter((line) => {
      const [, from = ""] = /^-A (\S+) /.exec(line) ?? [];
      return from !== "" && !own.has(from) && own.has(/ -[jg] (\S+)/.exec(line)?.[1] ?? "");
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

/** Removes everything that `prefix` begins, in both families. A family that the machine does not have is passed over. */
export async function cleanUp(prefix: string, run: RunProgram): Promise<void> {
  for (const name of ["iptables", "ip6tables"]) {
    const saved = await run(`${name}-save`, []).catch((err: unknown) => {
      if (name === "iptables") throw err;
      return "";
    });
    const text = removing(saved, prefix);
    if (text !== "") await run(`${name}-restore`, [...wait, "--noflush"], text);
  }
}
