import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce, chunksOf, Pace, sortedInSteps } from "./steps.ts";

for (const length of [0, 1, 1024, 1025, 5000]) {
  test(`${length} items are sorted as by toSorted: those that compare equal keep their order`, () => {
    const items = Array.from({ length }, (_, i) => ({ key: (i * 7919) % 50, i }));
    const compare = (a: { key: number }, b: { key: number }): number => a.key - b.key;
    assert.deepEqual(atOnce(sortedInSteps(items, compare)), items.toSorted(compare));
  });
}

test("slices have the size that is asked for, the last one what is left", () => {
  const sizes = (length: number): number[] => [...chunksOf(new Array(length).fill(0), 3)].map((slice) => slice.length);
  assert.deepEqual([sizes(0), sizes(3), sizes(7)], [[], [3], [3, 3, 1]]);
});

test("a pace of three yields at each third value", () => {
  const pace = new Pace(3);
  const due = Array.from({ length: 7 }, () => pace.isDue());
  assert.deepEqual(due, [false, false, true, false, false, true, false]);
});
