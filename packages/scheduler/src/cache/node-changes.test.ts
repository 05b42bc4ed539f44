import assert from "node:assert/strict";
import { test } from "node:test";
import { aTestNode } from "../testing/test-cluster.ts";
import { NodeChanges } from "./node-changes.ts";
import { newNodeInfo } from "./node-info.ts";

const [a, b] = ["a", "b"].map((name) => newNodeInfo(aTestNode(name)));

test("the nodes that changed after a position are told once each", () => {
  const changes = new NodeChanges();
  changes.note(a!);
  const { position } = changes;
  for (const node of [b!, b!, a!]) changes.note(node);
  assert.deepEqual([...(changes.since(position) ?? [])], [b, a]);
  assert.deepEqual([...(changes.since(changes.position) ?? [])], []);
});

test("of ten thousand changes the older half is forgotten with the next; positions stay, and who is behind begins again", () => {
  const changes = new NodeChanges();
  for (let i = 0; i < 10_000; i++) changes.note(a!);
  assert.equal(changes.since(0)?.size, 1);
  changes.note(b!);
  assert.equal(changes.position, 10_001);
  assert.equal(changes.since(4_999), undefined);
  assert.deepEqual([...(changes.since(5_000) ?? [])], [a, b]);
  assert.deepEqual([...(changes.since(10_000) ?? [])], [b]);
  for (let i = 0; i < 5_000; i++) changes.note(b!);
  assert.deepEqual([changes.position, changes.since(9_999), changes.since(10_000)?.size], [15_001, undefined, 1]);
});
