import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod, TopologySpreadConstraint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { replicaSets, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { addPod, cloneNodeInfo, newNodeInfo, newPodInfo, removePod } from "../cache/node-info.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import { cloneState } from "../framework/cycle-state.ts";
import { runFilters, runPreFilter } from "../profile.ts";
import { aTestNode, aTestPod, newTestCluster, type TestClusterOptions } from "../testing/test-cluster.ts";
import { countOf, parseConstraints, TopologyCounts } from "./topology-counts.ts";

const zoneKey = "topology.kubernetes.io/zone";
const hostKey = "kubernetes.io/hostname";
const inZone = (name: string, zone: string, more: Record<string, string> = {}): Node =>
  aTestNode(name, { labels: { [zoneKey]: zone, ...more } });
const web = { app: "web" };
const hard = (topologyKey: string, maxSkew = 1): TopologySpreadConstraint => ({
  maxSkew,
  topologyKey,
  whenUnsatisfiable: "DoNotSchedule",
  labelSelector: { matchLabels: web },
});
const spread = (...topologySpreadConstraints: TopologySpreadConstraint[]): Pod =>
  aTestPod("new", { labels: web, spec: { topologySpreadConstraints } });
let count = 0;
const webOn = (on: string, more: object = {}): Pod => aTestPod(`web-${++count}`, { on, labels: web, cpu: "100m", ...more });
const refusal = "node(s) didn't match pod topology spread constraints";
const twoZones = [inZone("a", "x"), inZone("b", "x"), inZone("c", "y")];

for (const { name, wanted, nodes = twoZones, pods = [], want } of [
  { name: "the zone with fewer pods is the only one", wanted: spread(hard(zoneKey)), pods: [webOn("a")], want: "c" },
  {
    name: "a skew of two leaves room where one does not",
    wanted: spread(hard(zoneKey, 2)),
    nodes: [inZone("a", "x"), aTestNode("full", { cpu: "0", labels: { [zoneKey]: "y" } })],
    pods: [webOn("a")],
    want: "a",
  },
  {
    name: "a zone that is full for other reasons still counts",
    wanted: spread(hard(zoneKey)),
    nodes: [inZone("a", "x"), aTestNode("full", { cpu: "0", labels: { [zoneKey]: "y" } })],
    pods: [webOn("a")],
    want: `0/2 nodes are available: 1 Insufficient cpu, 1 ${refusal}.`,
  },
  {
    name: "both constraints have to hold",
    wanted: spread(hard(zoneKey), hard(hostKey)),
    pods: [webOn("a"), webOn("c")],
    want: "b",
  },
  {
    name: "a node without the label is out of the question",
    wanted: spread(hard(zoneKey)),
    nodes: [aTestNode("bare")],
    want: `0/1 nodes are available: 1 ${refusal} (missing required label).`,
  },
  {
    name: "a label that every object seems to have is none",
    wanted: spread(hard("constructor")),
    nodes: [aTestNode("bare")],
    want: `0/1 nodes are available: 1 ${refusal} (missing required label).`,
  },
  {
    name: "pods of other namespaces and those that are going do not count",
    wanted: spread(hard(zoneKey)),
    nodes: [inZone("a", "x"), aTestNode("full", { cpu: "0", labels: { [zoneKey]: "y" } })],
    pods: [webOn("a", { namespace: "other" }), webOn("a", { metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } })],
    want: "a",
  },
  {
    name: "nodes that the pod may not run on are no domains",
    wanted: aTestPod("new", { labels: web, spec: { nodeSelector: { pool: "1" }, topologySpreadConstraints: [hard(zoneKey)] } }),
    nodes: [inZone("a", "x", { pool: "1" }), inZone("c", "y")],
    pods: [webOn("a")],
    want: "a",
  },
  {
    name: "in a domain where the pod may run, the pods of all its nodes count",
    wanted: aTestPod("new", { labels: web, spec: { nodeSelector: { pool: "1" }, topologySpreadConstraints: [hard(zoneKey)] } }),
    nodes: [
      inZone("a", "x", { pool: "1" }),
      inZone("b", "x"),
      aTestNode("full", { cpu: "0", labels: { [zoneKey]: "y", pool: "1" } }),
    ],
    pods: [webOn("b")],
    want: `0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, 1 ${refusal}.`,
  },
  {
    name: "a domain whose nodes lack another key counts as empty: its nodes are refused for the key",
    wanted: spread(hard(zoneKey), hard("rack")),
    nodes: [inZone("bare", "x"), aTestNode("full", { cpu: "0", labels: { [zoneKey]: "y", rack: "1" } })],
    pods: [webOn("bare"), webOn("bare")],
    want: `0/2 nodes are available: 1 Insufficient cpu, 1 ${refusal} (missing required label).`,
  },
  {
    name: "a pod that its own selector does not mean is no more",
    wanted: aTestPod("new", { labels: { app: "db" }, spec: { topologySpreadConstraints: [hard(zoneKey)] } }),
    nodes: [inZone("a", "x"), aTestNode("full", { cpu: "0", labels: { [zoneKey]: "y" } })],
    pods: [webOn("a")],
    want: "a",
  },
]) {
  test(name, async () => assert.equal(await newTestCluster({ nodes, pods }).place(wanted), want));
}

