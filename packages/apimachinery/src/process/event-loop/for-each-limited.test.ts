import assert from "node:assert/strict";
import { test } from "node:test";
import { forEachLimited } from "./for-each-limited.ts";

test("items are worked on by so many at once, all of them, until one fails", async () => {
  let running = 0;
  let most = 0;
  const done: number[] = [];
  const work = async (item: number): Promise<void> => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    done.push(item);
  };
  await forEachLimited([1, 2, 3, 4, 5], 2, work);
  assert.deepEqual([most, done.toSorted()], [2, [1, 2, 3, 4, 5]]);
  await assert.rejects(
    forEachLimited([1, 2], 2, async (item) => {
      if (item === 2) throw new Error("no");
    }),
    /no/,
  );
});
