import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KeyedHeap } from "./heap.ts";

test("gives back in order whatever was added, changed and taken out", () => {
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
