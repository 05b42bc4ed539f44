import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { keepIdleMemorySmall } from "./idle-memory.ts";

const mib = 1024 * 1024;

for (const { name, states, want } of [
  {
    name: "an idle process collects after its start and every two minutes",
    states: [
      [0.01, 20],
      [0.02, 21],
      [0, 20],
    ],
    want: [0, 1, 2],
  },
  {
    name: "a busy one does not, and does within 15 s when it has become idle",
    states: [
      [0.5, 20],
      [0.19, 20],
      [0.9, 20],
    ],
    want: [1],
  },
  {
    name: "a fifth of the time and 60 MiB are idle and small, more is not",
    states: [
      [0.2, 60],
      [0.201, 20],
      [0, 60.001],
    ],
    want: [0],
  },
  {
    name: "a large heap is left to V8, until it has become small",
    states: [
      [0, 61],
      [0, 300],
      [0, 59],
    ],
    want: [2],
  },
] as const) {
  test(name, async () => {
    const clock = newFakeClock();
    const ending = new AbortController();
    let looks = 0;
    const collected: number[] = [];
    const done = keepIdleMemorySmall({
      ...{ clock, signal: ending.signal },
      collect: () => void collected.push(looks - 1),
      state() {
        const [utilization, size] = states[looks++] ?? [1, 0];
        return { utilization, heapBytes: size * mib };
      },
    });
    await clock.advance(14_999);
    assert.equal(looks, 0);
    await clock.advance(1);
    for (const [i] of states.entries()) {
      assert.equal(looks, i + 1);
      const waitMs = want.some((collection) => collection === i) ? 120_000 : 15_000;
      await clock.advance(waitMs - 1);
      assert.equal(looks, i + 1);
      await clock.advance(1);
    }
    assert.deepEqual(collected, want);
    ending.abort();
    await done;
  });
}

test("nothing is collected when the process ends", async () => {
  const clock = newFakeClock();
  const ending = new AbortController();
  const state = () => ({ utilization: 0, heapBytes: 0 });
  const done = keepIdleMemorySmall({ clock, signal: ending.signal, collect: assert.fail, state });
  ending.abort();
  await done;
});
