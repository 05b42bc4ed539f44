import assert from "node:assert/strict";
import { test } from "node:test";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";

test("nodes with fewer PreferNoSchedule taints that the pod does not tolerate are preferred; other taints do not count", () => {
  const taint = (key: string, effect: string) => ({ key, value: "v", effect });
  const [first, second] = ["one", "two"].map((key) => taint(key, "PreferNoSchedule"));
  const tainted = (name: string, ...taints: object[]) => aTestNode(name, { spec: { taints } });
  const cluster = newTestCluster({
    nodes: [
      tainted("two", first as object, second as object),
      tainted("one", first as object, taint("x", "NoExecute"), taint("y", "NoSchedule")),
      tainted("tolerated", taint("three", "PreferNoSchedule")),
      tainted("free"),
    ],
  });
  const tolerations = [{ key: "three", operator: "Exists" as const }];
  const scores = cluster.scores("TaintToleration", aTestPod("new", { spec: { tolerations } }));
  assert.deepEqual(scores, { two: 0, one: 50, tolerated: 100, free: 100 });
});

for (const { name, taints, tolerated = [], want } of [
  { name: "a NoSchedule taint", taints: ["NoSchedule"], want: "one" },
  { name: "a NoExecute taint", taints: ["NoExecute"], want: "one" },
  { name: "a PreferNoSchedule taint", taints: ["PreferNoSchedule"], want: undefined },
  { name: "the second taint", taints: ["NoSchedule", "NoExecute"], tolerated: ["one"], want: "two" },
  { name: "two taints that it tolerates", taints: ["NoSchedule", "NoExecute"], tolerated: ["one", "two"], want: undefined },
  { name: "a taint after one that only prefers", taints: ["PreferNoSchedule", "NoSchedule"], want: "two" },
] as { name: string; taints: string[]; tolerated?: string[]; want: string | undefined }[])
  test(`a node with ${name} is ${want === undefined ? "accepted" : `refused for the taint ${want}`}`, async () => {
    const node = aTestNode("a", {
      spec: { taints: taints.map((effect, i) => ({ key: ["one", "two"][i], effect, value: "v" })) },
    });
    const tolerations = tolerated.map((key) => ({ key, operator: "Exists" as const }));
    const placed = await newTestCluster({ nodes: [node] }).place(aTestPod("new", { spec: { tolerations } }));
    const refusal = `0/1 nodes are available: 1 node(s) had taint {${want}: v}, that the pod didn't tolerate.`;
    assert.equal(placed, want === undefined ? "a" : refusal);
  });
