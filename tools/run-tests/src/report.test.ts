import assert from "node:assert/strict";
import { test } from "node:test";
import { addFile, addRepeated, addSeparated, closingReport, exitCode, fileReport, newTotals } from "./report.ts";

const aRun = {
  file: "a.test.ts",
  passed: 0,
  failed: [],
  skipped: [],
  todo: [],
  figures: [],
  outcomes: [],
  durationMs: 1,
  output: "",
};
const aFailure = { name: "x", where: "a.test.ts:1", error: "wrong:\n  1 !== 2" };

test("the closing line counts to-do tests as skipped; reasons, stages and the time of all stand above it", () => {
  const totals = newTotals();
  totals.stages.push({ name: "unit", durationMs: 61_240, busyMs: 110_232 }, { name: "end to end", durationMs: 0, busyMs: 0 });
  addFile(totals, {
    ...aRun,
    passed: 2,
    skipped: [{ name: "x", reason: "needs root" }],
    todo: [{ name: "y", reason: "not written" }],
  });
  addFile(totals, { ...aRun, file: "b.test.ts", failed: [aFailure], skipped: [{ name: "z", reason: "needs root" }] });
  assert.equal(
    closingReport(totals, { durationMs: 61_500, busyMs: 123_000 }),
    `2 skipped:
  needs root:
    a.test.ts: x
    b.test.ts: z
1 todo:
  not written:
    a.test.ts: y
stages, and the machine's cores that were busy meanwhile:
     61.2 s   1.8  unit
      0.0 s   0.0  end to end
     61.5 s   2.0  together
failed:
  b.test.ts: x
    wrong: 1 !== 2
2 passed, 1 failed, 3 skipped
`,
  );
});

test("a repeated file counts once; tests that failed only at first are flaky, others that failed have failed", () => {
  const totals = newTotals();
  const failure = (name: string, error: string) => ({ ...aFailure, name, error });
  addFile(totals, { ...aRun, passed: 3 });
  addRepeated(
    totals,
    { ...aRun, file: "b.test.ts", passed: 1, failed: [failure("once", "late"), failure("twice", "first")] },
    { ...aRun, file: "b.test.ts", passed: 1, failed: [failure("twice", "second"), failure("anew", "odd")] },
  );
  assert.equal(
    closingReport(totals, { durationMs: 0, busyMs: 0 }).replace(/^stages.*\n.*together\n/, ""),
    `flaky, passed when repeated:
  b.test.ts: once
    late
failed:
  b.test.ts: twice
    second
  b.test.ts: anew
    odd
4 passed, 2 failed, 0 skipped, 1 flaky
`,
  );
  assert.equal(exitCode(totals), 1);
  const passed = newTotals();
  addRepeated(passed, { ...aRun, failed: [aFailure] }, { ...aRun, passed: 1 });
  assert.equal(exitCode(passed), 0);
  const crashedTwice = newTotals();
  addRepeated(crashedTwice, { ...aRun, failed: [aFailure] }, { ...aRun, failed: [aFailure] });
  assert.deepEqual([exitCode(crashedTwice), crashedTwice.flaky], [1, []]);
});

test("files that did not pass in one process are listed with the reason, and are no failure", () => {
  const totals = newTotals();
  addSeparated(totals, ["a.test.ts", "b.test.ts"], "b.test.ts fails: x: Error:\n  in use");
  addFile(totals, { ...aRun, passed: 1 });
  assert.equal(exitCode(totals), 0);
  assert.match(
    closingReport(totals, { durationMs: 0, busyMs: 0 }),
    /\nrun again file by file, because they did not pass in one process:\n {2}2 files from a\.test\.ts: b\.test\.ts fails: x: Error: in use\n1 passed/,
  );
});

for (const { name, passed, failed, skipped, want } of [
  { name: "all passed", passed: 1, failed: 0, skipped: 0, want: 0 },
  { name: "something was skipped too", passed: 1, failed: 0, skipped: 3, want: 0 },
  { name: "something failed", passed: 5, failed: 1, skipped: 0, want: 1 },
  { name: "nothing ran", passed: 0, failed: 0, skipped: 0, want: 1 },
  { name: "everything was skipped", passed: 0, failed: 0, skipped: 2, want: 1 },
])
  test(`exit code ${want} when ${name}`, () => {
    const unrun = Array.from({ length: skipped }, () => ({ name: "x", reason: "y" }));
    const totals = newTotals();
    addFile(totals, { ...aRun, passed, failed: Array.from({ length: failed }, () => aFailure), skipped: unrun });
    assert.equal(exitCode(totals), want);
    const line = new RegExp(`\\n?${passed} passed, ${failed} failed, ${skipped} skipped\\n$`);
    assert.match(closingReport(totals, { durationMs: 1, busyMs: 1 }), line);
  });

test("a failure of the same name at another place is another", () => {
  const totals = newTotals();
  addRepeated(totals, { ...aRun, failed: [aFailure] }, { ...aRun, failed: [{ ...aFailure, where: "a.test.ts:2" }] });
  assert.deepEqual([totals.flaky.length, totals.failures.length], [1, 1]);
});

test("a file has one line, and where it failed its failures and what it printed, of that the last hundred lines", () => {
  const run = { ...aRun, passed: 2, durationMs: 1_250, output: "printed\n" };
  assert.equal(fileReport(run), "ok   a.test.ts (2 passed, 0 failed, 1.3 s)\n");
  const unrun = [{ name: "x", reason: "y" }];
  assert.equal(fileReport({ ...run, skipped: unrun, todo: unrun }), "ok   a.test.ts (2 passed, 0 failed, 2 skipped, 1.3 s)\n");
  const failed = { ...run, failed: [aFailure] };
  const failure = "FAIL a.test.ts (2 passed, 1 failed, 1.3 s)\n  FAIL x (a.test.ts:1)\n    wrong:\n      1 !== 2\n";
  assert.equal(fileReport(failed), `${failure}  what it printed:\n    | printed\n`);
  assert.equal(fileReport({ ...failed, output: " \n" }), failure);
  const lines = (from: number, to: number, by = ""): string =>
    Array.from({ length: to - from + 1 }, (_, index) => `${by}line ${from + index}\n`).join("");
  assert.equal(fileReport({ ...failed, output: lines(1, 100) }), `${failure}  what it printed:\n${lines(1, 100, "    | ")}`);
  assert.equal(
    fileReport({ ...failed, output: lines(1, 101) }),
    `${failure}  the last 100 lines of what it printed:\n${lines(2, 101, "    | ")}`,
  );
});

test("a failure's error is cut after four hundred characters", () => {
  const totals = newTotals();
  addFile(totals, { ...aRun, failed: [{ ...aFailure, error: "e".repeat(401) }] });
  assert.equal(totals.failures[0], `a.test.ts: x\n    ${"e".repeat(400)}`);
});
