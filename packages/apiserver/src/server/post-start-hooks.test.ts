import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { backgroundHook, newPostStartHooks, type PostStartHook } from "./post-start-hooks.ts";

/** Hooks whose runs the test ends. */
function someHooks(...names: string[]) {
  const clock = newFakeClock();
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const runs = new Map(names.map((name): [string, PromiseWithResolvers<void>[]] => [name, []]));
  const hooks = names.map((name): PostStartHook => {
    const run = (): Promise<void> => {
      const ending = Promise.withResolvers<void>();
      runs.get(name)?.push(ending);
      return ending.promise;
    };
    return { name, run };
  });
  const stopping = new AbortController();
  const started = newPostStartHooks(hooks, clock, log);
  const end = async (name: string, err?: Error): Promise<void> => {
    const last = runs.get(name)?.at(-1);
    if (err === undefined) last?.resolve();
    else last?.reject(err);
    await settle();
  };
  const times = (name: string): number => runs.get(name)?.length ?? 0;
  return { clock, errors, started, stopping, end, times, running: started.run(stopping.signal) };
}

const failure = new Error("etcd is away");

test("a hook that fails is run again every second until it succeeds, and each failure is logged", async () => {
  const { clock, errors, started, end, times, running } = someHooks("a", "b");
  await end("b");
  assert.deepEqual([started.problem("a"), started.problem("b"), started.unfinished()], ["not finished", undefined, ["a"]]);
  for (let failures = 1; failures < 3; failures++) {
    await end("a", failure);
    await clock.advance(999);
    assert.equal(times("a"), failures);
    await clock.advance(1);
    assert.equal(times("a"), failures + 1);
  }
  await end("a");
  await running;
  assert.deepEqual([started.problem("a"), started.unfinished(), times("b")], [undefined, [], 1]);
  assert.deepEqual(errors, ["post start hook failed", "post start hook failed"]);
});

test("the start is failing since the first failure after which no hook has finished", async () => {
  const { clock, started, stopping, end, running } = someHooks("a", "b", "c");
  running.catch(() => {});
  assert.equal(started.failingMs(), 0);
  await clock.advance(5_000);
  await end("a", failure);
  await clock.advance(1_000);
  await end("a", failure);
  await clock.advance(500);
  assert.equal(started.failingMs(), 1_500);
  await end("b");
  assert.equal(started.failingMs(), 0);
  await clock.advance(500);
  await end("a", failure);
  await clock.advance(300);
  assert.equal(started.failingMs(), 300);
  stopping.abort();
});

test("a hook that fails when the server stops is neither logged nor run again", async () => {
  const { clock, errors, stopping, end, times, running } = someHooks("a");
  stopping.abort(new Error("stopped"));
  await Promise.all([assert.rejects(running, /stopped/), end("a", failure)]);
  await clock.advance(5_000);
  assert.deepEqual([times("a"), errors, clock.waiting], [1, [], 0]);
});

test("a hook that waits for its next run ends with the server", async () => {
  const { clock, stopping, end, times, running } = someHooks("a");
  const ended = assert.rejects(running, /stopped/);
  await end("a", failure);
  stopping.abort(new Error("stopped"));
  await ended;
  await clock.advance(5_000);
  assert.deepEqual([times("a"), clock.waiting], [1, 0]);
});

test("a hook with background work is finished at once; the work's failure is logged unless the server stops", async () => {
  for (const isStopped of [false, true]) {
    const errors: unknown[] = [];
    const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
    const work = Promise.withResolvers<void>();
    const stopping = new AbortController();
    await backgroundHook("a", () => work.promise, log).run(stopping.signal);
    if (isStopped) stopping.abort();
    work.reject(failure);
    await settle();
    assert.deepEqual(errors, isStopped ? [] : [failure]);
  }
});
