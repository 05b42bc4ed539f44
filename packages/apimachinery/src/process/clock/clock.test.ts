import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { type TestContext, test } from "node:test";
import { realClock } from "./clock.ts";

/** Number of timers that keep the process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
const mocked = (t: TestContext): void => t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });

test("a delay beyond what Node's timers take is the longest one, and a negative one is none", (t) => {
  mocked(t);
  let fired = 0;
  const timer = realClock.after(2 ** 31, () => fired++);
  realClock.after(-5, () => fired++);
  t.mock.timers.tick(1);
  assert.equal(fired, 1);
  t.mock.timers.tick(60_000);
  assert.equal(fired, 1);
  timer.cancel();
  t.mock.timers.tick(2 ** 31);
  assert.equal(fired, 1);
});

test("neither a timer nor a periodic one keeps the process alive; a sleep does", async () => {
  const before = timers();
  const all = [realClock.after(60_000, () => {}), realClock.every(60_000, () => {})];
  assert.equal(timers(), before);
  const ending = new AbortController();
  const slept = realClock.sleep(60_000, ending.signal);
  assert.equal(timers(), before + 1);
  for (const timer of all) timer.cancel();
  ending.abort(new Error("enough"));
  await assert.rejects(slept, /enough/);
});

test("an aborted sleep leaves no timer, which would keep the process alive", async () => {
  const before = timers();
  const ending = new AbortController();
  const cut = realClock.sleep(5_000, ending.signal);
  assert.equal(timers(), before + 1);
  ending.abort(new Error("enough"));
  await assert.rejects(cut, /enough/);
  assert.equal(timers(), before);
});

test("a sleep leaves nothing at its signal, however it ends", async (t) => {
  mocked(t);
  const ending = new AbortController();
  const listeners = (): number => getEventListeners(ending.signal, "abort").length;
  const slept = realClock.sleep(1_000, ending.signal);
  assert.equal(listeners(), 1);
  t.mock.timers.tick(1_000);
  await slept;
  assert.equal(listeners(), 0);
  const cut = realClock.sleep(1_000, ending.signal);
  ending.abort(new Error("enough"));
  await assert.rejects(cut, /enough/);
  assert.equal(listeners(), 0);
  await assert.rejects(realClock.sleep(1_000, ending.signal), /enough/);
});
