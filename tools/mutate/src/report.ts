import type { Mutant } from "./mutants.ts";

/** Result of one mutant. */
export interface Outcome {
  readonly mutant: Mutant;
  readonly diff: string;
  /** `timed out`: a test hung, which counts as caught but may also be due to a busy machine. */
  readonly result: "caught" | "timed out" | "survived" | "no tests";
  /** The test file that failed or timed out. */
  readonly by?: string;
  /** Number of test files run. */
  readonly tests: number;
  readonly seconds: number;
}

interface Summary {
  readonly tried: number;
  /** Including those that timed out. */
  readonly caught: number;
  readonly timedOut: number;
  readonly percent: number;
}

/** `percent` has one decimal, rounded down, so that 100 means all. */
export function summaryOf(outcomes: readonly Outcome[]): Summary {
  const timedOut = outcomes.filter(({ result }) => result === "timed out").length;
  const caught = timedOut + outcomes.filter(({ result }) => result === "caught").length;
  const tried = outcomes.length;
  return { tried, caught, timedOut, percent: tried === 0 ? 100 : Math.floor((caught * 1000) / tried) / 10 };
}

/** One line about the result of a mutant, without its diff. */
export function lineOf({ mutant, result, by, tests, seconds }: Outcome): string {
  const why = mutant.why === undefined ? "" : `, ${mutant.why}`;
  const what = `${mutant.id} ${mutant.kind} ${mutant.file}:${mutant.line}${why}`;
  const ran = `${tests} test file${tests === 1 ? "" : "s"}, ${seconds.toFixed(1)} s`;
  if (result === "caught") return `caught    ${what} by ${by} (${ran})`;
  if (result === "timed out") return `TIMED OUT ${what} in ${by} (${ran})`;
  return result === "survived" ? `SURVIVED  ${what} (${ran})` : `NO TESTS  ${what}: no test imports this file`;
}

/** Final report: survivors with their diffs, mutants whose test timed out, then one line of totals. */
export function textOfReport(outcomes: readonly Outcome[]): string {
  const survivors = outcomes.filter(({ result }) => result === "survived" || result === "no tests");
  const hung = outcomes.filter(({ result }) => result === "timed out");
  const shown = survivors.map((outcome) => `\n${lineOf(outcome)}\n${outcome.diff}\n`);
  return [...shown, ...hung.map(lineOf), `${totalsOf(summaryOf(outcomes))}, ${survivors.length} survived`].join("\n");
}

const totalsOf = ({ tried, caught, timedOut, percent }: Summary): string =>
  `${caught} of ${tried} faults caught (${percent} %), ${timedOut} of them by a timeout`;

/** Machine-readable report of all mutants, for `--json`. */
export function jsonOfReport(seed: number, folders: readonly string[], outcomes: readonly Outcome[]): string {
  const mutants = outcomes.map(({ mutant: { id, kind, file, line, why }, diff, result, by, tests, seconds }) => ({
    ...{ id, kind, file, line, why, result, by, tests, seconds: Math.round(seconds * 10) / 10, diff },
  }));
  return `${JSON.stringify({ seed, folders, ...summaryOf(outcomes), mutants }, undefined, 2)}\n`;
}