const serviceOfWeb = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace: "default" },
  spec: { selector: web },
};

for (const { name, options, want } of [
  {
    name: "prefers zones and hosts with fewer pods of the same service, by the system's defaults",
    options: { objects: [[services, serviceOfWeb]] },
    want: ["c", "b", "a"],
  },
  {
    name: "prefers them for pods of the same replica set",
    options: { objects: [[replicaSets, aReplicaSet({ name: "web" })]] },
    want: ["c", "b", "a"],
  },
  { name: "a pod that belongs to nothing is spread over nothing", options: {}, want: ["a", "b", "c"] },
  {
    name: "a list of constraints takes the place of the system's defaults",
    options: {
      objects: [[services, serviceOfWeb]],
      args: {
        PodTopologySpread: {
          defaultingType: "List",
          defaultConstraints: [{ maxSkew: 1, topologyKey: zoneKey, whenUnsatisfiable: "ScheduleAnyway" }],
        },
      },
    },
    want: ["c", "a", "b"],
  },
] as const) {
  test(name, () => {
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web-uid", controller: true };
    const wanted = aTestPod("new", { labels: web, metadata: { ownerReferences: [owner] } });
    const cluster = newTestCluster({ nodes: twoZones, pods: [webOn("a")], ...(options as TestClusterOptions) });
    const scores = Object.entries(cluster.scores("PodTopologySpread", wanted));
    assert.deepEqual(
      scores.toSorted(([first, a], [second, b]) => b - a || (first < second ? -1 : 1)).map(([node]) => node),
      want,
    );
  });
}

test("the system's defaults tolerate a skew of 3 hosts and of 5 zones", () => {
  const cluster = newTestCluster({ nodes: twoZones, pods: [webOn("a")], objects: [[services, serviceOfWeb]] });
  // Before they are normalized: 8, 7 and 6.
  assert.deepEqual(cluster.scores("PodTopologySpread", aTestPod("new", { labels: web })), { a: 75, b: 87, c: 100 });
});

test("each constraint has its own weight, which grows with the number of its domains", () => {
  const pods = [...Array.from({ length: 10 }, () => webOn("b")), ...Array.from({ length: 5 }, () => webOn("c"))];
  const soft = [hard(zoneKey), hard(hostKey)].map((one) => ({ ...one, whenUnsatisfiable: "ScheduleAnyway" as const }));
  const { a = 0, c = 0 } = newTestCluster({ nodes: twoZones, pods }).scores("PodTopologySpread", spread(...soft));
  assert.ok(a > c, "5 pods on one of three hosts weigh more than 5 pods more in one of two zones");
});

test("nodes without a zone are still spread over by host, and score nothing by constraints of the pod's own", () => {
  const nodes = [aTestNode("a"), aTestNode("b")];
  const byDefault = newTestCluster({ nodes, pods: [webOn("a")], objects: [[services, serviceOfWeb]] });
  const plain = byDefault.scores("PodTopologySpread", aTestPod("new", { labels: web }));
  assert.ok((plain["b"] as number) > (plain["a"] as number), JSON.stringify(plain));
  const own = spread({ ...hard(zoneKey), whenUnsatisfiable: "ScheduleAnyway" });
  assert.deepEqual(newTestCluster({ nodes, pods: [webOn("a")] }).scores("PodTopologySpread", own), { a: 0, b: 0 });
});

test("a node without a zone scores nothing beside others, which score by their pods", () => {
  const nodes = [aTestNode("none"), inZone("a", "x"), inZone("b", "y")];
  const cluster = newTestCluster({ nodes, pods: [webOn("a"), webOn("none")] });
  assert.deepEqual(cluster.scores("PodTopologySpread", spread(soft(zoneKey))), { none: 0, a: 0, b: 100 });
});

test("a node without one of the keys counts neither as a zone nor as a host", () => {
  const pods = Array.from({ length: 5 }, () => webOn("a"));
  const cluster = newTestCluster({ nodes: [...twoZones, aTestNode("bare")], pods });
  const scores = cluster.scores("PodTopologySpread", spread(soft(zoneKey), soft(hostKey)));
  // Before they are normalized: 14 and 6 of 14; with four hosts 15 and 6 of 15.
  assert.deepEqual(scores, { a: 0, b: 57, c: 100, bare: 0 });
});

