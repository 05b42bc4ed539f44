import { nightHours, type PlannedForm } from "./long-forms.ts";
import type { Totals } from "./report.ts";
import type { FileRun } from "./run-file.ts";

/** Machine, commit and time of a long run. */
interface Machine {
  readonly cpus: number;
  readonly memoryGb: number;
  /** Commit of the tested code; empty outside a Git repository. */
  readonly commit: string;
  /** ISO 8601 */
  readonly begun: string;
  /** Load averages at the end, over 1, 5 and 15 minutes. */
  readonly load: readonly number[];
}

/** Files that took less are included in the totals only. */
const listedMs = 60_000;

/** The selected forms and files. */
interface Scope {
  readonly hours: number;
  readonly plan: readonly PlannedForm[];
}

/**
 * Markdown report of a long run: totals, the outcome of each form, stages, failures, and each file that reported
 * figures or took longer than a minute.
 * @param durationMs duration of the whole run
 */
export function longReport(
  totals: Totals,
  runs: readonly FileRun[],
  machine: Machine,
  durationMs: number,
  { hours, plan }: Scope,
): string {
  const listed = runs.filter((run) => run.figures.length > 0 || run.durationMs >= listedMs || run.failed.length > 0);
  const skipped = totals.skipped.length + totals.todo.length;
  return [
    "# The last long run\n",
    `${machine.begun}, commit ${machine.commit || "unknown"}, ${machine.cpus} CPUs, ${machine.memoryGb} GB, load at the end ${machine.load.map((each) => each.toFixed(1)).join(" ")}.`,
    hours === nightHours
      ? ""
      : `A run of ${hours} hours instead of ${nightHours}: timed forms had ${Math.round((100 * hours) / nightHours)} % of their time, others ran in full or not at all.`,
    `**${totals.passed} passed, ${totals.failed} failed, ${skipped} skipped** in ${time(durationMs)}.\n`,
    table(
      ["form", "outcome", "budget", "time"],
      plan.map((form) => outcomeOf(form, runs)),
    ),
    table(
      ["stage", "time"],
      totals.stages.map((stage) => [stage.name, time(stage.durationMs)]),
    ),
    table(["file", "result", "time", "figures"], listed.toSorted((a, b) => (a.file < b.file ? -1 : 1)).map(rowOf)),
    ...totals.skipped.map(({ name, reason }) => `- skipped: ${cell(name)}: ${cell(reason)}`),
    "",
  ].join("\n");
}

/** A form of which nothing has run must not be reported as passed. */
function outcomeOf(form: PlannedForm, runs: readonly FileRun[]): string[] {
  const files = form.files.length === 0 ? [form.name] : form.files;
  const mine = runs.filter(({ file }) => files.includes(file));
  const budget = `${Math.round(10 * form.minutes) / 10} min`;
  const spent = time(mine.reduce((sum, { durationMs }) => sum + durationMs, 0));
  if (!form.isLong) return [form.name, "not in this run: only the short form", budget, spent];
  const absent = files.filter((file) => !mine.some((run) => run.file === file));
  const failed = mine.flatMap((run) => run.failed).length;
  const passed = mine.reduce((sum, run) => sum + run.passed, 0);
  const skipped = mine.flatMap((run) => run.skipped);
  const parts = [
    failed > 0 ? `**${failed} failed**` : "",
    passed > 0 ? `${passed} passed` : "",
    skipped.length > 0 ? `${skipped.length} skipped (${[...new Set(skipped.map(({ reason }) => reason))].join("; ")})` : "",
    absent.length > 0 ? `not run: ${absent.join(", ")}` : "",
  ];
  return [form.name, parts.filter((part) => part !== "").join(", ") || "nothing ran", budget, spent];
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

/** Escapes text for a cell of a Markdown table. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ");

function time(ms: number): string {
  const seconds = ms / 1000;
  return seconds < 120 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
