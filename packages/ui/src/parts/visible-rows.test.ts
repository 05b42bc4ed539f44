import assert from "node:assert/strict";
import { test } from "node:test";
import { indexAfterKey, topShowing, visibleRows } from "./visible-rows.ts";

for (const { name, top, count, beyond, want } of [
  { name: "the start of a list has no rows above", top: 0, count: 1000, beyond: 8, want: { first: 0, last: 18 } },
  {
    name: "rows above and below the visible ones are included",
    top: 1000,
    count: 1000,
    beyond: 8,
    want: { first: 42, last: 68 },
  },
  { name: "a row that is visible in part is included", top: 1010, count: 1000, beyond: 0, want: { first: 50, last: 61 } },
  { name: "the end of a list has no rows below", top: 19_800, count: 1000, beyond: 8, want: { first: 982, last: 1000 } },
  { name: "an empty list has none", top: 0, count: 0, beyond: 8, want: { first: 0, last: 0 } },
]) {
  test(name, () => assert.deepEqual(visibleRows({ top, height: 200, rowHeight: 20 }, count, beyond), want));
}

for (const { key, from, want } of [
  { key: "ArrowDown", from: 4, want: 5 },
  { key: "j", from: 9, want: 9 },
  { key: "ArrowUp", from: 4, want: 3 },
  { key: "k", from: 0, want: 0 },
  { key: "PageDown", from: 4, want: 7 },
  { key: "PageUp", from: 2, want: 0 },
  { key: "Home", from: 4, want: 0 },
  { key: "End", from: 4, want: 9 },
  { key: "Enter", from: 4, want: undefined },
  { key: "constructor", from: 4, want: undefined },
]) {
  test(`of ten rows, ${key} leads from ${from} to ${want ?? "no other"}`, () => {
    assert.equal(indexAfterKey(key, from, { count: 10, page: 3 }), want);
  });
}

test("a key leads to the first row of an empty list", () => {
  assert.equal(indexAfterKey("End", 0, { count: 0, page: 3 }), 0);
});

for (const { name, index, want } of [
  { name: "a visible row does not scroll", index: 52, want: 1000 },
  { name: "a row above scrolls to the upper end", index: 10, want: 200 },
  { name: "a row below scrolls to the lower end, below the head", index: 60, want: 1050 },
]) {
  test(name, () => assert.equal(topShowing(index, { top: 1000, height: 200, rowHeight: 20 }, 30), want));
}
