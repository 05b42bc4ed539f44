import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";

/** A line for each file, every failure in full, and the counts of single tests into the file `COX_TEST_COUNTS` names. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const counts = { passed: 0, failed: 0 };
  for await (const event of events) {
    if (event.type === "test:stderr" || event.type === "test:stdout") continue;
    if (event.type === "test:summary" && event.data.file !== undefined) {
      // By the file that ran: where a table of cases makes tests, they stand in another one.
      const { file, success, duration_ms, counts: own } = event.data;
      const failed = own.tests - own.passed - own.skipped - own.todo;
      yield `${success ? "ok  " : "FAIL"} ${relative(process.cwd(), file)} (${own.passed} passed, ${failed} failed, ${(duration_ms / 1000).toFixed(1)} s)\n`;
    }
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    if (event.data.details.type === "suite" || isFile(event.data)) continue;
    const passed = event.type === "test:pass";
    counts[passed ? "passed" : "failed"]++;
    if (event.type === "test:fail")
      yield `FAIL ${event.data.file ?? ""}: ${event.data.name}\n${reason(event.data.details.error)}\n`;
  }
  const target = process.env["COX_TEST_COUNTS"];
  if (target !== undefined) writeFileSync(target, JSON.stringify(counts));
}

/** A file that cannot even be loaded shows as a failed test with the file's name; one that passes is no test. */
function isFile(data: { name: string; file?: string | undefined; nesting: number; details: object }): boolean {
  return !("error" in data.details) && data.nesting === 0 && data.file?.endsWith(data.name) === true;
}

function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return inspect(cause, { depth: 4 }).replaceAll(/^/gm, "    ");
}
