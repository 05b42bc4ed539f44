import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newOperations } from "./operations.ts";

test("does one thing at a time under a name", async () => {
  const operations = newOperations(newFakeClock(), discardLogger);
  const finish = Promise.withResolvers<void>();
  const done: string[] = [];
  operations.start("a", () => finish.promise.then(() => void done.push("first")));
  operations.start("a", async () => void done.push("second"));
  operations.start("b", async () => void done.push("other"));
  finish.resolve();
  await settle();
  assert.deepEqual(done, ["other", "first"]);
  operations.start("a", async () => void done.push("third"));
  await settle();
  assert.equal(done.at(-1), "third");
});

test("waits longer after each failure, and no more after a success", async () => {
  const clock = newFakeClock();
  const operations = newOperations(clock, discardLogger);
  let tries = 0;
  let fails = true;
  const start = async () => {
    operations.start("a", async () => {
      tries++;
      if (fails) throw new Error("no");
    });
    await settle();
    return tries;
  };
  assert.equal(await start(), 1);
  assert.equal(await start(), 1, "too soon");
  await clock.advance(500);
  assert.equal(await start(), 2);
  await clock.advance(500);
  assert.equal(await start(), 2, "a second this time");
  fails = false;
  await clock.advance(500);
  assert.equal(await start(), 3);
  assert.equal(await start(), 4);
  fails = true;
  assert.equal(await start(), 5);
  await clock.advance(500);
  assert.equal(await start(), 6, "the wait begins anew");
});

test("ends when what it does has ended", async () => {
  const operations = newOperations(newFakeClock(), discardLogger);
  const stop = new AbortController();
  const ended: string[] = [];
  operations.start("a", async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", () => setImmediate(resolve)));
    ended.push("operation");
  });
  const running = operations.run(stop.signal).then(() => void ended.push("run"));
  await settle();
  assert.deepEqual(ended, []);
  stop.abort(new Error("stop"));
  await running;
  assert.deepEqual(ended, ["operation", "run"]);
  operations.start("b", () => Promise.reject(new Error("never started")));
});

test("a failure is remembered for two minutes after its wait, and then the wait begins anew", async () => {
  const clock = newFakeClock();
  const operations = newOperations(clock, discardLogger);
  let tries = 0;
  const start = async () => {
    operations.start("a", () => Promise.reject(new Error(`no ${++tries}`)));
    await settle();
    return tries;
  };
  assert.equal(await start(), 1);
  await clock.advance(500 + 122_000);
  assert.equal(await start(), 2);
  await clock.advance(999);
  assert.equal(await start(), 2, "twice as long, though the first wait was over for two minutes");
  await clock.advance(1 + 122_001);
  assert.equal(await start(), 3);
  await clock.advance(500);
  assert.equal(await start(), 4, "half a second, as the first time");
});
