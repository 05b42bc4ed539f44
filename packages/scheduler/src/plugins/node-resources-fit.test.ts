import assert from "node:assert/strict";
import { test } from "node:test";
import { addPod, newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import { defaultPluginArgs } from "../config/argument-rows.ts";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";
import { insufficient } from "./node-resources-fit.ts";

const requesting = (name: string, requests: Record<string, string>) =>
  newPodInfo(aTestPod(name, { spec: { containers: [{ name: "c", image: "i", resources: { requests } }] } }));

for (const [resource, free, more] of [
  ["cpu", "1", "1001m"],
  ["memory", "1Gi", "1073741825"],
  ["ephemeral-storage", "1Gi", "1073741825"],
  ["hugepages-2Mi", "2Mi", "4Mi"],
  ["example.com/gpu", "1", "2"],
] as const) {
  test(`a pod that requests only ${resource} fits where exactly as much is free, and not with more`, () => {
    const node = aTestNode("a");
    const twice: Record<string, string> = { "hugepages-2Mi": "4Mi", cpu: "2" };
    const allocatable = { ...node.status?.allocatable, [resource]: twice[resource] ?? free.replace("1", "2") };
    const info = newNodeInfo({ ...node, status: { ...node.status, allocatable } });
    addPod(info, requesting("there", { [resource]: free }));
    assert.deepEqual(insufficient(requesting("new", { [resource]: free }), info), []);
    assert.deepEqual(insufficient(requesting("new", { [resource]: more }), info), [`Insufficient ${resource}`]);
  });
}

test("every lacking resource is a reason, in upstream's order", () => {
  const info = newNodeInfo(aTestNode("a", { cpu: "1", pods: "1" }));
  addPod(info, requesting("there", { cpu: "1" }));
  const wanted = { "example.com/gpu": "1", "ephemeral-storage": "1", memory: "9Gi", cpu: "1" };
  assert.deepEqual(insufficient(requesting("new", wanted), info), [
    "Too many pods",
    "Insufficient cpu",
    "Insufficient memory",
    "Insufficient ephemeral-storage",
    "Insufficient example.com/gpu",
  ]);
});

const nodes = [aTestNode("a"), aTestNode("b")];

test("resources ignored by name or group do not exclude nodes", async () => {
  const asking = aTestPod("new", {
    spec: {
      containers: [{ name: "main", image: "x", resources: { requests: { "example.com/gpu": "1", "other.org/disk": "1" } } }],
    },
  });
  const { scoringStrategy } = defaultPluginArgs.NodeResourcesFit;
  const refused = "0/2 nodes are available: 2 Insufficient example.com/gpu, 2 Insufficient other.org/disk.";
  assert.equal(await newTestCluster({ nodes }).place(asking), refused);
  const args = {
    NodeResourcesFit: { scoringStrategy, ignoredResources: ["example.com/gpu"], ignoredResourceGroups: ["other.org"] },
  };
  assert.equal(await newTestCluster({ nodes, args }).place(asking), "a");
  const one = { NodeResourcesFit: { scoringStrategy, ignoredResources: ["example.com/gpu"] } };
  const lack = await newTestCluster({ nodes, args: one }).place(asking);
  assert.equal(lack, "0/2 nodes are available: 2 Insufficient other.org/disk.", "the others count");
});

test("a pod that requests nothing fits an overcommitted node, unless that has too many pods", async () => {
  const full = aTestPod("there", { on: "a", cpu: "6" });
  const idle = aTestPod("new", { spec: { containers: [{ name: "c", image: "i" }] } });
  assert.equal(await newTestCluster({ nodes: [aTestNode("a")], pods: [full] }).place(idle), "a");
  const one = newTestCluster({ nodes: [aTestNode("a", { pods: "1" })], pods: [full] });
  assert.equal(await one.place(idle), "0/1 nodes are available: 1 Too many pods.");
});

test("the last pod that a node has room for fits", async () => {
  const there = aTestPod("there", { on: "a" });
  assert.equal(await newTestCluster({ nodes: [aTestNode("a", { pods: "2" })], pods: [there] }).place(aTestPod("new")), "a");
});

test("only extended resources can be ignored", async () => {
  const { scoringStrategy } = defaultPluginArgs.NodeResourcesFit;
  const requests = { "hugepages-2Mi": "2Mi" };
  const pod = aTestPod("new", { spec: { containers: [{ name: "c", image: "i", resources: { requests } }] } });
  const args = { NodeResourcesFit: { scoringStrategy, ignoredResources: ["hugepages-2Mi"] } };
  const placed = await newTestCluster({ nodes: [aTestNode("a")], args }).place(pod);
  assert.equal(placed, "0/1 nodes are available: 1 Insufficient hugepages-2Mi.");
});
