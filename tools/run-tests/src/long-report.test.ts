import assert from "node:assert/strict";
import { test } from "node:test";
import { longReport } from "./long-report.ts";
import { addFile, newTotals } from "./report.ts";

const aRun = { passed: 3, failed: [], skipped: [], todo: [], figures: [], durationMs: 1000, output: "" };

test("the page of a long run lists stages, figures, slow files, failures and skipped tests, and only counts the others", () => {
  const runs = [
    { ...aRun, file: "d.test.ts", figures: [{ kind: "figure", name: "load", text: "p99 3 ms | 4 ms\n5 ms" } as const] },
    { ...aRun, file: "c.test.ts", durationMs: 61_000 },
    { ...aRun, file: "b.test.ts", failed: [{ name: "x", where: "b.test.ts:1", error: "wrong" }] },
    { ...aRun, file: "a.test.ts", skipped: [{ name: "y", reason: "no docker" }] },
  ];
  const totals = newTotals();
  totals.stages.push({ name: "unit", durationMs: 7_325_400 });
  for (const run of runs) addFile(totals, run);
  const machine = { cpus: 2, memoryGb: 24, commit: "abc", begun: "2026-01-02T03:04:05Z", load: [1, 0.5, 0.25] };
  assert.equal(
    longReport(totals, runs, machine, 7_400_000),
    `# The last long run

2026-01-02T03:04:05Z, commit abc, 2 CPUs, 24 GB, load at the end 1.0 0.5 0.3.
**12 passed, 1 failed, 1 skipped** in 123 min 20 s.

| stage | time |
|---|---|
| unit | 122 min 5 s |

| file | result | time | figures |
|---|---|---|---|
| b.test.ts | 3 passed, 1 failed | 1.0 s | failed: x |
| c.test.ts | 3 passed | 61.0 s |  |
| d.test.ts | 3 passed | 1.0 s | load: p99 3 ms \\| 4 ms 5 ms |

- skipped: a.test.ts: y: no docker
`,
  );
});
