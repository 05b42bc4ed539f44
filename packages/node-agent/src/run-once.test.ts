import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { waitUntilRunning } from "./run-once.ts";

const never = new AbortController().signal;

test("--runonce ends when every pod runs", async () => {
  const clock = newFakeClock();
  let pending: string[] | undefined;
  let ended = false;
  const waiting = waitUntilRunning(() => pending, clock, never).then(() => {
    ended = true;
  });
  await clock.advance(1_000);
  pending = ["a", "b"];
  await clock.advance(2_000);
  pending = [];
  await clock.advance(3_999);
  assert.equal(ended, false);
  await clock.advance(1);
  await waiting;
});

test("--runonce fails after ten checks and names the pods that do not run", async () => {
  const clock = newFakeClock();
  const failure = waitUntilRunning(() => ["a_default", "b_default"], clock, never).catch((err: Error) => err.message);
  await clock.advance(1_023_000);
  assert.equal(await failure, "runonce failed: error running pods: [a_default b_default]");
});
