import type { Failed, Unrun } from "./reported.ts";
import type { FileRun } from "./run-file.ts";

/** Duration and load of a part of a run. */
interface Stage {
  readonly name: string;
  readonly durationMs: number;
  /** CPU time of all processes of the machine during the stage. */
  readonly busyMs: number;
}

/** Totals of a run. */
export interface Totals {
  passed: number;
  failed: number;
  /** Failed tests as `file: name` with the beginning of the error, stages by name; repeated at the end of the log, because logs may be truncated to it. */
  readonly failures: string[];
  /** Same format as `failures`: tests that failed first and passed when their file was run again. */
  readonly flaky: string[];
  /** Batches of files that did not pass in one process and ran again file by file, with the reason. */
  readonly separated: string[];
  /** Includes file or stage; to-do tests are listed separately but count as skipped in the last line. */
  readonly skipped: Unrun[];
  readonly todo: Unrun[];
  readonly stages: Stage[];
}

export const newTotals = (): Totals => ({
  passed: 0,
  failed: 0,
  failures: [],
  flaky: [],
  separated: [],
  skipped: [],
  todo: [],
  stages: [],
});

/** Adds the results of one file to the totals, each name with its file. */
export function addFile(totals: Totals, run: FileRun): void {
  const within = ({ name, reason }: Unrun): Unrun => ({ name: `${run.file}: ${name}`, reason });
  totals.passed += run.passed;
  totals.failed += run.failed.length;
  totals.failures.push(...run.failed.map((each) => failureLine(run.file, each)));
  totals.skipped.push(...run.skipped.map(within));
  totals.todo.push(...run.todo.map(within));
}

/** Replaces a file's first run by its second one; failures that did not recur are flaky. */
export function addRepeated(totals: Totals, first: FileRun, second: FileRun): void {
  addFile(totals, second);
  const isAgain = ({ name, where }: Failed): boolean => second.failed.some((each) => each.name === name && each.where === where);
  totals.flaky.push(...first.failed.filter((each) => !isAgain(each)).map((each) => failureLine(first.file, each)));
}

/** Adds a batch whose files run again, each in a process of its own. */
export function addSeparated(totals: Totals, files: readonly string[], why: string): void {
  totals.separated.push(`${files.length} files from ${files[0]}: ${inOneLine(why)}`);
}

const failureLine = (file: string, { name, error }: Failed): string => `${file}: ${name}\n    ${inOneLine(error)}`;

const errorCharacters = 400;
const inOneLine = (error: string): string => error.replaceAll(/\s+/g, " ").slice(0, errorCharacters);

const outputLines = 100;

/** One line per file, followed for failing files by the failures and the end of the file's output. */
export function fileReport(run: FileRun): string {
  const unrun = run.skipped.length + run.todo.length;
  const counts = `${run.passed} passed, ${run.failed.length} failed${unrun > 0 ? `, ${unrun} skipped` : ""}`;
  const isOk = run.failed.length === 0;
  const line = `${isOk ? "ok  " : "FAIL"} ${run.file} (${counts}, ${seconds(run.durationMs)})\n`;
  return isOk ? line : `${line}${run.failed.map(failureReport).join("")}${printed(run.output)}`;
}

const failureReport = ({ name, where, error }: Failed): string => `  FAIL ${name} (${where})\n${indented(error, "    ")}\n`;

function printed(output: string): string {
  const lines = output.trimEnd().split("\n");
  if (output.trim() === "") return "";
  const shown = lines.slice(-outputLines);
  const title = shown.length < lines.length ? `the last ${shown.length} lines of what it printed` : "what it printed";
  return `  ${title}:\n${indented(shown.join("\n"), "    | ")}\n`;
}

const indented = (text: string, by: string): string => text.replaceAll(/^/gm, by);
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/**
 * Skipped and to-do tests by reason, the stages with their durations and average number of busy cores, flaky tests, failures, and
 * the last line.
 * @param together figures of the whole run; stages may overlap
 */
export function closingReport(totals: Totals, together: Omit<Stage, "name">): string {
  const skipped = totals.skipped.length + totals.todo.length;
  const time = [...totals.stages, { ...together, name: "together" }].map(stageLine).join("");
  return [
    unrunReport("skipped", totals.skipped),
    unrunReport("todo", totals.todo),
    `stages, and the machine's cores that were busy meanwhile:\n${time}`,
    listed("run again file by file, because they did not pass in one process", totals.separated),
    listed("flaky, passed when repeated", totals.flaky),
    listed("failed", totals.failures),
    totals.passed + totals.failed === 0 ? "nothing ran\n" : "",
    `${totals.passed} passed, ${totals.failed} failed, ${skipped} skipped${totals.flaky.length > 0 ? `, ${totals.flaky.length} flaky` : ""}\n`,
  ].join("");
}

function stageLine({ name, durationMs, busyMs }: Stage): string {
  const cores = durationMs > 0 ? busyMs / durationMs : 0;
  return `  ${seconds(durationMs).padStart(9)}  ${cores.toFixed(1).padStart(4)}  ${name}\n`;
}

const listed = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? "" : `${title}:\n${lines.map((each) => `  ${each}\n`).join("")}`;

function unrunReport(title: string, all: readonly Unrun[]): string {
  if (all.length === 0) return "";
  const byReason = Map.groupBy(all, ({ reason }) => reason);
  const groups = [...byReason].map(([reason, each]) => `  ${reason}:\n${each.map(({ name }) => `    ${name}\n`).join("")}`);
  return `${all.length} ${title}:\n${groups.join("")}`;
}

/** 0 only when at least one test passed and none failed. */
export const exitCode = (totals: Totals): number => (totals.failed === 0 && totals.passed > 0 ? 0 : 1);
