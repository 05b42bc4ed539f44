import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newDelayingQueue } from "./delaying-queue.ts";
import { newWorkQueue } from "./queue.ts";
import { defaultControllerRateLimiter, exponentialBackoff, longestOf, overallBucket } from "./rate-limiters.ts";
import { newRateLimitingQueue } from "./rate-limiting-queue.ts";

test("returns keys in order, each once", async () => {
  const queue = newWorkQueue<string>();
  for (const key of ["a", "b", "a", "c", "b"]) queue.add(key);
  assert.equal(queue.length, 3);
  assert.deepEqual([await queue.get(), await queue.get(), await queue.get()], ["a", "b", "c"]);
});

test("never gives a key to two workers; a key added meanwhile is returned again after done", async () => {
  const queue = newWorkQueue<string>();
  queue.add("a");
  assert.equal(await queue.get(), "a");
  queue.add("a");
  queue.add("b");
  assert.equal(queue.length, 1);
  assert.equal(await queue.get(), "b");
  const next = queue.get();
  queue.done("a");
  assert.equal(await next, "a");
});

test("a key that is added several times while it is processed is counted as added once", async () => {
  const seen: string[] = [];
  const queue = newWorkQueue<string>({
    added: (key) => void seen.push(`added ${key}`),
    got: (key) => void seen.push(`got ${key}`),
    done: (key) => void seen.push(`done ${key}`),
  });
  queue.add("a");
  await queue.get();
  for (let i = 0; i < 3; i++) queue.add("a");
  queue.done("a");
  await queue.get();
  queue.done("a");
  assert.deepEqual(seen, ["added a", "got a", "added a", "done a", "got a", "done a"]);
  assert.equal(queue.length, 0);
});

test("wakes waiting workers, the longest waiting first", async () => {
  const queue = newWorkQueue<string>();
  const [first, second] = [queue.get(), queue.get()];
  queue.add("a");
  queue.add("b");
  assert.deepEqual(await Promise.all([first, second]), ["a", "b"]);
});

test("after shutdown no key is added, waiting keys are returned, then the end", async () => {
  const queue = newWorkQueue<string>();
  queue.add("a");
  queue.shutDown();
  queue.add("b");
  assert.equal(await queue.get(), "a");
  assert.equal(await queue.get(), undefined);
});

test("shutdown ends the waits of idle workers", async () => {
  const queue = newWorkQueue<string>();
  const waiting = queue.get();
  queue.shutDown();
  assert.equal(await waiting, undefined);
});

test("keeps order through thousands of keys", async () => {
  const queue = newWorkQueue<number>();
  for (let i = 0; i < 10_000; i++) queue.add(i);
  for (let i = 0; i < 10_000; i++) {
    assert.equal(await queue.get(), i);
    queue.done(i);
  }
  assert.equal(queue.length, 0);
});

test("a delayed key is returned when it is due", async () => {
  const clock = newFakeClock();
  const queue = newDelayingQueue<string>({ clock });
  queue.addAfter("later", 2000);
  queue.addAfter("now", 0);
  assert.equal(queue.length, 1);
  await clock.advance(1999);
  assert.equal(queue.length, 1);
  await clock.advance(1);
  assert.equal(queue.length, 2);
});

test("a key delayed twice is returned once, at the earlier time", async () => {
  const clock = newFakeClock();
  const queue = newDelayingQueue<string>({ clock });
  queue.addAfter("a", 5000);
  queue.addAfter("a", 1000);
  queue.addAfter("a", 9000);
  await clock.advance(1000);
  assert.equal(queue.length, 1);
  assert.equal(await queue.get(), "a");
  queue.done("a");
  await clock.advance(60_000);
  assert.equal(queue.length, 0);
});

test("a key may be delayed for longer than a timer lasts", async () => {
  const clock = newFakeClock();
  const short = { ...clock, after: (ms: number, fire: () => void) => clock.after(Math.min(ms, 10_000), fire) };
  const queue = newDelayingQueue<string>({ clock: short });
  queue.addAfter("a", 25_000);
  await clock.advance(20_000);
  assert.equal(queue.length, 0);
  await clock.advance(5000);
  assert.equal(queue.length, 1);
});

