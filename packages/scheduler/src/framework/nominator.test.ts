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

test("several pods are nominated to a node, each to one; a later nomination moves it", () => {
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

test("a nomination that the API does not show yet outlives an update about something else", () => {
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

test("a pod that has a node or is gone is nominated to none, and what it had is given up", () => {
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

test("a pod made anew under its name is another one", () => {
  const { nominator, on } = setUp();
  nominator.set(nominated("x"), "a");
  const anew = aTestPod("x", { metadata: { uid: "second" } });
  nominator.delete(anew);
  assert.deepEqual(on("a"), ["x"]);
  nominator.set(anew, "a");
  nominator.delete(nominated("x"));
  assert.deepEqual(on("a"), ["x"]);
});
