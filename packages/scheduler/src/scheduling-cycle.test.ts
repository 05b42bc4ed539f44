import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { ClusterCache } from "./cache/cluster-cache.ts";
import { newPodInfo } from "./cache/node-info.ts";
import { NoNodesError } from "./framework/status.ts";
import { nodesToFind, selectBest } from "./scheduling-cycle.ts";
import { aTestPod, newTestCluster, aTestNode as node } from "./testing/test-cluster.ts";

let count = 0;
const pod = (spec: Partial<PodSpec> = {}, cpu = "1"): Pod => aTestPod(`pod-${++count}`, { spec, cpu });
const podOn = (on: string, spec: Partial<PodSpec> = {}, cpu = "1"): Pod => aTestPod(`pod-${++count}`, { on, spec, cpu });

const noSchedule = { taints: [{ key: "dedicated", value: "db", effect: "NoSchedule" }] };
const required = (key: string, operator: string, values?: string[]): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator, values }] }] },
    },
  },
});
const port = (hostPort: number): Partial<PodSpec> => ({
  containers: [{ name: "main", image: "busybox", ports: [{ containerPort: 80, hostPort }] }],
});

for (const { name, wanted, nodes, present, want } of [
  {
    name: "prefers the emptier node",
    wanted: pod(),
    nodes: [node("a"), node("b")],
    present: [podOn("a")],
    want: "b",
  },
  {
    name: "names what is short",
    wanted: pod({}, "5"),
    nodes: [node("a"), node("b")],
    want: "0/2 nodes are available: 2 Insufficient cpu.",
  },
  {
    name: "counts what is taken",
    wanted: pod({}, "2"),
    nodes: [node("a")],
    present: [podOn("a", {}, "3")],
    want: "0/1 nodes are available: 1 Insufficient cpu.",
  },
  {
    name: "the number of pods has a limit",
    wanted: pod(),
    nodes: [node("a", { pods: "1" })],
    present: [podOn("a")],
    want: "0/1 nodes are available: 1 Too many pods.",
  },
  {
    name: "keeps off a cordoned node",
    wanted: pod(),
    nodes: [node("a", { spec: { unschedulable: true } })],
    want: "0/1 nodes are available: 1 node(s) were unschedulable.",
  },
  {
    name: "a pod that tolerates the taint of cordoned nodes is placed on one",
    wanted: pod({ tolerations: [{ key: "node.kubernetes.io/unschedulable", operator: "Exists", effect: "NoSchedule" }] }),
    nodes: [node("a", { spec: { unschedulable: true } })],
    want: "a",
  },
  {
    name: "keeps off a tainted node",
    wanted: pod(),
    nodes: [node("a", { spec: noSchedule })],
    want: "0/1 nodes are available: 1 node(s) had taint {dedicated: db}, that the pod didn't tolerate.",
  },
  {
    name: "a toleration opens it",
    wanted: pod({ tolerations: [{ key: "dedicated", operator: "Exists" }] }),
    nodes: [node("a", { spec: noSchedule })],
    want: "a",
  },
  {
    name: "a toleration of another value does not",
    wanted: pod({ tolerations: [{ key: "dedicated", value: "web" }] }),
    nodes: [node("a", { spec: noSchedule }), node("b", { cpu: "0" })],
    want: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had taint {dedicated: db}, that the pod didn't tolerate.",
  },
  {
    name: "a node selector picks its node",
    wanted: pod({ nodeSelector: { disk: "ssd" } }),
    nodes: [node("a"), node("b", { labels: { disk: "ssd" } })],
    want: "b",
  },
  {
    name: "required affinity with In",
    wanted: pod(required("zone", "In", ["x", "y"])),
    nodes: [node("a", { labels: { zone: "z" } }), node("b", { labels: { zone: "y" } })],
    want: "b",
  },
  {
    name: "required affinity with Gt",
    wanted: pod(required("cores", "Gt", ["8"])),
    nodes: [node("a", { labels: { cores: "8" } }), node("b", { labels: { cores: "16" } })],
    want: "b",
  },
  {
    name: "required affinity that nothing meets",
    wanted: pod(required("zone", "Exists")),
    nodes: [node("a")],
    want: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
  },
  {
    name: "a host port is taken once",
    wanted: pod(port(8080)),
    nodes: [node("a")],
    present: [podOn("a", port(8080))],
    want: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
  },
  { name: "a pod that names its node", wanted: pod({ nodeName: "b" }), nodes: [node("a"), node("b")], want: "b" },
]) {
  test(name, async () => assert.equal(await newTestCluster({ nodes, pods: present ?? [] }).place(wanted), want));
}