test("RemovePod lowers the count of a simulation, and the original count stays", () => {
  const taken = webOn("a");
  const cluster = newTestCluster({ nodes: twoZones, pods: [taken] });
  const { profile } = cluster;
  const snapshot = cluster.snapshot();
  const state: CycleState = new Map();
  const pod = newPodInfo(spread(hard(zoneKey)));
  assert.equal(runPreFilter(profile, state, pod, snapshot), undefined);
  const node = snapshot.get("a");
  const other = node?.pods.get(taken.metadata.uid ?? "");
  assert.ok(node && other);
  const trial = cloneState(state);
  const trialNode = cloneNodeInfo(node);
  removePod(trialNode, taken.metadata.uid ?? "");
  for (const plugin of profile.at.preFilter) plugin.removePod?.(trial, pod, other, trialNode);
  assert.equal(runFilters(profile.at.filter, trial, pod, trialNode), undefined);
  assert.equal(runFilters(profile.at.filter, state, pod, node)?.plugin, "PodTopologySpread");
  addPod(trialNode, other);
  for (const plugin of profile.at.preFilter) plugin.addPod?.(trial, pod, other, trialNode);
  assert.equal(runFilters(profile.at.filter, trial, pod, trialNode)?.plugin, "PodTopologySpread");
});

test("RemovePod of a pod of another namespace does not change the count", () => {
  const foreign = webOn("a", { namespace: "other" });
  const cluster = newTestCluster({ nodes: twoZones, pods: [webOn("a"), foreign] });
  const { profile } = cluster;
  const state: CycleState = new Map();
  const pod = newPodInfo(spread(hard(zoneKey)));
  runPreFilter(profile, state, pod, cluster.snapshot());
  const node = cluster.snapshot().get("a");
  assert.ok(node);
  for (const plugin of profile.at.preFilter) plugin.removePod?.(state, pod, newPodInfo(foreign), node);
  assert.equal(runFilters(profile.at.filter, state, pod, node)?.plugin, "PodTopologySpread");
});

test("RemovePod on a node that the pod may not use does not change the count", () => {
  const beside = webOn("b");
  const nodes = [inZone("a", "x", { pool: "1" }), inZone("b", "x"), inZone("c", "y", { pool: "1" })];
  const cluster = newTestCluster({ nodes, pods: [beside] });
  const { profile } = cluster;
  const state: CycleState = new Map();
  const spec = { nodeSelector: { pool: "1" }, topologySpreadConstraints: [hard(zoneKey)] };
  const pod = newPodInfo(aTestPod("new", { labels: web, spec }));
  runPreFilter(profile, state, pod, cluster.snapshot());
  const [a, b] = ["a", "b"].map((name) => cluster.snapshot().get(name));
  assert.ok(a && b);
  for (const plugin of profile.at.preFilter) plugin.removePod?.(state, pod, newPodInfo(beside), b);
  assert.equal(runFilters(profile.at.filter, state, pod, a)?.plugin, "PodTopologySpread");
});

test("a pod that is added to the smallest domain in a simulation makes room in the others, also after they were refused", () => {
  const cluster = newTestCluster({ nodes: twoZones, pods: [webOn("a")] });
  const { profile } = cluster;
  const state: CycleState = new Map();
  const pod = newPodInfo(spread(hard(zoneKey)));
  runPreFilter(profile, state, pod, cluster.snapshot());
  const [full, empty] = ["a", "c"].map((name) => cluster.snapshot().get(name));
  assert.ok(full && empty);
  assert.equal(runFilters(profile.at.filter, state, pod, full)?.plugin, "PodTopologySpread");
  for (const plugin of profile.at.preFilter) plugin.addPod?.(state, pod, newPodInfo(webOn("c")), empty);
  assert.equal(runFilters(profile.at.filter, state, pod, full), undefined);
});

test("the minimum count of a topology key is that of the counted domains; one without pods counts as 0", () => {
  const counts = new TopologyCounts();
  const domains = new TopologyCounts();
  assert.equal(counts.leastOf(zoneKey, domains), Number.POSITIVE_INFINITY);
  for (const zone of ["x", "y"]) domains.add(zoneKey, zone, 1);
  for (const [zone, pods] of [
    ["x", 1],
    ["y", 2],
  ] as const)
    counts.add(zoneKey, zone, pods);
  assert.equal(counts.leastOf(zoneKey, domains), 1);
  counts.add(zoneKey, "x", 4);
  counts.add(zoneKey, "z", 1);
  assert.equal(counts.leastOf(zoneKey, domains), 2, "z is no counted domain");
  domains.add(zoneKey, "w", 1);
  assert.equal(counts.leastOf(zoneKey, domains), 0);
});

