import type { FlagTable, FlagValues } from "./flags.ts";
import type { Flag } from "./types.ts";

/** Checks the rules of a program's flags in the order in which its errors stand; none twice. */
interface RuleCheck<Name> {
  /** Problems of these flags. */
  of(...names: readonly Name[]): string[];
  /** Problems of all flags that were not checked yet. */
  others(): string[];
}

/** @param values the parsed flags, whose rules (`must`) are checked; no rule runs before `of` or `others` is called */
export function newRuleCheck<T extends FlagTable>(table: T, values: FlagValues<T>): RuleCheck<keyof T & string> {
  const left = new Set(Object.keys(table));
  const of = (...names: readonly string[]): string[] =>
    names.flatMap((name) => {
      const row: Flag<unknown> | undefined = left.delete(name) ? table[name] : undefined;
      return row?.must?.problem(values[name], { flag: name }) ?? [];
    });
  return { of, others: () => of(...left) };
}
