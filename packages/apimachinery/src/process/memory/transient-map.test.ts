import assert from "node:assert/strict";
import { test } from "node:test";
import { TransientMap } from "./transient-map.ts";

test("returns values that were set and not deleted, under any key", () => {
  const map = new TransientMap<string, { n: number }>();
  for (const [n, key] of ["b", "__proto__", "constructor", "a"].entries()) map.set(key, { n });
  map.set("b", { n: 9 });
  assert.equal(map.size, 4);
  assert.deepEqual([map.get("b"), map.get("__proto__"), map.get("toString")], [{ n: 9 }, { n: 1 }, undefined]);
  map.delete("__proto__");
  map.delete("__proto__");
  map.delete("never");
  assert.equal(map.size, 3);
  assert.deepEqual(map.values(), [{ n: 9 }, { n: 2 }, { n: 3 }]);
  map.clear();
  assert.deepEqual([map.size, map.values(), map.firstKey()], [0, [], undefined]);
});

test("integer keys are kept in insertion order", () => {
  const map = new TransientMap<number, { id: number }>();
  for (const id of [2_000_001, 5, 1_999_999]) map.set(id, { id });
  assert.deepEqual(
    map.values().map(({ id }) => id),
    [5, 1_999_999, 2_000_001],
  );
  assert.equal(Number(map.firstKey()), 5);
  for (let id = 3_000_001; id < 3_010_000; id += 2) {
    map.set(id, { id });
    map.delete(id);
  }
  assert.equal(map.size, 3);
});
