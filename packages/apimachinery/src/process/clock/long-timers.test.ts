import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "./fake-clock.ts";
import { newLongTimers } from "./long-timers.ts";

test("each timer fires at its own time, also several in one second", async () => {
  const clock = newFakeClock(500);
  const timers = newLongTimers(clock);
  const fired: [number, number][] = [];
  const delays = [0, 999, 3_999, 4_000, 4_001, 59_300, 59_301, 60_000, 3_600_000];
  for (const delay of delays) timers.after(delay, () => fired.push([delay, clock.now() - 500]));
  await clock.advance(3_600_000);
  assert.deepEqual(
    fired,
    delays.map((delay) => [delay, delay]),
  );
  assert.equal(clock.waiting, 0);
});

test("a thousand timers use one timer of Node, and none is left when they are cancelled", async () => {
  const clock = newFakeClock(0);
  const timers = newLongTimers(clock);
  const waits = Array.from({ length: 1000 }, (_, i) => timers.after(60_000 + i, () => assert.fail("cancelled")));
  assert.equal(clock.waiting, 1);
  await clock.advance(59_500);
  for (const wait of waits) wait.cancel();
  for (const wait of waits) wait.cancel();
  assert.equal(clock.waiting, 0);
  await clock.advance(10_000);
});

test("a timer that is added while none waits starts the polling of seconds again", async () => {
  const clock = newFakeClock(0);
  const timers = newLongTimers(clock);
  const [one, other] = [timers.after(10_000, () => {}), timers.after(20_000, () => {})];
  one.cancel();
  assert.equal(clock.waiting, 1);
  other.cancel();
  assert.equal(clock.waiting, 0, "nothing is polled when none waits");
  await clock.advance(100_000);
  let at = 0;
  timers.after(5_000, () => {
    at = clock.now();
  });
  await clock.advance(6_000);
  assert.equal(at, 105_000);
});
