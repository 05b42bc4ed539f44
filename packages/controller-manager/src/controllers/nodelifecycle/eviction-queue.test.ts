import assert from "node:assert/strict";
import { test } from "node:test";
import { newEvictionQueue } from "./eviction-queue.ts";

test("one node at a time, no faster than the rate, in the order in which they came", () => {
  const queue = newEvictionQueue(0.1);
  for (const node of ["a", "b", "a", "c"]) queue.add(node);
  assert.equal(queue.take(0), "a");
  assert.equal(queue.take(9_999), undefined);
  assert.equal(queue.take(10_000), "b");
  assert.deepEqual([queue.has("a"), queue.has("c")], [false, true]);
  assert.equal(queue.take(60_000), "c", "unused evictions are not accumulated");
});

test("a node that recovered leaves the queue without a change for the others", () => {
  const queue = newEvictionQueue(1);
  for (const node of ["a", "b"]) queue.add(node);
  queue.remove("a");
  assert.equal(queue.take(0), "b");
  queue.add("a");
  assert.equal(queue.take(500), undefined);
  assert.equal(queue.take(1_000), "a");
});

test("a rate of nothing stops all, and the next rate begins where it was", () => {
  const queue = newEvictionQueue(1);
  for (const node of ["a", "b", "c"]) queue.add(node);
  assert.equal(queue.take(0), "a");
  queue.setRate(0);
  assert.equal(queue.take(100_000), undefined);
  queue.setRate(0.5);
  assert.equal(queue.take(100_000), "b");
  assert.equal(queue.take(101_999), undefined);
  assert.equal(queue.take(102_000), "c");
});

test("a change of the rate brings no eviction forward", () => {
  const queue = newEvictionQueue(0.1);
  for (const node of ["a", "b"]) queue.add(node);
  assert.equal(queue.take(0), "a");
  for (const rate of [0, 0.1, 1]) queue.setRate(rate);
  assert.equal(queue.take(5_000), undefined);
  assert.equal(queue.take(10_000), "b");
});
