import assert from "node:assert/strict";
import { test } from "node:test";
import { newRecentSet } from "./recent-set.ts";

test("beyond its limit the oldest entry is dropped; adding again counts as new", () => {
  const set = newRecentSet(2);
  for (const member of ["a", "b", "a", "c"]) set.add(member);
  assert.deepEqual(
    ["a", "b", "c"].map((member) => set.has(member)),
    [true, false, true],
  );
});
