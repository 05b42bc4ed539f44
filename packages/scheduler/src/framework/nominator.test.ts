import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aTestPod } from "../testing/test-cluster.ts";
import { newNominator } from "./nominator.ts";

const nominated = (name: string, nominatedNodeName?: string): Pod =>
  aTestPod(name, nominatedNodeName === undefined ? {} : { status: { nominatedNodeName } });

function setUp(isLive?: (pod: Pod) => boolean) {
  const nominator = newNominator(isLive);
  const on = (node: string) => nominator.onNode(node).map(({ pod }) => pod.metadata.name);
  return { nominator, on };
}

test("a node can have several nominated pods; a later nomination moves a pod to another node", () => {
  const { nominator, on } = setUp();
  nominator.set(nominated("x", "a"));
  nominator.set(nominated("y"), "a");
  assert.deepEqual(on("a"), ["x", "y"]);
  nominator.set(nominated("x", "a"), "b");
  assert.deepEqual([on("a"), on("b")], [["y"], ["x"]]);
  nominator.set(nominated("x", "a"), "");
  assert.deepEqual([on("a"), on("b")], [["y"], []]);
  nominator.delete(nominated("y"));
  nominator.delete(nominated("y"));
  assert.deepEqual(on("a"), []);
});

test("a nomination that the API does not show yet survives another update of the pod", () => {
  const { nominator, on } = setUp();
  nominator.set(nominated("x"), "a");
  nominator.update(nominated("x"), nominated("x"));
  assert.deepEqual(on("a"), ["x"]);
  nominator.update(nominated("x"), nominated("x", "b"));
  assert.deepEqual([on("a"), on("b")], [[], ["x"]]);
  nominator.update(nominated("x", "b"), nominated("x"));
  assert.deepEqual(on("b"), [], "taken back in the API, it is over");
  nominator.update(undefined, nominated("y"));
  assert.deepEqual([on("a"), on("b")], [[], []]);
});

test("a pod that is bound or deleted loses its nomination", () => {
  const gone = new Set<string>();
  const { nominator, on } = setUp((pod) => !gone.has(pod.metadata.name ?? ""));
  nominator.set(nominated("x", "a"));
  nominator.set(aTestPod("x", { on: "b", status: { nominatedNodeName: "a" } }));
  assert.deepEqual(on("a"), []);
  nominator.set(nominated("y", "a"));
  gone.add("y");
  nominator.set(nominated("y", "a"));
  assert.deepEqual(on("a"), []);
});

test("a recreated pod does not inherit the nomination of its predecessor", () => {
  const { nominator, on } = setUp();
  nominator.set(nominated("x"), "a");
  const anew = aTestPod("x", { metadata: { uid: "second" } });
  nominator.delete(anew);
  assert.deepEqual(on("a"), ["x"]);
  nominator.set(anew, "a");
  nominator.delete(nominated("x"));
  assert.deepEqual(on("a"), ["x"]);
});
