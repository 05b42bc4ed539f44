import assert from "node:assert/strict";
import { test } from "node:test";
import { DetachableNodes } from "./detachable-nodes.ts";

test("a node stays detachable while it has the volume, and is forgotten with its volume when nothing involves it", () => {
  const detachable = new DetachableNodes();
  detachable.add("v", "found");
  assert.deepEqual([...detachable.update("v", ["a"], new Set(["a", "found", "other"]))].sort(), ["a", "found"]);
  assert.deepEqual([...detachable.update("v", [], new Set(["a"]))], ["a"], "no longer needed, but attached");
  assert.deepEqual([...detachable.update("w", ["b"], new Set(["b"]))], ["b"]);
  assert.equal(detachable.volumes, 2);
  assert.deepEqual([...detachable.update("v", [], new Set())], []);
  assert.equal(detachable.volumes, 1);
  assert.deepEqual([...detachable.update("v", [], new Set(["a"]))], [], "attached again by another");
  assert.equal(detachable.volumes, 1);
});
