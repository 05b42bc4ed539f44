import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Entry, Storage } from "../../../storage/storage.ts";
import { newRangeAllocator } from "./range-allocator.ts";

/** A range of three numbers over a storage of one value that can be made unavailable. */
function aRange() {
  let stored: KubeObject | undefined;
  const etcd = { isAway: false };
  const storage = {
    async guaranteedUpdate(_: string, change: (entry: Entry | undefined) => KubeObject, { dryRun }: { dryRun: boolean }) {
      if (etcd.isAway) throw new Error("etcd is away");
      const object = stored;
      const next = change(object === undefined ? undefined : ({ object: () => object } as Entry));
      if (!dryRun) stored = next;
    },
  };
  const texts = { taken: "is taken", full: "is full" };
  const make = (range = "1-3") =>
    newRangeAllocator({ storage: () => storage as unknown as Storage, key: "numbers", range, size: 3, texts });
  return { etcd, make, range: make() };
}

test("each number is given out once, and again when it was given back", async () => {
  const { range, make } = aRange();
  await range.take(1, false);
  await assert.rejects(make().take(1, false), /is taken/, "whichever server asks");
  const others = [await range.takeAny(false), await range.takeAny(false)];
  assert.deepEqual(others.toSorted(), [0, 2]);
  await assert.rejects(range.takeAny(false), /is full/);
  await range.release([1]);
  assert.equal(await range.takeAny(false), 1);
});

test("a dry run takes nothing, and is refused what is taken", async () => {
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

test("numbers of another range are nobody's", async () => {
  const { range, make } = aRange();
  await range.take(1, false);
  await make("4-6").take(1, false);
});

test("what cannot be given back fails no request, and stays taken", async () => {
  const { range, etcd } = aRange();
  await range.take(1, false);
  etcd.isAway = true;
  await assert.rejects(range.take(2, false), /etcd is away/);
  await range.release([1]);
  etcd.isAway = false;
  await assert.rejects(range.take(1, false), /is taken/);
});
