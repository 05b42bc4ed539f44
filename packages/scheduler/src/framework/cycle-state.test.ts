import assert from "node:assert/strict";
import { test } from "node:test";
import { type CycleState, cloneState, readState } from "./cycle-state.ts";

test("a state that no earlier point has stored is an error, one that is undefined is not", () => {
  const state: CycleState = new Map([["known", undefined]]);
  assert.equal(readState(state, "known"), undefined);
  assert.throws(() => readState(state, "missing"), /^Error: no cycle state missing$/);
});

test("a copy has clones of what can be cloned, and the same other values under their keys", () => {
  const shared = { of: "all", clone: "no function" };
  const cloned = { name: "copy" };
  const state: CycleState = new Map<string, unknown>([
    ["cloneable", { name: "original", clone: () => cloned }],
    ["shared", shared],
    ["null", null],
  ]);
  const copy = cloneState(state);
  copy.set("later", 1);
  assert.equal(copy.get("cloneable"), cloned);
  assert.equal(copy.get("shared"), shared);
  assert.deepEqual(
    [[...state.keys()], [...copy.keys()]],
    [
      ["cloneable", "shared", "null"],
      ["cloneable", "shared", "null", "later"],
    ],
  );
});
