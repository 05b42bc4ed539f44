import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonOfReport, lineOf, type Outcome, summaryOf, textOfReport } from "./report.ts";

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

test("the report shows survivors with their diffs, and how many were caught", () => {
  const mutant = { id: "1", kind: "boundary", file: "a.ts", line: 3, edit: { start: 0, end: 0, text: "" } };
  const outcomes: Outcome[] = [
    { mutant, diff: "-a\n+b", result: "survived", tests: 2, seconds: 1 },
    { mutant, diff: "-a\n+c", result: "caught", by: "a.test.ts", tests: 1, seconds: 0.5 },
    { mutant, diff: "-a\n+d", result: "no tests", tests: 0, seconds: 0 },
  ];
  const text = textOfReport(outcomes);
  assert.match(text, /^SURVIVED {2}1 boundary a\.ts:3 \(2 test files, 1\.0 s\)\n-a\n\+b$/m);
  assert.match(text, /^NO TESTS/m);
  assert.match(text, /\n1 of 3 faults caught \(33\.3 %\), 0 of them by a timeout, 2 survived$/);
  assert.doesNotMatch(text, /\+c/);
  assert.equal(lineOf(outcomes[1] as Outcome), "caught    1 boundary a.ts:3 by a.test.ts (1 test file, 0.5 s)");
  assert.partialDeepStrictEqual(JSON.parse(jsonOfReport(7, ["a"], outcomes)), {
    seed: 7,
    tried: 3,
    caught: 1,
    mutants: [{ result: "survived" }, {}, {}],
  });
});

test("the report says of a hand-written fault what breaks", () => {
  const found = outcome("m7", "survived");
  const written: Outcome = { ...found, mutant: { ...found.mutant, why: "the second is lost" } };
  assert.equal(lineOf(written), "SURVIVED  m7 k a.ts:1, the second is lost (1 test file, 2.0 s)");
  assert.equal(JSON.parse(jsonOfReport(1, [], [written])).mutants[0].why, "the second is lost");
});

test("the report names the faults whose test timed out", () => {
  const text = textOfReport(outcomes);
  assert.match(text, /^TIMED OUT m2 k a\.ts:1 in a\.test\.ts \(1 test file, 2\.0 s\)$/m);
  assert.match(text, /^4 of 6 faults caught \(66\.6 %\), 1 of them by a timeout, 2 survived$/m);
});
