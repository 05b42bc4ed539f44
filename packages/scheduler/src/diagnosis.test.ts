import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newPodInfo } from "./cache/node-info.ts";
import { diagnose, reasonOf } from "./diagnosis.ts";
import { aTestNode, aTestPod, newTestCluster } from "./testing/test-cluster.ts";

function diagnosed(pod: Pod, nodes: readonly Node[], pods: readonly Pod[] = []) {
  const { profile, snapshot, nominator } = newTestCluster({ nodes, pods });
  return diagnose(profile, newPodInfo(pod), snapshot(), nominator);
}
const requesting = (requests: Record<string, string>): Pod =>
  aTestPod("web", { spec: { containers: [{ name: "main", image: "busybox", resources: { requests } }] } });
const withSpec = (spec: object): Pod => aTestPod("web", { spec: spec as Partial<PodSpec> });

test("without nodes the pod waits for one", () => {
  assert.deepEqual(diagnosed(aTestPod("web"), []), { summary: "there are no nodes in the cluster", remedy: "add a node" });
});

test("what refuses the pod on every node is the summary, with its plugin", () => {
  const pod = withSpec({ volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] });
  assert.deepEqual(diagnosed(pod, [aTestNode("a"), aTestNode("b")]), {
    summary: 'persistentvolumeclaim "data" not found',
    details: { plugin: "VolumeBinding", nodes: 2 },
  });
});

test("the failure of a plugin is the summary", () => {
  const labelSelector = { matchExpressions: [{ key: "app", operator: "Sometimes" }] };
  const constraint = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector };
  const { summary, ...rest } = diagnosed(withSpec({ topologySpreadConstraints: [constraint] }), [aTestNode("a")]) as {
    summary: string;
  };
  assert.match(summary, /^running PreFilter plugin "PodTopologySpread": .*Sometimes/);
  assert.deepEqual(rest, {});
});

for (const { resource, has, taken = "0", wants, missing, text = resource } of [
  { resource: "cpu", has: "2", taken: "1500m", wants: "2", missing: "1500m", text: "CPU" },
  { resource: "memory", has: "1Gi", taken: "512Mi", wants: "1Gi", missing: "512Mi" },
  { resource: "memory", has: "1Mi", wants: "1048577", missing: "1" },
  { resource: "memory", has: "1Mi", wants: "2097152", missing: "1Mi" },
  { resource: "memory", has: "1Mi", wants: "2097153", missing: "2Mi" },
  { resource: "ephemeral-storage", has: "1Gi", taken: "512Mi", wants: "3Gi", missing: "2560Mi" },
  { resource: "example.com/gpu", has: "4", taken: "3", wants: "3", missing: "2" },
]) {
  test(`a node of ${has} ${resource}, of which ${taken} are taken, lacks ${missing} for a pod that wants ${wants}`, () => {
    const node = aTestNode("a");
    const allocatable = { cpu: "64", memory: "64Gi", pods: "110", [resource]: has };
    const there = { ...requesting({ [resource]: taken }) };
    const other = {
      ...there,
      metadata: { ...there.metadata, name: "other", uid: "other" },
      spec: { ...there.spec, nodeName: "a" },
    };
    // Of a higher priority, so that no other pod is in the way, and with a second one beside it.
    const answer = diagnosed(requesting({ [resource]: wants }), [{ ...node, status: { ...node.status, allocatable } }], [other]);
    const { summary = "", details } = answer as { summary: string; details: { refused: object[] } };
    assert.ok(summary.startsWith(`needs ${missing} more ${text} on the only node`), summary);
    assert.deepEqual(details.refused, [
      { node: "a", plugin: "NodeResourcesFit", reasons: [`Insufficient ${resource}`], missing: { [resource]: missing } },
    ]);
  });
}

test("a node with too many pods lacks one, or as many as it has too many", () => {
  const there = ["x", "y"].map((name) => aTestPod(name, { on: "a", cpu: "100m" }));
  for (const [pods, missing] of [
    ["2", "1"],
    ["1", "2"],
  ] as const) {
    const { summary, details } = diagnosed(aTestPod("web", { cpu: "100m" }), [aTestNode("a", { pods })], there) as {
      summary: string;
      details: { refused: { missing: object }[] };
    };
    assert.ok(summary.startsWith(`needs ${missing} more pods on the only node`), summary);
    assert.deepEqual(details.refused[0]?.missing, { pods: missing });
  }
});

test("of several nodes the smallest shortage of each resource is named, with the number of nodes that lack it", () => {
  const nodes = [aTestNode("a", { cpu: "1" }), aTestNode("b", { cpu: "3" }), aTestNode("c", { cpu: "2" })];
  const { summary } = diagnosed(requesting({ cpu: "4", memory: "9Gi" }), nodes) as { summary: string };
  assert.equal(summary, "needs 1 more CPU on any of 3 nodes; needs 1024Mi more memory on any of 3 nodes");
});

