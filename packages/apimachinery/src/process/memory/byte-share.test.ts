import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteShare, type CachedBytes, idleMs } from "./byte-share.ts";

interface Item extends CachedBytes {
  isKept: boolean;
}

function anItem(sizeBytes: number, owner?: object): Item {
  const item: Item = {
    ...{ sizeBytes, used: false, since: 0, isKept: true, ...(owner && { owner }) },
    drop() {
      item.isKept = false;
    },
  };
  return item;
}

test("the oldest items are evicted, used ones get another round", () => {
  const share = new ByteShare(80);
  const items = Array.from({ length: 8 }, () => anItem(10));
  for (const item of items) assert.ok(share.keep(item));
  assert.equal(share.bytes, 80);
  (items[0] as Item).used = true;
  assert.ok(share.keep(anItem(10)));
  assert.deepEqual(
    items.map(({ isKept }) => isKept),
    [true, false, true, true, true, true, true, true],
  );
  assert.equal(share.bytes, 80);
});

test("an item above its maximum part of the share is not kept", () => {
  assert.equal(new ByteShare(80).keep(anItem(11)), false);
  assert.equal(new ByteShare(80, 80).keep(anItem(80)), true);
});

test("items of one owner do not evict each other", () => {
  const share = new ByteShare(80);
  const owner = {};
  for (let i = 0; i < 8; i++) assert.ok(share.keep(anItem(10, owner)));
  assert.equal(share.keep(anItem(10, owner)), false);
  assert.ok(share.keep(anItem(10, {})));
  assert.equal(share.bytes, 80);
});

test("items unused for the idle time are evicted when another is added", (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const share = new ByteShare(800);
  const [left, used] = [anItem(10), anItem(10)];
  share.keep(left);
  share.keep(used);
  used.used = true;
  now = idleMs + 1;
  share.keep(anItem(10));
  assert.deepEqual([left.isKept, used.isKept, share.bytes], [false, true, 20]);
});

test("when all items were used, one is evicted anyway", () => {
  const share = new ByteShare(8000);
  const items = Array.from({ length: 800 }, () => anItem(10));
  for (const item of items) {
    share.keep(item);
    item.used = true;
  }
  assert.ok(share.keep(anItem(10)));
  assert.equal(items.filter(({ isKept }) => !isKept).length, 1);
});

test("one use keeps an item for one round", () => {
  const share = new ByteShare(24, 8);
  const used = anItem(8);
  share.keep(used);
  used.used = true;
  for (let i = 0; i < 4; i++) share.keep(anItem(8));
  assert.equal(used.isKept, true);
  for (let i = 0; i < 3; i++) share.keep(anItem(8));
  assert.equal(used.isKept, false);
});

test("of thousands of added items the newest are kept, and their bytes counted", () => {
  const share = new ByteShare(80, 8);
  const items = Array.from({ length: 5_000 }, () => anItem(8));
  for (const item of items) assert.equal(share.keep(item), true);
  assert.equal(share.bytes, 80);
  assert.deepEqual(
    items.map(({ isKept }) => isKept),
    items.map((_, i) => i >= 4_990),
  );
});

test("an item that is added again must be used again to be kept", () => {
  const share = new ByteShare(24, 8);
  const item = anItem(8);
  item.used = true;
  for (const one of [item, anItem(8), anItem(8), anItem(8)]) share.keep(one);
  assert.equal(item.isKept, false);
});
