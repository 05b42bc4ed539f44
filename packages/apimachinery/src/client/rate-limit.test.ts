import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newTokenBucket } from "./rate-limit.ts";

test("lets a burst through at once, then one for each interval, in order", async () => {
  const clock = newFakeClock();
  const bucket = newTokenBucket({ qps: 10, burst: 3, clock });
  const passed: number[] = [];
  for (let i = 0; i < 6; i++) void bucket.accept().then(() => passed.push(i));
  await clock.advance(0);
  assert.deepEqual(passed, [0, 1, 2]);
  await clock.advance(100);
  assert.deepEqual(passed, [0, 1, 2, 3]);
  await clock.advance(200);
  assert.deepEqual(passed, [0, 1, 2, 3, 4, 5]);
});

test("says how long it waited", async () => {
  const clock = newFakeClock();
  const bucket = newTokenBucket({ qps: 2, burst: 1, clock });
  assert.equal(await bucket.accept(), 0);
  const waited = bucket.accept();
  await clock.advance(500);
  assert.equal(await waited, 500);
});

test("never saves up more than the burst", async () => {
  const clock = newFakeClock();
  const bucket = newTokenBucket({ qps: 100, burst: 2, clock });
  await clock.advance(60_000);
  assert.deepEqual([bucket.tryAccept(), bucket.tryAccept(), bucket.tryAccept()], [true, true, false]);
});

test("an aborted wait returns its token", async () => {
  const clock = newFakeClock();
  const bucket = newTokenBucket({ qps: 1, burst: 1, clock });
  await bucket.accept();
  const stop = new AbortController();
  const gaveUp = assert.rejects(bucket.accept(stop.signal), /no more/);
  stop.abort(new Error("no more"));
  await gaveUp;
  await clock.advance(1000);
  assert.equal(bucket.tryAccept(), true);
});

test("a reservation may exceed the available tokens, which delays later ones", () => {
  const bucket = newTokenBucket({ qps: 10, burst: 1, clock: newFakeClock() });
  assert.deepEqual([bucket.reserve(), bucket.reserve(), bucket.reserve()], [0, 100, 200]);
});
