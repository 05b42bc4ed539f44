import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { settle } from "../testing/wait-for.ts";
import { Reconnection } from "./reconnection.ts";

/** Simulates a program that retries. @param attemptMs duration of each attempt */
async function attempts(random: number, attemptMs: number, forMs: number, firstAtMs = 0): Promise<number[]> {
  const clock = newFakeClock();
  const reconnection = new Reconnection({ periodMs: () => 1_000, clock, random: () => random });
  const ending = new AbortController();
  const at: number[] = [];
  const trying = async (): Promise<void> => {
    await clock.sleep(firstAtMs, ending.signal);
    for (;;) {
      await reconnection.wait(ending.signal);
      at.push(clock.monotonic());
      await clock.sleep(attemptMs, ending.signal);
    }
  };
  const begun = clock.monotonic();
  const end = trying().catch(() => {});
  for (let ms = 0; ms < forMs; ms += 50) await clock.advance(50);
  ending.abort(new Error("the test ends"));
  await end;
  return at.map((time) => time - begun);
}

for (const { name, random, attemptMs, want } of [
  { name: "attempts that fail at once, the earliest", random: 0, attemptMs: 0, want: [500, 1_000, 1_500, 2_000] },
  { name: "attempts that fail at once, the latest", random: 1, attemptMs: 0, want: [1_000, 2_000, 3_000, 4_000] },
  { name: "attempts that take a part of the period", random: 0, attemptMs: 300, want: [500, 1_000, 1_500, 2_000] },
  { name: "attempts whose packets are dropped, the earliest", random: 0, attemptMs: 1_500, want: [500, 2_000, 3_500, 5_000] },
  { name: "attempts whose packets are dropped, the latest", random: 1, attemptMs: 1_500, want: [1_000, 2_750, 4_500, 6_250] },
]) {
  test(name, async () => {
    assert.deepEqual((await attempts(random, attemptMs, 7_000)).slice(0, 4), want);
  });
}

test("after a five-minute outage the delay between attempts is as short as at first", async () => {
  const at = await attempts(1, 0, 305_000);
  assert.equal(at.length, 305);
});

test("another outage begins with a random delay that spreads the processes", async () => {
  const clock = newFakeClock();
  const reconnection = new Reconnection({ periodMs: () => 1_000, clock, random: () => 0.5 });
  const { signal } = new AbortController();
  for (let outage = 0; outage < 2; outage++) {
    let isTime = false;
    void reconnection.wait(signal).then(() => {
      isTime = true;
    });
    await clock.advance(749);
    await settle();
    assert.equal(isTime, false);
    await clock.advance(1);
    await settle();
    assert.equal(isTime, true);
    await clock.advance(60_000);
  }
});

test("all waiting clients retry at the same time; an aborted wait does not end the others", async () => {
  const clock = newFakeClock();
  const reconnection = new Reconnection({ periodMs: () => 1_000, clock, random: () => 0 });
  const [early, late, leaving] = [new AbortController(), new AbortController(), new AbortController()];
  const times: number[] = [];
  const note = (): void => void times.push(clock.monotonic());
  const begun = clock.monotonic();
  void reconnection.wait(early.signal).then(note);
  const left = reconnection.wait(leaving.signal);
  await clock.advance(400);
  void reconnection.wait(late.signal).then(note);
  leaving.abort(new Error("it ends"));
  await assert.rejects(left, /it ends/);
  await assert.rejects(reconnection.wait(leaving.signal), /it ends/);
  await clock.advance(100);
  await settle();
  assert.deepEqual(times, [begun + 500, begun + 500]);
  assert.equal(clock.waiting, 0);
  for (const { signal } of [early, late, leaving]) assert.equal(getEventListeners(signal, "abort").length, 0);
});