test("each failure of a key doubles its delay until it is forgotten", () => {
  const limiter = exponentialBackoff<string>(5, 1000);
  const waits = Array.from({ length: 10 }, () => limiter.when("a"));
  assert.deepEqual(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
  assert.equal(limiter.when("b"), 5);
  assert.equal(limiter.numRequeues("a"), 10);
  limiter.forget("a");
  assert.deepEqual([limiter.numRequeues("a"), limiter.when("a")], [0, 5]);
});

test("the token bucket is shared by all keys, and the longest of several delays applies", () => {
  const bucket = overallBucket<string>({ qps: 10, burst: 2, clock: newFakeClock() });
  const limiter = longestOf(exponentialBackoff<string>(5, 1000), bucket);
  assert.deepEqual([limiter.when("a"), limiter.when("b"), limiter.when("c")], [5, 5, 100]);
});

test("a failed key is returned with backoff, and at once after it was forgotten", async () => {
  const clock = newFakeClock();
  const queue = newRateLimitingQueue<string>({ clock, limiter: exponentialBackoff(100, 1000) });
  for (const waitMs of [100, 200]) {
    assert.equal(queue.addRateLimited("a"), waitMs);
    await clock.advance(waitMs - 1);
    assert.equal(queue.length, 0);
    await clock.advance(1);
    assert.equal(await queue.get(), "a");
    queue.done("a");
  }
  assert.equal(queue.numRequeues("a"), 2);
  queue.forget("a");
  queue.addRateLimited("a");
  await clock.advance(100);
  assert.equal(queue.length, 1);
});

test("a delay that is not a number is refused, because the key would be retried without pause", async () => {
  const clock = newFakeClock();
  const queue = newDelayingQueue<string>({ clock });
  assert.throws(() => queue.addAfter("a", Number.NaN), RangeError);
  queue.addAfter("b", Number.NEGATIVE_INFINITY);
  assert.equal(queue.length, 1);
  await clock.advance(60_000);
  assert.equal(queue.length, 1);
});

test("a key that was added immediately is also added when its delay has passed", async () => {
  const clock = newFakeClock();
  const queue = newDelayingQueue<string>({ clock });
  queue.addAfter("a", 5000);
  queue.add("a");
  assert.equal(await queue.get(), "a");
  queue.done("a");
  await clock.advance(5000);
  assert.equal(await queue.get(), "a");
  queue.done("a");
  queue.addAfter("a", 1000);
  await clock.advance(1000);
  assert.equal(queue.length, 1, "and may be delayed anew");
});

test("a delayed key that becomes due while a worker has it is returned again after done", async () => {
  const clock = newFakeClock();
  const queue = newDelayingQueue<string>({ clock });
  queue.add("a");
  assert.equal(await queue.get(), "a");
  queue.addAfter("a", 1000);
  await clock.advance(1000);
  assert.equal(queue.length, 0);
  queue.done("a");
  assert.equal(queue.length, 1);
});

test("after shutdown delayed keys are dropped and none is added", async () => {
  const clock = newFakeClock();
  const queue = newDelayingQueue<string>({ clock });
  queue.addAfter("a", 1000);
  queue.shutDown();
  assert.equal(clock.waiting, 0);
  queue.addAfter("b", 1000);
  queue.addAfter("c", 0);
  assert.equal(clock.waiting, 0);
  await clock.advance(5000);
  assert.deepEqual([queue.length, queue.shuttingDown], [0, true]);
});

test("a key is given to only one of two waiting workers", async () => {
  const queue = newWorkQueue<string>();
  const [first, second] = [queue.get(), queue.get()];
  queue.add("a");
  queue.add("a");
  assert.equal(await first, "a");
  queue.add("a");
  queue.add("b");
  assert.equal(await second, "b");
  queue.done("b");
  queue.done("a");
  assert.equal(await queue.get(), "a");
  queue.done("a");
  assert.equal(queue.length, 0, "what was added twice meanwhile comes once");
});

test("done leaves no state of a key that was not added again", async () => {
  const seen: string[] = [];
  const queue = newWorkQueue<string>({
    added: (key, depth) => void seen.push(`+${key} ${depth}`),
    got: (key, depth) => void seen.push(`>${key} ${depth}`),
    done: (key) => void seen.push(`-${key}`),
  });
  queue.add("a");
  queue.add("a");
  queue.add("b");
  await queue.get();
  queue.done("a");
  assert.deepEqual(seen, ["+a 1", "+b 2", ">a 1", "-a"]);
  assert.equal(queue.length, 1);
});

test("each limiter forgets and counts, and a bucket fills up again", async () => {
  const clock = newFakeClock();
  const bucket = overallBucket<string>({ qps: 10, burst: 1, clock });
  assert.deepEqual([bucket.when("a"), bucket.when("a")], [0, 100]);
  await clock.advance(10_000);
  assert.deepEqual([bucket.when("a"), bucket.when("b")], [0, 100], "no more than the burst is saved up");
  const [one, two] = [exponentialBackoff<string>(5, 1000), exponentialBackoff<string>(1, 1000)];
  const limiter = longestOf(one, two);
  limiter.when("a");
  limiter.when("a");
  limiter.forget("a");
  assert.deepEqual([one.numRequeues("a"), two.numRequeues("a"), limiter.numRequeues("a")], [0, 0, 0]);
  two.when("a");
  assert.equal(limiter.numRequeues("a"), 1);
});

test("controllers retry a key after 5 ms, doubled up to 1,000 s, and all keys ten times a second after a hundred at once", () => {
  const limiter = defaultControllerRateLimiter<string>(newFakeClock());
  const waits = Array.from({ length: 20 }, () => limiter.when("a"));
  assert.deepEqual(
    waits,
    waits.map((_, i) => Math.min(1_000_000, 5 * 2 ** i)),
  );
  const others = Array.from({ length: 82 }, (_, i) => limiter.when(`b${i}`));
  assert.deepEqual(others.slice(0, 80), new Array(80).fill(5));
  assert.deepEqual(others.slice(80), [100, 200]);
});

test("a key added while a worker has it is returned also after a shutdown meanwhile", async () => {
  const queue = newWorkQueue<string>();
  queue.add("a");
  assert.equal(await queue.get(), "a");
  queue.add("a");
  queue.shutDown();
  queue.done("a");
  assert.deepEqual([await queue.get(), await queue.get()], ["a", undefined]);
});
