import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
import { newClusterCache } from "./cluster-cache.ts";
import { newPodInfo } from "./node-info.ts";

const withImages = (name: string, ...names: string[]): Node => {
  const node = aTestNode(name);
  return { ...node, status: { ...node.status, images: [{ names, sizeBytes: 1 }] } };
};

test("nodes that have an image are counted through changes of nodes and their end, each once", () => {
  const cache = newClusterCache(newFakeClock());
  const count = (): number[] => ["x", "y"].map((image) => cache.snapshot().nodesWithImage(image));
  cache.setNode(withImages("a", "x", "x", "y"));
  cache.setNode(withImages("b", "x"));
  assert.deepEqual(count(), [2, 1]);
  cache.setNode(withImages("a", "y"));
  assert.deepEqual(count(), [1, 1]);
  cache.setPod(aTestPod("web", { on: "a" }));
  cache.removeNode(aTestNode("a"));
  cache.removeNode(aTestNode("a"));
  assert.deepEqual(count(), [1, 0]);
  cache.setNode(withImages("a", "y"));
  assert.deepEqual(count(), [1, 1]);
});

test("a pod whose binding ended counts until the API shows it, a quarter of an hour at most", async () => {
  const clock = newFakeClock();
  const cache = newClusterCache(clock);
  cache.setNode(aTestNode("a"));
  const [lost, shown, binding] = ["lost", "shown", "binding"].map((name) => aTestPod(name)) as [never, never, never];
  for (const pod of [lost, shown, binding]) cache.assume(newPodInfo(pod), "a");
  for (const pod of [lost, shown]) cache.finishBinding(pod);
  cache.setPod(aTestPod("shown", { on: "a" }));
  const names = (): string[] => [...(cache.snapshot().get("a")?.pods.keys() ?? [])].sort();
  clock.setOn(3_600_000);
  await clock.advance(15 * 60_000 - 1);
  assert.deepEqual(names(), ["binding", "lost", "shown"]);
  await clock.advance(1);
  assert.deepEqual(names(), ["binding", "shown"]);
  assert.equal(cache.counts.assumedPods, 1);
});

test("pods of a node that went and came back are still on it", () => {
  const cache = newClusterCache(newFakeClock());
  cache.setNode(aTestNode("a"));
  cache.setPod(aTestPod("web", { on: "a", cpu: "3" }));
  cache.removeNode(aTestNode("a"));
  assert.equal(cache.snapshot().get("a"), undefined);
  assert.deepEqual(cache.snapshot().nodes, []);
  cache.setNode(aTestNode("a"));
  assert.equal(cache.snapshot().get("a")?.requested.milliCpu, 3_000);
});
