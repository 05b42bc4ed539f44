import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { KeyedHeap } from "./heap.ts";

test("items come out in order after additions, changes and removals", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20), fc.integer(), fc.boolean())), (steps) => {
      const heap = new KeyedHeap<{ key: string; rank: number }>(
        ({ key }) => key,
        (a, b) => a.rank - b.rank,
      );
      const model = new Map<string, number>();
      for (const [id, rank, isDeletion] of steps) {
        const key = String(id);
        if (isDeletion) {
          assert.equal(heap.delete(key)?.rank, model.get(key));
          model.delete(key);
        } else {
          heap.set({ key, rank });
          model.set(key, rank);
        }
        assert.equal(heap.size, model.size);
      }
      const popped: number[] = [];
      for (let item = heap.pop(); item !== undefined; item = heap.pop()) popped.push(item.rank);
      assert.deepEqual(
        popped,
        [...model.values()].toSorted((a, b) => a - b),
      );
    }),
  );
});

test("many items come out in order, also those whose rank has changed", () => {
  const heap = new KeyedHeap<{ key: string; rank: number }>(
    ({ key }) => key,
    (a, b) => a.rank - b.rank,
  );
  const count = 64;
  for (let i = 0; i < count; i++) heap.set({ key: String(i), rank: (i * 37) % count });
  for (let i = 0; i < count; i += 3) heap.set({ key: String(i), rank: (i * 11) % count });
  for (let i = 1; i < count; i += 5) heap.delete(String(i));
  const popped: number[] = [];
  for (let item = heap.pop(); item !== undefined; item = heap.pop()) popped.push(item.rank);
  assert.deepEqual(
    popped,
    popped.toSorted((a, b) => a - b),
  );
  assert.equal(popped.length, count - 13);
});
