import assert from "node:assert/strict";
import { test } from "node:test";
import { realClock } from "../clock/clock.ts";
import { newFakeClock } from "../clock/fake-clock.ts";
import { discardLogger } from "../logging/logger.ts";
import { newController } from "./controller.ts";
import { othersTurn } from "./turns.ts";

/** Busy loop of `ms` milliseconds. */
function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test("a controller with much to do that asks nobody lets others have their turn", async () => {
  const stop = new AbortController();
  let looked = 0;
  let turns = 0;
  const controller = newController({
    name: "test",
    sources: [],
    reconcile: async () => {
      looked++;
      work(1);
      if (looked === 300) stop.abort();
      return {};
    },
    workers: 5,
    log: discardLogger,
    clock: realClock,
  });
  for (let i = 0; i < 300; i++) controller.enqueue(`default/${i}`);
  const turn = (): void => {
    turns++;
    if (!stop.signal.aborted) setImmediate(turn);
  };
  setImmediate(turn);
  await controller.run(stop.signal);
  assert.equal(looked, 300);
  assert.ok(turns >= 4, `${turns} turns`);
});

test("short work waits for nobody, long work for one turn of the others", async (t) => {
  await new Promise((resolve) => setImmediate(resolve));
  // The clock is mocked: on a loaded machine real time may exceed the budget without any work.
  let now = 0;
  t.mock.method(performance, "now", () => now);
  assert.equal(othersTurn(realClock), undefined);
  now += 60;
  const turn = othersTurn(realClock);
  assert.ok(turn !== undefined);
  await turn;
  assert.equal(othersTurn(realClock), undefined, "a new turn");
});

test("by a test's clock no work is long: how many turns it takes depends on the test alone", (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => (now += 60));
  const clock = newFakeClock();
  for (let i = 0; i < 3; i++) assert.equal(othersTurn(clock), undefined);
});
