import assert from "node:assert/strict";
import { test } from "node:test";
import { closedLoop, openLoop, percentile } from "./load.ts";
import { cpuSecondsOf } from "./process-usage.ts";

for (const { values, share, want } of [
  { values: [3, 1, 2], share: 0.5, want: 2 },
  { values: [3, 1, 2], share: 0.99, want: 3 },
  { values: [7], share: 0.5, want: 7 },
  { values: [], share: 0.5, want: Number.NaN },
]) {
  test(`the ${share} percentile of [${values}] is ${want}`, () => assert.equal(percentile(values, share), want));
}

test("runs as many operations at once as requested, and no more than allowed in all", async () => {
  let running = 0;
  let most = 0;
  const samples = await closedLoop(
    async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return { totalMs: 1 };
    },
    { concurrency: 4, seconds: 60, maxOperations: 100 },
  );
  assert.deepEqual([most, samples.operations], [4, 100]);
});

test("ends with the error of an operation", async () => {
  const failing = async (sequence: number) => {
    if (sequence === 3) throw new Error("refused");
    return { totalMs: 1 };
  };
  await assert.rejects(closedLoop(failing, { concurrency: 2, seconds: 60, maxOperations: 100 }), /refused/);
});

test("starts operations at a fixed rate, answered or not, and waits for their answers", async () => {
  let answered = 0;
  const operation = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    answered++;
  };
  const started = await openLoop(operation, { perSecond: 1_000, seconds: 0.1 });
  assert.deepEqual([started, answered], [100, 100]);
});

test("starts operations in groups at the same rate, and the last group although it is smaller", async () => {
  const began: number[] = [];
  const start = performance.now();
  const started = await openLoop(async () => void began.push(performance.now()), { perSecond: 200, seconds: 0.25, atOnce: 20 });
  assert.deepEqual([started, began.length], [50, 50]);
  for (const [first, dueMs] of [
    [0, 100],
    [20, 200],
    [40, 250],
  ] as const) {
    assert.ok(began[first]! - start >= dueMs - 1, `${began[first]! - start} ms is before ${dueMs}`);
  }
});

test("ends when operations at a fixed rate fail, or too many are not answered", async () => {
  const failing = async (sequence: number): Promise<void> => {
    if (sequence === 3) throw new Error("refused");
  };
  await assert.rejects(openLoop(failing, { perSecond: 1_000, seconds: 60 }), /refused/);
  const slow = () => new Promise((resolve) => setTimeout(resolve, 100));
  const tooFast = { perSecond: 1_000, seconds: 60, mostUnderWay: 10 };
  await assert.rejects(openLoop(slow, tooFast), /1000 operations a second are too many/);
});

test("reads the CPU time of a process whose name contains blanks and parentheses", () => {
  const stat = "12 (a ) b 7) S 1 12 12 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 11 0 300 1000 200";
  assert.equal(cpuSecondsOf(stat), 3);
});
