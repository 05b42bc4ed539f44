import assert from "node:assert/strict";
import { test } from "node:test";
import { normalizeByLargest } from "./normalize.ts";

for (const { scores, scaled, inverted } of [
  { scores: [1, 2, 3], scaled: [33, 66, 100], inverted: [67, 34, 0] },
  { scores: [0, 200], scaled: [0, 100], inverted: [100, 0] },
  { scores: [0, 0], scaled: [0, 0], inverted: [100, 100] },
  { scores: [], scaled: [], inverted: [] },
])
  test(`the scores ${scores.join(", ")} become ${scaled.join(", ")}, or inverted ${inverted.join(", ")}`, () => {
    const [straight, turned] = [[...scores], [...scores]];
    normalizeByLargest(straight, false);
    normalizeByLargest(turned, true);
    assert.deepEqual([straight, turned], [scaled, inverted]);
  });