test("pods are counted separately for each namespace", () => {
  const info = newNodeInfo(aTestNode("a"));
  addPod(info, newPodInfo(webOn("a")));
  const [constraint] = parseConstraints([hard(zoneKey)], "DoNotSchedule");
  assert.ok(constraint);
  assert.deepEqual(
    ["default", "other", "default"].map((namespace) => countOf(info, constraint, namespace)),
    [1, 0, 1],
  );
});

test("pods of one namespace are counted separately for each selector", () => {
  const info = newNodeInfo(aTestNode("a"));
  addPod(info, newPodInfo(webOn("a")));
  const constraints = parseConstraints(
    [{ matchLabels: web }, { matchLabels: { app: "db" } }, { matchLabels: web }, {}, undefined, {}].map((labelSelector) => {
      const { labelSelector: _, ...constraint } = hard(zoneKey);
      return labelSelector === undefined ? constraint : { ...constraint, labelSelector };
    }),
    "DoNotSchedule",
  );
  assert.deepEqual(
    constraints.map((constraint) => countOf(info, constraint, "default")),
    [1, 0, 1, 1, 0, 1],
    "an empty selector means all pods, a missing one none",
  );
});

const soft = (topologyKey: string, maxSkew = 1): TopologySpreadConstraint => ({
  ...hard(topologyKey, maxSkew),
  whenUnsatisfiable: "ScheduleAnyway",
});

test("the larger the tolerated skew, the smaller the difference between the scores", () => {
  const cluster = newTestCluster({ nodes: [aTestNode("a"), aTestNode("b")], pods: [webOn("a")] });
  assert.deepEqual(cluster.scores("PodTopologySpread", spread(soft(hostKey))), { a: 0, b: 100 });
  assert.deepEqual(cluster.scores("PodTopologySpread", spread(soft(hostKey, 5))), { a: 80, b: 100 });
});

test("pods on nodes that the pod may not use do not count for the score of their zone", () => {
  const nodes = [inZone("a", "x", { pool: "1" }), inZone("b", "x"), inZone("c", "y", { pool: "1" })];
  const pods = [...Array.from({ length: 5 }, () => webOn("b")), webOn("c"), webOn("c")];
  const wanted = aTestPod("new", {
    labels: web,
    spec: { nodeSelector: { pool: "1" }, topologySpreadConstraints: [soft(zoneKey)] },
  });
  const { a = 0, c = 0 } = newTestCluster({ nodes, pods }).scores("PodTopologySpread", wanted);
  assert.ok(a > c, `${a} ${c}`);
});

test("where no pod runs yet all nodes score 100", () => {
  const cluster = newTestCluster({ nodes: twoZones });
  assert.deepEqual(cluster.scores("PodTopologySpread", spread(soft(zoneKey))), { a: 100, b: 100, c: 100 });
});

for (const { point, whenUnsatisfiable } of [
  { point: "PreFilter", whenUnsatisfiable: "DoNotSchedule" },
  { point: "PreScore", whenUnsatisfiable: "ScheduleAnyway" },
]) {
  test(`an invalid selector of a constraint ${whenUnsatisfiable} fails the cycle in ${point}`, async () => {
    const labelSelector = { matchExpressions: [{ key: "app", operator: "Sometimes" }] };
    const bad = { ...hard(zoneKey), whenUnsatisfiable, labelSelector } as TopologySpreadConstraint;
    await assert.rejects(newTestCluster({ nodes: twoZones }).place(spread(bad)), {
      message: `running ${point} plugin "PodTopologySpread": "Sometimes" is not a valid label selector operator`,
    });
  });
}

test("counts are empty again once each of them went back to 0 and is forgotten", () => {
  const counts = new TopologyCounts();
  const known = () => [counts.empty, counts.get("zone", "x"), counts.get("zone", "y"), counts.hasAnyAt({ zone: "x" })];
  assert.deepEqual(known(), [true, undefined, undefined, false]);
  counts.add("zone", "x", 2, true);
  counts.add("zone", "y", 1, true);
  counts.add("zone", "x", -1, true);
  assert.deepEqual(known(), [false, 1, 1, true]);
  counts.add("zone", "x", -1, true);
  assert.deepEqual(known(), [false, undefined, 1, false]);
  counts.add("zone", "y", -1);
  assert.deepEqual(known(), [false, undefined, 0, false], "a 0 that is to be kept is a count");
  counts.add("zone", "y", 0, true);
  assert.deepEqual(known(), [true, undefined, undefined, false]);
});
