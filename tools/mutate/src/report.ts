import type { Mutant } from "./mutants.ts";

/** Result of one mutant. */
export interface Outcome {
  readonly mutant: Mutant;
  readonly diff: string;
  readonly result: "caught" | "survived" | "no tests";
  /** The test file that failed or timed out. */
  readonly by?: string;
  /** Number of test files run. */
  readonly tests: number;
  readonly seconds: number;
}

interface Summary {
  readonly tried: number;
  readonly caught: number;
  readonly percent: number;
}

/** `percent` has one decimal, rounded down, so that 100 means all. */
export function summaryOf(outcomes: readonly Outcome[]): Summary {
  const caught = outcomes.filter(({ result }) => result === "caught").length;
  const tried = outcomes.length;
  return { tried, caught, percent: tried === 0 ? 100 : Math.floor((caught * 1000) / tried) / 10 };
}

export function lineOf({ mutant, result, by, tests, seconds }: Outcome): string {
  const what = `${mutant.id} ${mutant.kind} ${mutant.file}:${mutant.line}`;
  const ran = `${tests} test file${tests === 1 ? "" : "s"}, ${seconds.toFixed(1)} s`;
  if (result === "caught") return `caught    ${what} by ${by} (${ran})`;
  return result === "survived" ? `SURVIVED  ${what} (${ran})` : `NO TESTS  ${what}: no test imports this file`;
}

/** Final report: survivors with their diffs, then one line of totals. */
export function textOfReport(outcomes: readonly Outcome[]): string {
  const survivors = outcomes.filter(({ result }) => result !== "caught");
  const shown = survivors.map((outcome) => `\n${lineOf(outcome)}\n${outcome.diff}\n`);
  const { tried, caught, percent } = summaryOf(outcomes);
  return [...shown, `${caught} of ${tried} faults caught (${percent} %), ${survivors.length} survived`].join("\n");
}

/** Machine-readable report of all mutants, for `--json`. */
export function jsonOfReport(seed: number, folders: readonly string[], outcomes: readonly Outcome[]): string {
  const mutants = outcomes.map(({ mutant: { id, kind, file, line }, diff, result, by, tests, seconds }) => ({
    ...{ id, kind, file, line, result, by, tests, seconds: Math.round(seconds * 10) / 10, diff },
  }));
  return `${JSON.stringify({ seed, folders, ...summaryOf(outcomes), mutants }, undefined, 2)}\n`;
}
