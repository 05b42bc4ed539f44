import assert from "node:assert/strict";
import { test } from "node:test";
import { realClock } from "../process/clock/clock.ts";
import { Turns } from "../process/event-loop/turns.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { newController } from "./controller.ts";

/** Busy loop of `ms` milliseconds. */
function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test("a controller with many keys and no requests yields to the event loop", async () => {
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
    turns: new Turns(),
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