test("a pod that fits some nodes now is told so, and no pod is in its way", () => {
  const answer = diagnosed(
    aTestPod("web", { cpu: "2" }),
    [aTestNode("a"), aTestNode("b", { cpu: "1" })],
    [aTestPod("other", { on: "b", cpu: "1" })],
  );
  assert.partialDeepStrictEqual(answer, {
    summary: "fits 1 of 2 nodes now, and will be tried again; needs 2 more CPU on any of 1 nodes",
    details: { nodes: 2, fitting: 1 },
    remedy: "lower the requests, remove other pods, or add a node",
  });
  assert.ok(!("related" in answer) && !("plain" in answer));
});

for (const { name, pod, node, summary, remedy } of [
  {
    name: "is cordoned",
    pod: aTestPod("web"),
    node: aTestNode("a", { spec: { unschedulable: true } }),
    summary: "node(s) were unschedulable: the only node",
    remedy: "kubectl uncordon a node",
  },
  {
    name: "has a taint without a value",
    pod: aTestPod("web"),
    node: aTestNode("a", { spec: { taints: [{ key: "x", effect: "NoExecute" }] } }),
    summary: "does not tolerate the taint x:NoExecute of the only node",
    remedy: "remove the taint, or tolerate it in the pod's spec",
  },
  {
    name: "has not the pod's label",
    pod: withSpec({ nodeSelector: { disk: "ssd" } }),
    node: aTestNode("a"),
    summary: "node(s) didn't match Pod's node affinity/selector: the only node",
    remedy: "label a node as the pod's nodeSelector or affinity asks, or change these",
  },
  {
    name: "is not the one that the pod names",
    pod: withSpec({ nodeName: "b" }),
    node: aTestNode("a"),
    summary: "node(s) didn't match the requested node name: the only node",
    remedy: undefined,
  },
]) {
  test(`a node that ${name} is the summary, with a remedy if there is one`, () => {
    const answer = diagnosed(pod, [node]);
    assert.partialDeepStrictEqual(answer, { summary, ...(remedy !== undefined && { remedy }) });
    assert.equal("remedy" in answer, remedy !== undefined);
  });
}

test("twenty nodes are reported, and a pod in the way is looked for on ten, among twenty of each", () => {
  const names = Array.from({ length: 25 }, (_, i) => `n${String(i).padStart(2, "0")}`);
  const pod = aTestPod("web", { cpu: "4" });
  const found = (blocked: string, before: number) => {
    const nodes = names.map((name) => aTestNode(name, { cpu: name === blocked ? "4" : "1" }));
    const small = Array.from({ length: before }, (_, i) => aTestPod(`s${i}`, { on: blocked, cpu: "0" }));
    const pods = [...small, aTestPod("big", { on: blocked, cpu: "4", priority: 1 })];
    return diagnosed(pod, nodes, pods) as {
      summary: string;
      details: { refused: object[]; fitsWithout?: { pod: { name: string } } };
    };
  };
  assert.equal(found("n00", 0).details.refused.length, 20);
  const blocking = (blocked: string, before: number) => found(blocked, before).details.fitsWithout?.pod.name;
  assert.deepEqual([blocking("n09", 0), blocking("n10", 0)], ["big", undefined]);
  assert.deepEqual([blocking("n00", 19), blocking("n00", 20)], ["big", undefined]);
});

for (const [plugins, want] of [
  [[], "NoNodeFits"],
  [["NodeResourcesFit", "NodePorts"], "NoNodeFits"],
  [["Other"], "NoNodeFits"],
  [["NodeResourcesFit"], "InsufficientResources"],
  [["TaintToleration"], "UntoleratedTaint"],
  [["NodeUnschedulable"], "NodesCordoned"],
  [["NodeName"], "NodeNameMismatch"],
  [["NodeAffinity"], "NodeAffinityMismatch"],
  [["NodePorts"], "HostPortTaken"],
  [["InterPodAffinity"], "PodAffinityMismatch"],
  [["PodTopologySpread"], "TopologySpread"],
  [["VolumeBinding"], "VolumesNotBound"],
  [["VolumeZone"], "VolumeInOtherZone"],
  [["VolumeRestrictions"], "VolumeInUse"],
  [["NodeVolumeLimits"], "VolumeLimitReached"],
] as const) {
  test(`the reason for a refusal by ${plugins.join(" and ") || "no plugin"} is ${want}`, () => {
    assert.equal(reasonOf(new Set(plugins)), want);
  });
}
