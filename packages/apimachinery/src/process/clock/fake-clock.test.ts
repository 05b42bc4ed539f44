import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "./fake-clock.ts";

test("fires timers in order of time, each at its own time", async () => {
  const clock = newFakeClock(0);
  const seen: string[] = [];
  clock.after(200, () => seen.push(`b@${clock.now()}`));
  clock.after(100, () => seen.push(`a@${clock.now()}`));
  clock.every(150, () => seen.push(`tick@${clock.now()}`));
  clock.after(120, () => seen.push("never")).cancel();
  await clock.advance(300);
  assert.deepEqual(seen, ["a@100", "tick@150", "b@200", "tick@300"]);
  assert.equal(clock.now(), 300);
  assert.equal(clock.waiting, 1);
});

test("lets a sleeper start its next sleep within one advance", async () => {
  const clock = newFakeClock(0);
  const at: number[] = [];
  const loop = (async () => {
    for (let i = 0; i < 3; i++) {
      await clock.sleep(10);
      at.push(clock.now());
    }
  })();
  await clock.advance(35);
  await loop;
  assert.deepEqual(at, [10, 20, 30]);
});

test("rejects a sleep with the reason of its signal and forgets it", async () => {
  const clock = newFakeClock(0);
  const controller = new AbortController();
  const sleeping = clock.sleep(10, controller.signal);
  controller.abort(new Error("stop"));
  await assert.rejects(sleeping, /stop/);
  assert.equal(clock.waiting, 0);
});

test("setting the wall clock does not affect timers or the monotonic time", async () => {
  const clock = newFakeClock(0);
  const seen: number[] = [];
  clock.after(100, () => seen.push(clock.monotonic()));
  clock.setOn(1_000);
  assert.deepEqual([clock.now(), clock.monotonic()], [1_000, 0]);
  await clock.advance(100);
  assert.deepEqual([seen, clock.now()], [[100], 1_100]);
});
