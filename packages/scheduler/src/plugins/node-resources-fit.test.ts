import assert from "node:assert/strict";
import { test } from "node:test";
import { addPod, newNodeInfo, newPodInfo } from "../cache/node-info.ts";
import { aTestNode, aTestPod } from "../testing/test-cluster.ts";
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
