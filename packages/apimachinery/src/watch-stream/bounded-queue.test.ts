import assert from "node:assert/strict";
import { test } from "node:test";
import { newBoundedQueue } from "./bounded-queue.ts";

test("delivers values in order, then the end", async () => {
  const queue = newBoundedQueue<number>(3);
  assert.equal(queue.push(1), true);
  assert.equal(queue.push(2), true);
  queue.close();
  assert.deepEqual(await Array.fromAsync(queue), [1, 2]);
});

test("refuses values when the reader is too slow, and keeps those it has", async () => {
  const queue = newBoundedQueue<number>(2);
  queue.push(1);
  queue.push(2);
  assert.equal(queue.full, true);
  assert.equal(queue.push(3), false);
  assert.deepEqual(queue.drain(), [1, 2]);
  assert.equal(queue.push(4), true);
});

test("what was read is not drained again, and leaves its place", async () => {
  const queue = newBoundedQueue<number>(3);
  for (const value of [1, 2, 3]) queue.push(value);
  const reader = queue[Symbol.asyncIterator]();
  assert.deepEqual([(await reader.next()).value, queue.size, queue.full], [1, 2, false]);
  assert.equal(queue.push(4), true);
  assert.deepEqual([queue.drain(), queue.size], [[2, 3, 4], 0]);
  queue.push(5);
  queue.close(new Error("first"));
  queue.close(new Error("second"));
  assert.equal((await reader.next()).value, 5);
  await assert.rejects(Promise.resolve(reader.next()), /first/);
});

test("wakes a waiting reader", async () => {
  const queue = newBoundedQueue<string>(1);
  const reader = queue[Symbol.asyncIterator]();
  const next = reader.next();
  queue.push("a");
  assert.deepEqual(await next, { value: "a", done: false });
});

test("delivers the remaining values before the error", async () => {
  const queue = newBoundedQueue<number>(2);
  queue.push(1);
  queue.close(new Error("cut off"));
  const seen: number[] = [];
  await assert.rejects(async () => {
    for await (const value of queue) seen.push(value);
  }, /cut off/);
  assert.deepEqual(seen, [1]);
});

test("refuses writes once the reader has left its loop, and keeps nothing", async () => {
  const queue = newBoundedQueue<number>(3);
  for (const value of [1, 2, 3]) queue.push(value);
  for await (const _ of queue) break;
  assert.deepEqual([queue.push(4), queue.size], [false, 0]);
});

test("keeps order over thousands of values", async () => {
  const queue = newBoundedQueue<number>(10_000);
  for (let i = 0; i < 5000; i++) queue.push(i);
  const seen: number[] = [];
  for await (const value of queue) {
    seen.push(value);
    if (seen.length < 3000) queue.push(5000 + seen.length);
    if (queue.size === 0) break;
  }
  assert.deepEqual(
    seen.slice(0, 5000),
    Array.from({ length: 5000 }, (_, i) => i),
  );
  assert.equal(seen.length, 5000 + 2999);
});

test("only the first close or error counts", async () => {
  const queue = newBoundedQueue<number>(2);
  queue.push(1);
  queue.close();
  queue.close(new Error("too late"));
  assert.deepEqual(await Array.fromAsync(queue), [1]);
});
