import assert from "node:assert/strict";
import { test } from "node:test";
import { newLoopSlice } from "./loop-slice.ts";
import { atOnce, inTurns, type Steps } from "./steps.ts";

/** @param took simulated duration of each step */
function work(took: readonly number[]): { steps: Steps<string>; now: () => number; done: string[] } {
  let time = 0;
  const done: string[] = [];
  function* steps(): Steps<string> {
    for (const ms of took) {
      time += ms;
      done.push(`${ms}`);
      yield;
    }
    return "result";
  }
  return { steps: steps(), now: () => time, done };
}

test("short work is done at once", () => {
  const { steps, now } = work([2, 2]);
  assert.equal(inTurns(steps, newLoopSlice(now)), "result");
  assert.equal(atOnce(work([100, 100]).steps), "result");
});

test("others have their turn whenever the work has had its share of one", async () => {
  const { steps, now, done } = work([30, 1, 1, 4, 30]);
  const result = inTurns(steps, newLoopSlice(now));
  const turn = (): void => {
    done.push("turn");
    if (done.length < 8) setImmediate(turn);
  };
  setImmediate(turn);
  assert.equal(await result, "result");
  assert.deepEqual(done.slice(0, 6), ["30", "1", "1", "4", "turn", "30"]);
});

test("what a step throws arrives, whenever it is thrown", async () => {
  function* failing(steps: number): Steps<never> {
    for (let i = 0; i < steps; i++) yield;
    throw new Error("no");
  }
  let time = 0;
  const now = (): number => (time += 6);
  assert.throws(() => inTurns(failing(0), newLoopSlice(now)), /no/);
  await assert.rejects(async () => inTurns(failing(5), newLoopSlice(now)), /no/);
});
