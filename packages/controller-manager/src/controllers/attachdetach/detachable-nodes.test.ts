import assert from "node:assert/strict";
import { test } from "node:test";
import { attachmentName, volumeId } from "@coxswain/apimachinery/volumes/volume-id";
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

test("a volume is found by the name of its attachment to a detachable node", () => {
  const detachable = new DetachableNodes();
  const v = volumeId("disks.example.com", "v");
  const w = volumeId("disks.example.com", "w");
  for (const id of ["flexvolume/disk", v, w]) detachable.add(id, "a");
  assert.equal(detachable.idOf(attachmentName(w, "a"), "a"), w);
  assert.equal(detachable.idOf(attachmentName(w, "b"), "b"), undefined);
  assert.deepEqual([...detachable.of(w)], ["a"]);
  assert.deepEqual([...detachable.of(volumeId("disks.example.com", "x"))], []);
});
