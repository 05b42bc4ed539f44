import assert from "node:assert/strict";
import { test } from "node:test";
import { longReport } from "./long-report.ts";
import { addFile, newTotals } from "./report.ts";

const aRun = { passed: 3, failed: [], skipped: [], todo: [], figures: [], outcomes: [], durationMs: 1000, output: "" };

test("the page of a long run lists stages, figures, slow files, failures and skipped tests, and only counts the others", () => {
  const runs = [
    { ...aRun, file: "d.test.ts", figures: [{ kind: "figure", name: "load", text: "p99 3 ms | 4 ms\n5 ms" } as const] },
    { ...aRun, file: "c.test.ts", durationMs: 60_000 },
    { ...aRun, file: "b.test.ts", failed: [{ name: "x", where: "b.test.ts:1", error: "wrong" }] },
    { ...aRun, file: "e.test.ts", durationMs: 59_999 },
    { ...aRun, file: "a.test.ts", todo: [{ name: "z", reason: "later" }], skipped: [{ name: "y", reason: "no docker" }] },
  ];
  const totals = newTotals();
  totals.stages.push({ name: "unit", durationMs: 7_325_400, busyMs: 0 });
  for (const run of runs) addFile(totals, run);
  const machine = { cpus: 2, memoryGb: 24, commit: "abc", begun: "2026-01-02T03:04:05Z", load: [1, 0.5, 0.25] };
  assert.equal(
    longReport(totals, runs, machine, 7_400_000, { hours: 8, plan: [] }),
    `# The last long run

2026-01-02T03:04:05Z, commit abc, 2 CPUs, 24 GB, load at the end 1.0 0.5 0.3.

**15 passed, 1 failed, 2 skipped** in 123 min 20 s.

| form | outcome | budget | time |
|---|---|---|---|

| stage | time |
|---|---|
| unit | 122 min 5 s |

| file | result | time | figures |
|---|---|---|---|
| b.test.ts | 3 passed, 1 failed | 1.0 s | failed: x |
| c.test.ts | 3 passed | 60.0 s |  |
| d.test.ts | 3 passed | 1.0 s | load: p99 3 ms \\| 4 ms 5 ms |

- skipped: a.test.ts: y: no docker
`,
  );
});

test("a form that failed, was skipped, stopped, or is not in a shorter run is shown as such", () => {
  const form = { minutes: 7.5, isLong: true };
  const plan = [
    { ...form, name: "whole", files: ["a.test.ts", "b.test.ts"] },
    { ...form, name: "failing", files: ["c.test.ts"] },
    { ...form, name: "skipped", files: ["d.test.ts"] },
    { ...form, name: "halved", files: ["a.test.ts", "missing.test.ts"] },
    { ...form, name: "absent", files: ["missing.test.ts"] },
    { ...form, name: "short", files: ["b.test.ts"], isLong: false },
    { ...form, name: "mutation", files: [] },
  ];
  const runs = [
    { ...aRun, file: "a.test.ts" },
    { ...aRun, file: "b.test.ts" },
    { ...aRun, file: "c.test.ts", failed: [{ name: "x", where: "c.test.ts:1", error: "wrong" }] },
    { ...aRun, file: "d.test.ts", passed: 0, skipped: [{ name: "y", reason: "no docker" }] },
    { ...aRun, file: "mutation", passed: 1 },
  ];
  const machine = { cpus: 2, memoryGb: 24, commit: "abc", begun: "2026-01-02T03:04:05Z", load: [] };
  const page = longReport(newTotals(), runs, machine, 1000, { hours: 2, plan });
  assert.match(page, /A run of 2 hours instead of 8: timed forms had 25 % of their time/);
  assert.deepEqual(page.match(/^\| .* \| 7\.5 min \| .*$/gm), [
    "| whole | 6 passed | 7.5 min | 2.0 s |",
    "| failing | **1 failed**, 3 passed | 7.5 min | 1.0 s |",
    "| skipped | 1 skipped (no docker) | 7.5 min | 1.0 s |",
    "| halved | 3 passed, not run: missing.test.ts | 7.5 min | 1.0 s |",
    "| absent | not run: missing.test.ts | 7.5 min | 0.0 s |",
    "| short | not in this run: only the short form | 7.5 min | 1.0 s |",
    "| mutation | 1 passed | 7.5 min | 1.0 s |",
  ]);
});
