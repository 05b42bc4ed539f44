import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { guarded } from "./guarded.ts";
import { insist, newPeriodic } from "./periodic.ts";

function trying(failures: number) {
  const clock = newFakeClock();
  const stop = new AbortController();
  const said: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void said.push(message) };
  const at: number[] = [];
  const work = async (): Promise<void> => {
    at.push(clock.monotonic());
    if (at.length <= failures) throw new Error("away");
  };
  let over = false;
  const finished = insist({ work, failure: "cannot begin", signal: stop.signal, log, clock }).then(() => {
    over = true;
  });
  return { clock, stop, said, at, finished, isOver: () => over };
}

test("retries every second until success, and logs each failure", async () => {
  const { clock, at, said, isOver } = trying(2);
  await clock.advance(10_000);
  assert.deepEqual(at, [0, 1000, 2000]);
  assert.deepEqual(said, ["cannot begin", "cannot begin"]);
  assert.equal(isOver(), true);
});

test("ends when its signal is aborted", async () => {
  const { clock, stop, at, finished } = trying(Number.POSITIVE_INFINITY);
  await clock.advance(1500);
  stop.abort();
  await finished;
  await clock.advance(10_000);
  assert.deepEqual(at, [0, 1000]);
});

function looping(
  work: (run: number) => Promise<void>,
  synced: readonly { waitForSync(signal: AbortSignal): Promise<void> }[] = [],
) {
  const clock = newFakeClock();
  const stop = new AbortController();
  const at: number[] = [];
  const said: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void said.push(message) };
  const { run } = newPeriodic({
    name: "test",
    periodMs: 5_000,
    synced,
    work: () => work(at.push(clock.monotonic())),
    log,
    clock,
  });
  return { clock, stop, at, said, finished: run(stop.signal) };
}

test("a run that fails is logged, and the next comes a period later", async () => {
  const { clock, stop, at, said, finished } = looping(async (run) => {
    if (run <= 2) throw new Error("ill");
  });
  await clock.advance(15_000);
  assert.deepEqual(at, [0, 5_000, 10_000, 15_000]);
  assert.deepEqual(said, ["periodic work failed", "periodic work failed"]);
  stop.abort();
  await finished;
});

test("a long run delays the next one; an abort during it ends the loop after it, without a log line", async () => {
  const held = Promise.withResolvers<void>();
  const { clock, stop, at, said, finished } = looping(() => held.promise);
  await clock.advance(60_000);
  assert.deepEqual(at, [0]);
  stop.abort();
  held.reject(new Error("ended"));
  await finished;
  assert.deepEqual(said, []);
});

test("it waits for its caches, and ends without a run when they never sync", async () => {
  const { clock, stop, at, finished } = looping(async () => {}, [
    { waitForSync: (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))) },
  ]);
  await clock.advance(60_000);
  stop.abort();
  await finished;
  assert.deepEqual(at, []);
});

test("a guarded callback's error is logged, and it may be called again", () => {
  const said: unknown[] = [];
  let calls = 0;
  const call = guarded({ error: (message, err) => void said.push([message, String(err)]) }, "cannot look", () => {
    if (++calls === 1) throw new Error("ill");
  });
  call();
  call();
  assert.equal(calls, 2);
  assert.deepEqual(said, [["cannot look", "Error: ill"]]);
});

for (const { startsLate, want } of [
  { startsLate: false, want: [0, 1000, 2000] },
  { startsLate: true, want: [1000, 2000] },
]) {
  test(`periodic work starts ${startsLate ? "after a period" : "at once"}`, async () => {
    const clock = newFakeClock();
    const stop = new AbortController();
    const at: number[] = [];
    const work = async (): Promise<void> => void at.push(clock.monotonic());
    const running = newPeriodic({ name: "check", periodMs: 1000, startsLate, work, log: discardLogger, clock }).run(stop.signal);
    await clock.advance(2500);
    stop.abort();
    await running;
    assert.deepEqual(at, want);
  });
}

test("periodic work that starts late does not run when it is stopped before", async () => {
  const clock = newFakeClock();
  const stop = new AbortController();
  const work = async (): Promise<void> => assert.fail("it ran");
  const running = newPeriodic({ name: "check", periodMs: 1000, startsLate: true, work, log: discardLogger, clock }).run(
    stop.signal,
  );
  await clock.advance(500);
  stop.abort();
  await running;
});
