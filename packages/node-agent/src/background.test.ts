import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newBackground } from "./background.ts";

test("a periodic task runs at once, again after each interval though it fails, and not after the stop", async () => {
  const clock = newFakeClock();
  const lines: string[] = [];
  const background = newBackground({ clock, log: newLogger({ write: (line) => void lines.push(line) }) });
  let runs = 0;
  background.every(1000, "look", () => {
    runs++;
    throw new Error("no luck");
  });
  assert.equal(runs, 1);
  await clock.advance(2500);
  assert.equal(runs, 3);
  assert.equal(lines.filter((line) => line.includes("no luck")).length, 3);
  await background.stop();
  await clock.advance(5000);
  assert.equal(runs, 3);
});

test("stop waits until running tasks have ended, also for one that fails", async () => {
  const lines: string[] = [];
  const background = newBackground({ clock: newFakeClock(), log: newLogger({ write: (line) => void lines.push(line) }) });
  background.add(Promise.reject(new Error("ended early")));
  await settle();
  assert.deepEqual([lines.splice(0).length, background.signal.aborted], [1, false]);
  const { promise, reject } = Promise.withResolvers<void>();
  background.add(promise);
  background.every(1000, "look", () => promise);
  let stopped = false;
  const stop = background.stop().then(() => {
    stopped = true;
  });
  assert.equal(background.signal.aborted, true);
  await settle();
  assert.equal(stopped, false);
  reject(new Error("interrupted"));
  await stop;
  assert.deepEqual(lines, [], "what is interrupted is no failure");
});
