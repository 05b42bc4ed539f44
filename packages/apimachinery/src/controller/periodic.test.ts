import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../clock/fake-clock.ts";
import { discardLogger } from "../logging/logger.ts";
import { insist } from "./periodic.ts";

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

test("tries once a second until it succeeds, and says why not", async () => {
  const { clock, at, said, isOver } = trying(2);
  await clock.advance(10_000);
  assert.deepEqual(at, [0, 1000, 2000]);
  assert.deepEqual(said, ["cannot begin", "cannot begin"]);
  assert.equal(isOver(), true);
});

test("gives up when it is told to", async () => {
  const { clock, stop, at, finished } = trying(Number.POSITIVE_INFINITY);
  await clock.advance(1500);
  stop.abort();
  await finished;
  await clock.advance(10_000);
  assert.deepEqual(at, [0, 1000]);
});
