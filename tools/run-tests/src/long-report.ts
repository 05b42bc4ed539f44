import type { Totals } from "./report.ts";
import type { FileRun } from "./run-file.ts";

/** Where and when a long run took place. */
export interface Machine {
  readonly cpus: number;
  readonly memoryGb: number;
  /** Of the code that was tested; empty outside a Git repository. */
  readonly commit: string;
  /** ISO 8601 */
  readonly begun: string;
  /** Average numbers of runnable processes at the end, over 1, 5 and 15 minutes. */
  readonly load: readonly number[];
}

/** Other files are only part of the totals. */
const listedMs = 60_000;

/**
 * One page in Markdown about a run of the long forms: totals, stages, failures, and each file that reported figures or took longer
 * than a minute.
 * @param durationMs of the whole run
 */
export function longReport(totals: Totals, runs: readonly FileRun[], machine: Machine, durationMs: number): string {
  const listed = runs.filter((run) => run.figures.length > 0 || run.durationMs >= listedMs || run.failed.length > 0);
  const skipped = totals.skipped.length + totals.todo.length;
  return [
    "# The last long run\n",
    `${machine.begun}, commit ${machine.commit || "unknown"}, ${machine.cpus} CPUs, ${machine.memoryGb} GB, load at the end ${machine.load.map((each) => each.toFixed(1)).join(" ")}.`,
    `**${totals.passed} passed, ${totals.failed} failed, ${skipped} skipped** in ${time(durationMs)}.\n`,
    table(
      ["stage", "time"],
      totals.stages.map((stage) => [stage.name, time(stage.durationMs)]),
    ),
    table(["file", "result", "time", "figures"], listed.toSorted((a, b) => (a.file < b.file ? -1 : 1)).map(rowOf)),
    ...totals.skipped.map(({ name, reason }) => `- skipped: ${cell(name)}: ${cell(reason)}`),
    "",
  ].join("\n");
}

function rowOf(run: FileRun): string[] {
  const failed = run.failed.map(({ name }) => `failed: ${name}`);
  const result = failed.length === 0 ? `${run.passed} passed` : `${run.passed} passed, ${failed.length} failed`;
  return [
    run.file,
    result,
    time(run.durationMs),
    [...failed, ...run.figures.map(({ name, text }) => `${name}: ${text}`)].join("; "),
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |\n`;
  return `${line(head)}|${head.map(() => "---|").join("")}\n${rows.map(line).join("")}`;
}

/** Text for a cell of a table in Markdown. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ");

function time(ms: number): string {
  const seconds = ms / 1000;
  return seconds < 120 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
