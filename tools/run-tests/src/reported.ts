/** A line that a test's process writes of itself; see event-writer.ts. */
export type Reported =
  | { readonly kind: "begun"; readonly id: number | undefined; readonly name: string }
  | { readonly kind: "ended"; readonly id: number | undefined }
  /** All tests of the file have ended. */
  | { readonly kind: "summary" }
  | { readonly kind: "note"; readonly text: string }
  | ReportedTest;

export interface ReportedTest {
  readonly kind: "test";
  readonly name: string;
  /** 0 for the tests and suites at the top. */
  readonly nesting: number;
  /** `file:line` */
  readonly where: string;
  readonly isSuite: boolean;
  readonly outcome: "passed" | "failed" | "skipped" | "todo";
  /** Of what was skipped or is to do; empty when none was given. */
  readonly reason?: string;
  /** Node's: `testCodeFailure`, `hookFailed`, `subtestsFailed`, `cancelledByParent`, `testTimeoutFailure`, … */
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

/** What a file's tests have come to. */
export interface FileResult {
  readonly passed: number;
  readonly failed: readonly Failed[];
  readonly skipped: readonly Unrun[];
  readonly todo: readonly Unrun[];
}

/** How a test's process ended. */
export interface Ending {
  /** undefined: it was ended by a signal. */
  readonly code: number | undefined;
  readonly signal?: string | undefined;
  /** Why the runner ended it; undefined: it ended by itself. */
  readonly stopped?: string | undefined;
}

/**
 * Pure: the result of a file from what its process wrote and how it ended. A process that ends without a summary has failed,
 * whatever its exit code: `process.exit` in a test, a file that cannot be loaded, or one without tests.
 */
export function judge(file: string, lines: readonly Reported[], ending: Ending): FileResult {
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
  };
}

/** A suite whose tests failed is no failure besides theirs; one whose hook or body failed is. */
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

/** Names of the tests that have begun and not ended. */
export function underWay(lines: readonly Reported[]): string[] {
  const ended = new Set(lines.flatMap((line) => (line.kind === "ended" ? [line.id] : [])));
  return lines.flatMap((line) => (line.kind === "begun" && !ended.has(line.id) ? [line.name] : []));
}
