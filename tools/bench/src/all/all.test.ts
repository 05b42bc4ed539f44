import assert from "node:assert/strict";
import { test } from "node:test";
import type { RoundResult } from "../daemons/scenario.ts";
import { usageOf } from "../usage.ts";
import { holds, markdownOf } from "./markdown.ts";
import { argsOf, steps } from "./steps.ts";

const round = (more: Partial<RoundResult> = {}): RoundResult => ({
  ...{ operations: 10, seconds: 1, cpuSeconds: 1, serverCpuSeconds: 1, apiCalls: 20, residentMb: 100, proportionalMb: 90 },
  ...more,
});

test("all benchmarks together take at most 45 minutes, and no two write the same files", () => {
  assert.ok(steps.reduce((sum, { mostMinutes }) => sum + mostMinutes, 0) <= 45);
  assert.equal(new Set(steps.map(({ name }) => name)).size, steps.length);
});

for (const { name, isQuick, want } of [
  {
    name: "a normal run has the step's sizes",
    isQuick: false,
    want: ["controllers", "--only", "a", "--only", "b", "--jobs", "5"],
  },
  { name: "a quick run has its rows only", isQuick: true, want: ["controllers", "--quick", "--only", "a", "--only", "b"] },
]) {
  test(name, () => {
    const step = { name: "x", title: "X", args: ["controllers", "--only", "a", "--only", "b", "--jobs", "5"], mostMinutes: 1 };
    const args = argsOf(step, { peer: "/bin", out: "out", isQuick });
    assert.deepEqual(args, [...want, "--json", "--peer-bin", "/bin", "--svg", "out/x.svg"]);
  });
}

const within = { name: "row", limits: { cpu: 0.5 }, ours: round({ cpuSeconds: 0.5 }), peer: round() };
const above = { ...within, ours: round({ cpuSeconds: 0.51 }) };
for (const { name, results, want } of [
  { name: "holds at the limit", results: [{ title: "a", reports: [within] }], want: true },
  {
    name: "fails above it, in the second step too",
    results: [
      { title: "a", reports: [within] },
      { title: "b", reports: [above] },
    ],
    want: false,
  },
  { name: "fails when a step did not end", results: [{ title: "a", reports: [within], failure: "late" }], want: false },
]) {
  test(name, () => assert.equal(holds(results), want));
}

test("shows both figures, their ratio and the verdict; cells without a measurement are empty", () => {
  const row = { ...above, ours: round({ cpuSeconds: 0.51, apiCalls: 0 }), peer: round({ apiCalls: 0 }) };
  const text = markdownOf([{ title: "Kubelet", machine: "2 cores", reports: [row], failure: "not done after 1 minutes" }]);
  assert.match(text, /^## Kubelet\n\n2 cores\n\n\| row \|/);
  assert.match(
    text,
    /\| row \| 1\.00 \/ 1\.00 \(1\.00\) \| 0\.51 \/ 1\.00 \(0\.51, limit 0\.5: NOT OK\) \| {2}\| 100 \/ 100 \(1\.00\) \|/,
  );
  assert.match(text, /Not complete: not done after 1 minutes/);
});

test("benchmarks without a table of flags have their own help", () => {
  for (const verb of ["api", "start", "reasons", "codec", "ports", "floor"])
    assert.ok(usageOf(verb)?.startsWith(`usage: ./cox bench ${verb}`), verb);
  assert.equal(usageOf("toString"), undefined);
});

test("a cell has our figure alone without the other's, a verdict at the limit, and a zero of ours beside the other's", () => {
  const cellsOf = (report: object): string[] =>
    markdownOf([{ title: "T", reports: [{ name: "row", limits: {}, ours: round(), ...report }] }])
      .split("\n")
      .filter((line) => line.startsWith("| row | ") && !line.includes("CPU s"))
      .flatMap((line) => line.split("|").slice(2, -1))
      .map((cell) => cell.trim());
  assert.deepEqual(cellsOf({}), ["1.00", "1.00", "20", "100"]);
  assert.deepEqual(cellsOf({ ours: round({ apiCalls: 0 }), peer: round() }), [
    "1.00 / 1.00 (1.00)",
    "1.00 / 1.00 (1.00)",
    "0 / 20 (0.00)",
    "100 / 100 (1.00)",
  ]);
  assert.deepEqual(cellsOf({ limits: { cpu: 1 }, peer: round({ apiCalls: 0 }) }).slice(1, 3), [
    "1.00 / 1.00 (1.00, limit 1: ok)",
    "20 / 0 (-)",
  ]);
  assert.equal(markdownOf([{ title: "T", reports: [], failure: "late" }]), "## T\n\nNot complete: late\n");
});
