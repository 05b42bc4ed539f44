import { appendFileSync } from "node:fs";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";
import type { Reported, ReportedTest } from "./reported.ts";

/** Files run one after the other in this process, each within a test that has its name; see batches/process.ts. */
const isBatch = process.env["COX_TEST_BATCH"] !== undefined;

/**
 * The test reporter inside a test process: writes results as JSON lines to the file named by `COX_TEST_EVENTS`. The runner
 * evaluates these lines and the exit code.
 */
export default async function* writeEvents(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const target = process.env["COX_TEST_EVENTS"]!;
  let last: ReportedTest | undefined;
  for await (const event of events) {
    const line = (isBatch && ofBatch(event)) || reported(event, last);
    if (line?.kind === "test") last = line;
    if (line !== undefined) appendFileSync(target, `${JSON.stringify(line)}\n`);
  }
  yield "";
}

/** Beginning or end of a file of a batch: these are the tests outside of all others. */
function ofBatch(event: TestEvent): Reported | undefined {
  if (event.type === "test:dequeue" && event.data.nesting === 0)
    return { kind: "file", file: event.data.name, atMs: performance.now() };
  if ((event.type === "test:pass" || event.type === "test:fail") && event.data.nesting === 0)
    return { kind: "end of file", file: event.data.name, isPassed: event.type === "test:pass", atMs: performance.now() };
  return undefined;
}

/** @param last the test reported before; its diagnostics follow it */
function reported(event: TestEvent, last: ReportedTest | undefined): Reported | undefined {
  // Node gives a test within a suite the type of the suite here.
  if (event.type === "test:dequeue" && (isBatch || event.data.type === "test"))
    return { kind: "begun", id: event.data.testId, name: event.data.name };
  if (event.type === "test:complete") return { kind: "ended", id: event.data.testId };
  if (event.type === "test:summary") return { kind: "summary" };
  // Node reports errors thrown after their test has ended as a diagnostic.
  if (event.type === "test:diagnostic" && event.data.message.startsWith("Error: "))
    return { kind: "note", text: event.data.message };
  // Other diagnostics without a test's location are Node's totals.
  if (event.type === "test:diagnostic" && last !== undefined && whereOf(event.data) === last.where)
    return { kind: "figure", name: last.name, text: event.data.message };
  if (event.type !== "test:pass" && event.type !== "test:fail") return undefined;
  const { name, skip, todo } = event.data;
  const nesting = isBatch ? event.data.nesting - 1 : event.data.nesting;
  const where = whereOf(event.data);
  const isSuite = event.data.details.type === "suite";
  const base = { kind: "test", name, nesting, where, isSuite } as const;
  if (todo !== undefined && todo !== false) return { ...base, outcome: "todo", reason: textOf(todo) };
  if (skip !== undefined && skip !== false) return { ...base, outcome: "skipped", reason: textOf(skip) };
  if (event.type === "test:pass") return { ...base, outcome: "passed" };
  const { error } = event.data.details as { error: Error & { failureType?: string } }; // cast: a failed test's event has an error of the runner
  return { ...base, outcome: "failed", failureType: error.failureType ?? "", error: explain(error) };
}

const whereOf = ({ file = "", line }: { readonly file?: string; readonly line?: number }): string =>
  line === undefined ? file : `${file}:${line}`;

const textOf = (reason: string | boolean): string => (typeof reason === "string" ? reason : "");

/** The error thrown by the test, unwrapped from Node's error; errors of hooks are prefixed with the hook's name. */
function explain(error: Error & { failureType?: string }): string {
  const cause = error.cause ?? error;
  const text = cause instanceof Error || typeof cause !== "string" ? inspect(cause, { depth: 4 }) : cause;
  return error.failureType === "hookFailed" && cause !== error ? `${error.message}: ${text}` : text;
}
