import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonOfReport, type Outcome, summaryOf, textOfReport } from "./report.ts";

const outcome = (id: string, result: Outcome["result"]): Outcome => ({
  mutant: { id, kind: "k", file: "a.ts", line: 1, edit: { start: 0, end: 0, text: "" } },
  diff: `diff of ${id}`,
  result,
  ...(result === "survived" || result === "no tests" ? {} : { by: "a.test.ts" }),
  tests: 1,
  seconds: 2,
});
const outcomes = [
  outcome("m1", "caught"),
  outcome("m2", "timed out"),
  outcome("m3", "survived"),
  outcome("m4", "no tests"),
  outcome("m5", "caught"),
  outcome("m6", "caught"),
];

test("a fault whose test timed out is caught, and counted apart from those whose test failed", () => {
  assert.deepEqual(summaryOf(outcomes), { tried: 6, caught: 4, timedOut: 1, percent: 66.6 });
  assert.equal(JSON.parse(jsonOfReport(1, ["a"], outcomes)).timedOut, 1);
});

test("the report shows the survivors with their diffs, and names what timed out", () => {
  const text = textOfReport(outcomes);
  assert.deepEqual(text.match(/diff of \w+/g), ["diff of m3", "diff of m4"]);
  assert.match(text, /^TIMED OUT m2 k a\.ts:1 in a\.test\.ts \(1 test file, 2\.0 s\)$/m);
  assert.match(text, /^4 of 6 faults caught \(66\.6 %\), 1 of them by a timeout, 2 survived$/m);
});
