import assert from "node:assert/strict";
import { test } from "node:test";
import { newRangeAllocator } from "./range-allocator.ts";
import { RangeStorage } from "./testing.ts";

/** A range of three numbers over a storage that can be made unavailable. */
function aRange() {
  const etcd = new RangeStorage();
  const texts = { taken: "is taken", full: "is full" };
  const make = (range = "1-3") => newRangeAllocator({ storage: () => etcd.storage, key: "numbers", range, size: 3, texts });
  return { etcd, make, range: make() };
}

test("each number is allocated once, and again after its release", async () => {
  const { range, make } = aRange();
  await range.take(1, false);
  await assert.rejects(make().take(1, false), /is taken/, "whichever server asks");
  const others = [await range.takeAny(false), await range.takeAny(false)];
  assert.deepEqual(others.toSorted(), [0, 2]);
  await assert.rejects(range.takeAny(false), /is full/);
  await range.release([1]);
  assert.equal(await range.takeAny(false), 1);
});

test("a dry run allocates nothing, and is refused a number that is allocated", async () => {
  const { range } = aRange();
  await range.take(1, true);
  await range.take(1, false);
  await assert.rejects(range.take(1, true), /is taken/);
});

test("a dry run chooses no number twice", async () => {
  const { range } = aRange();
  await range.take(1, false);
  assert.equal(await range.takeAny(true, new Set([0])), 2);
  await assert.rejects(range.takeAny(true, new Set([0, 2])), /is full/);
  assert.deepEqual([await range.takeAny(false), await range.takeAny(false)].toSorted(), [0, 2]);
});

test("numbers of another range are not allocated", async () => {
  const { range, make } = aRange();
  await range.take(1, false);
  await make("4-6").take(1, false);
});

test("a number that cannot be released fails no request and stays allocated", async () => {
  const { range, etcd } = aRange();
  await range.take(1, false);
  etcd.isAway = true;
  await assert.rejects(range.take(2, false), /etcd is away/);
  await range.release([1]);
  etcd.isAway = false;
  await assert.rejects(range.take(1, false), /is taken/);
});

test("several numbers are released in one write, which keeps what others have written", async () => {
  const { range, etcd } = aRange();
  for (const number of [0, 1, 2]) await range.take(number, false);
  const metadata = { name: "numbers", annotations: { a: "b" }, resourceVersion: "7" };
  etcd.stored.set("numbers", { ...etcd.stored.get("numbers"), metadata });
  await range.release([0, 2]);
  assert.deepEqual(etcd.stored.get("numbers")?.metadata, metadata);
  assert.deepEqual([await range.takeAny(false), await range.takeAny(false)].toSorted(), [0, 2]);
});
