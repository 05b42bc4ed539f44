import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { countIndexes, firstMissing, formatIndexes, hasIndex, parseIndexes, withIndexes } from "./completion-indexes.ts";

for (const { text, completions = 100, want = text } of [
  { text: "" },
  { text: "0" },
  { text: "0,1" },
  { text: "1,3-5,7" },
  { text: "0-2,3,4", want: "0-4" },
  { text: "1,x,3-y,5", want: "1,5" },
  { text: "1,3-9,12", completions: 7, want: "1,3-6" },
]) {
  test(`reads and writes ${JSON.stringify(text)} of ${completions}`, () => {
    assert.equal(formatIndexes(parseIndexes(text, completions)), want);
  });
}

test("holds the same indexes as a set would, however they come", () => {
  const indexes = fc.array(fc.nat(40), { maxLength: 30 }).map((all) => [...new Set(all)].toSorted((a, b) => a - b));
  fc.assert(
    fc.property(indexes, indexes, (first, second) => {
      const intervals = withIndexes(withIndexes([], first), second);
      const wanted = [...new Set([...first, ...second])].toSorted((a, b) => a - b);
      assert.equal(countIndexes(intervals), wanted.length);
      assert.deepEqual(
        Array.from({ length: 41 }, (_, i) => i).filter((i) => hasIndex(intervals, i)),
        wanted,
      );
      assert.deepEqual(parseIndexes(formatIndexes(intervals), 41), intervals);
      const missing = Array.from({ length: 41 }, (_, i) => i).filter((i) => !wanted.includes(i));
      assert.deepEqual(firstMissing(intervals, 5, 41), missing.slice(0, 5));
    }),
  );
});