test("without nodes the error says that no nodes are available", async () => {
  const failure = await newTestCluster()
    .decide(pod())
    .catch((err: unknown) => err);
  assert.ok(failure instanceof NoNodesError);
  assert.equal(failure.message, "no nodes available to schedule pods");
});

test("the largest init container counts where it asks for more than the containers together", () => {
  const info = newPodInfo(
    pod(
      {
        initContainers: [{ name: "init", image: "busybox", resources: { requests: { cpu: "3" } } }],
        overhead: { cpu: "250m" },
      },
      "500m",
    ),
  );
  assert.equal(info.requests.milliCpu, 3_250);
});

test("an assumed pod counts until it is forgotten, and one that the API never showed until it expires", async () => {
  const clock = newFakeClock();
  const cache = new ClusterCache(clock);
  cache.setNode(node("a"));
  const used = (): number => cache.snapshot().get("a")?.requested.milliCpu ?? -1;
  const first = pod();
  cache.assume(newPodInfo(first), "a");
  assert.equal(used(), 1_000);
  cache.forget(first);
  assert.equal(used(), 0);
  const second = pod();
  cache.assume(newPodInfo(second), "a");
  cache.finishBinding(second);
  await clock.advance(16 * 60_000);
  assert.equal(used(), 0);
});

for (const [all, percentage, want] of [
  [50, 0, 50],
  [1_000, 0, 420],
  [5_000, 0, 500],
  [10_000, 0, 500],
  [99, 1, 99],
  [1_063, 0, 446],
  [5_624, 0, 337],
  [1_000, 70, 700],
  [1_009, 99, 998],
  [1_009, 100, 1_009],
  [150, 10, 100],
] as const) {
  test(`of ${all} nodes at ${percentage} % it looks for ${want}`, () => assert.equal(nodesToFind(all, percentage), want));
}

test("selects one of the best nodes at random", () => {
  assert.equal(
    selectBest([1, 5, 3], () => 0),
    1,
  );
  assert.equal(
    selectBest([5, 1, 5], () => 0),
    2,
  );
  assert.equal(
    selectBest([5, 1, 5], () => 0.99),
    0,
  );
});

test("each of the best nodes has the same probability, however many worse ones tied before", () => {
  const chosen = (scores: readonly number[]): number => selectBest(scores, () => 0.4);
  assert.deepEqual([chosen([5, 5, 5]), chosen([1, 1, 5, 5])], [1, 3]);
});

test("a decision names the first three of equal nodes in order, and the next cycle starts at the first node again", async () => {
  const nodes = ["a", "b", "c", "d"].map((name) => node(name));
  const { best, nextStartIndex } = await newTestCluster({ nodes }).decide(pod());
  assert.deepEqual([best.map((scored) => scored.node), nextStartIndex], [["a", "b", "c"], 0]);
});

test("the next cycle starts after the last node that was looked at, feasible or not", async () => {
  const small = newTestCluster({ nodes: [node("full", { cpu: "0" }), node("b"), node("c")] });
  assert.equal((await small.decide(aTestPod("new"))).nextStartIndex, 0);
  // Of 200 nodes the search ends at 100 feasible ones.
  const nodes = Array.from({ length: 200 }, (_, i) => node(`n${i}`, { cpu: i < 10 || i === 199 ? "0" : "4" }));
  const cluster = newTestCluster({ nodes });
  const { evaluatedNodes, feasibleNodes, nextStartIndex } = await cluster.decide(aTestPod("new"));
  assert.deepEqual([evaluatedNodes, feasibleNodes, nextStartIndex], [110, 100, 110]);
  const nominated = await cluster.decide(aTestPod("new", { status: { nominatedNodeName: "n199" } }));
  assert.deepEqual([nominated.evaluatedNodes, nominated.feasibleNodes], [111, 100], "with the one that was tried first");
});
