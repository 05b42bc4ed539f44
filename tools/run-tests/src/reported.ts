/** A line written by a test process; see event-writer.ts. */
export type Reported =
  | { readonly kind: "begun"; readonly id: number | undefined; readonly name: string }
  | { readonly kind: "ended"; readonly id: number | undefined }
  /** All tests of the file have completed. */
  | { readonly kind: "summary" }
  | { readonly kind: "note"; readonly text: string }
  /** A measurement that a test reported with `t.diagnostic`; follows the line of its test. */
  | Figure
  | ReportedTest
  /** Only in a batch: the lines of a file are between these two. */
  | { readonly kind: "file"; readonly file: string; readonly atMs: number }
  | { readonly kind: "end of file"; readonly file: string; readonly isPassed: boolean; readonly atMs: number };

export interface ReportedTest {
  readonly kind: "test";
  readonly name: string;
  /** 0 for top-level tests and suites. */
  readonly nesting: number;
  /** Location as `file:line` */
  readonly where: string;
  readonly isSuite: boolean;
  readonly outcome: "passed" | "failed" | "skipped" | "todo";
  /** Reason of a skipped or to-do test; empty when none was given. */
  readonly reason?: string;
  /** Node's failure type: `testCodeFailure`, `hookFailed`, `subtestsFailed`, `cancelledByParent`, `testTimeoutFailure`, … */
  readonly failureType?: string;
  readonly error?: string;
}

export interface Failed {
  readonly name: string;
  readonly where: string;
  readonly error: string;
}

export interface Unrun {
  readonly name: string;
  readonly reason: string;
}

interface Figure {
  readonly kind: "figure";
  /** Name of the test. */
  readonly name: string;
  readonly text: string;
}

/** Result of one test or suite. */
type Outcome = Pick<ReportedTest, "name" | "where" | "outcome">;

/** Test results of a file. */
export interface FileResult {
  readonly passed: number;
  readonly failed: readonly Failed[];
  readonly skipped: readonly Unrun[];
  readonly todo: readonly Unrun[];
  readonly figures: readonly Figure[];
  /** All tests and suites. */
  readonly outcomes: readonly Outcome[];
}

/** How a test process ended. */
export interface Ending {
  /** Exit code; undefined when it was killed by a signal. */
  readonly code: number | undefined;
  readonly signal?: string | undefined;
  /** Why the runner stopped it; undefined when it exited by itself. */
  readonly stopped?: string | undefined;
}

/**
 * Pure: the result of a file from the lines of its process and its exit status. A process without a summary has failed,
 * whatever its exit code: the test called `process.exit`, the file could not be loaded or has no tests.
 */
export function resultOf(file: string, lines: readonly Reported[], ending: Ending): FileResult {
  const tests = lines.filter((line) => line.kind === "test");
  const notes = lines.flatMap((line) => (line.kind === "note" ? [line.text] : []));
  const failed = tests.filter((each) => each.outcome === "failed" && (!each.isSuite || isOwnFailure(each))).map(failureOf);
  const ofFile = failureOfFile(lines, ending, failed.length, notes);
  if (ofFile !== undefined) failed.push({ name: file, where: file, error: ofFile });
  const unrun = (outcome: "skipped" | "todo"): Unrun[] =>
    tests.flatMap((each) => (each.outcome === outcome ? [{ name: each.name, reason: each.reason || "no reason given" }] : []));
  return {
    passed: tests.filter((each) => each.outcome === "passed" && !each.isSuite).length,
    failed,
    skipped: unrun("skipped"),
    todo: unrun("todo"),
    figures: lines.filter((line) => line.kind === "figure"),
    outcomes: tests.map(({ name, where, outcome }) => ({ name, where, outcome })),
  };
}

/** Suites failing because of their tests are not reported separately; suites whose hook or body failed are. */
const isOwnFailure = (suite: ReportedTest): boolean =>
  suite.failureType !== "subtestsFailed" && suite.failureType !== "cancelledByParent";

const failureOf = ({ name, where, failureType, error = "" }: ReportedTest): Failed => ({
  name,
  where,
  error: failureType === "cancelledByParent" ? "not run to its end: what it is part of failed or ended first" : error,
});

function failureOfFile(
  lines: readonly Reported[],
  ending: Ending,
  failures: number,
  notes: readonly string[],
): string | undefined {
  if (ending.stopped !== undefined) return ending.stopped;
  const how = ending.code === undefined ? `was ended by ${ending.signal}` : `ended with exit code ${ending.code}`;
  if (!lines.some((line) => line.kind === "summary")) {
    const running = underWay(lines);
    if (running.length > 0) return `the process ${how} during ${running.map((name) => JSON.stringify(name)).join(", ")}`;
    if (ending.code === 0) return "the process ended without running a test: the file has none, or it called process.exit";
    return `the process ${how} before its tests ran`;
  }
  if (ending.code === 0 || failures > 0) return undefined;
  return [`the process ${how} though no test failed`, ...notes].join("\n");
}

/** Names of tests that have started and not ended; in a batch the file whose hooks run when there is none. */
export function underWay(lines: readonly Reported[]): string[] {
  const ended = new Set(lines.flatMap((line) => (line.kind === "ended" ? [line.id] : [])));
  const running = lines.flatMap((line) => (line.kind === "begun" && !ended.has(line.id) ? [line.name] : []));
  const last = lines.findLast((line) => line.kind === "file" || line.kind === "end of file");
  return running.length === 0 && last?.kind === "file" ? [last.file] : running;
}
