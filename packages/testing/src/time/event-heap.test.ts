import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { EventHeap, type WorldEvent } from "./event-heap.ts";

const event = (at: number, rank: number): WorldEvent => ({ at, rank, label: "", fire: () => {} });

test("events come in the order of their times, those of one time in the order of their ranks", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.boolean()), { maxLength: 40 }), (steps) => {
      const heap = new EventHeap();
      const expected: WorldEvent[] = [];
      for (const [rank, [at, takes]] of steps.entries()) {
        if (takes) assert.equal(heap.pop(), expected.shift());
        const made = event(at, rank);
        heap.push(made);
        expected.push(made);
        expected.sort((a, b) => a.at - b.at || a.rank - b.rank);
        assert.deepEqual([heap.first, heap.size], [expected[0], expected.length]);
      }
      for (const one of expected) assert.equal(heap.pop(), one);
      assert.deepEqual([heap.pop(), heap.first, heap.size], [undefined, undefined, 0]);
    }),
  );
});
