import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { defaultPluginArgs } from "../config/argument-rows.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import { defaultPluginSets } from "../config/plugin-sets.ts";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";
import { normalizedImageName } from "./image-locality.ts";

/** The nodes have 4 cpus and 8 GiB; the pod requests 1 cpu and 1 GiB. */
const wanted = aTestPod("new", {
  spec: { containers: [{ name: "main", image: "busybox:1.36", resources: { requests: { cpu: "1", memory: "1Gi" } } }] },
});
const nodes = [aTestNode("empty"), aTestNode("busy")];
const busy = aTestPod("busy", {
  on: "busy",
  spec: { containers: [{ name: "main", image: "busybox", resources: { requests: { cpu: "2", memory: "1Gi" } } }] },
});
const cpuOnly = [{ name: "cpu", weight: 1 }];
const fit = (scoringStrategy: PluginArgs["NodeResourcesFit"]["scoringStrategy"]): Partial<PluginArgs> => ({
  NodeResourcesFit: { scoringStrategy },
});

for (const { name, plugin, args, want } of [
  { name: "LeastAllocated prefers what is left", plugin: "NodeResourcesFit", args: {}, want: { empty: 81, busy: 50 } },
  {
    name: "MostAllocated prefers what is taken",
    plugin: "NodeResourcesFit",
    args: fit({ type: "MostAllocated", resources: cpuOnly }),
    want: { empty: 25, busy: 75 },
  },
  {
    name: "weights of resources count",
    plugin: "NodeResourcesFit",
    args: fit({
      type: "LeastAllocated",
      resources: [
        { name: "cpu", weight: 3 },
        { name: "memory", weight: 1 },
      ],
    }),
    want: { empty: 78, busy: 37 },
  },
  {
    name: "RequestedToCapacityRatio follows its shape",
    plugin: "NodeResourcesFit",
    args: fit({
      type: "RequestedToCapacityRatio",
      resources: cpuOnly,
      requestedToCapacityRatio: {
        shape: [
          { utilization: 0, score: 0 },
          { utilization: 50, score: 10 },
          { utilization: 100, score: 5 },
        ],
      },
    }),
    want: { empty: 50, busy: 75 },
  },
  {
    name: "RequestedToCapacityRatio is the mean of all resources by their weights",
    plugin: "NodeResourcesFit",
    args: fit({
      type: "RequestedToCapacityRatio",
      resources: [
        { name: "cpu", weight: 1 },
        { name: "memory", weight: 3 },
      ],
      requestedToCapacityRatio: {
        shape: [
          { utilization: 0, score: 0 },
          { utilization: 100, score: 10 },
        ],
      },
    }),
    want: { empty: 15, busy: 38 },
  },
  {
    name: "balanced use is better",
    plugin: "NodeResourcesBalancedAllocation",
    args: {},
    want: { empty: 93, busy: 75 },
  },
] as const) {
  test(name, () => {
    const cluster = newTestCluster({ nodes, pods: [busy], args });
    assert.deepEqual(cluster.scores(plugin, wanted), want);
  });
}

test("an extended resource counts, also on a node whose pods do not request it", () => {
  const asking = (name: string, on?: string) => {
    const containers = [{ name: "main", image: "x", resources: { requests: { "example.com/gpu": "1" } } }];
    return aTestPod(name, { ...(on !== undefined && { on }), spec: { containers } });
  };
  const withGpus = nodes.map((node) => ({
    ...node,
    status: { ...node.status, allocatable: { ...node.status?.allocatable, "example.com/gpu": "4" } },
  }));
  const args = fit({ type: "MostAllocated", resources: [{ name: "example.com/gpu", weight: 1 }] });
  const cluster = newTestCluster({ nodes: withGpus, pods: [asking("busy", "busy")], args });
  assert.deepEqual(cluster.scores("NodeResourcesFit", asking("new")), { empty: 25, busy: 50 });
});

test("an unknown scoring strategy prevents the start", () => {
  const args = fit({ type: "Random" as "LeastAllocated", resources: cpuOnly });
  assert.throws(() => newTestCluster({ args }), { message: "scoring strategy Random is not supported" });
});

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
  assert.equal(await newTestCluster({ nodes, args }).place(asking), "empty");
});

const withImage = (name: string, ...images: [string, number][]): Node => {
  const node = aTestNode(name);
  return { ...node, status: { ...node.status, images: images.map(([image, sizeBytes]) => ({ names: [image], sizeBytes })) } };
};

test("a node that has a large image scores higher, the more nodes have it", () => {
  const mebibyte = 2 ** 20;
  const cluster = newTestCluster({ nodes: [withImage("has", ["busybox:1.36", 1_000 * mebibyte]), withImage("has-not")] });
  // Half of the nodes have the image, so half of its size counts, minus the lower threshold.
  assert.deepEqual(cluster.scores("ImageLocality", wanted), { has: 48, "has-not": 0 });
});

for (const [image, want] of [
  ["busybox", "busybox:latest"],
  ["registry:5000/busybox", "registry:5000/busybox:latest"],
  ["busybox:1.36", "busybox:1.36"],
] as const) {
  test(`${image} is on nodes as ${want}`, () => assert.equal(normalizedImageName(image), want));
}

test("SelectorSpread prefers zones, then nodes, with fewer pods of a service", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const zone = (name: string, value: string) => aTestNode(name, { labels: { "topology.kubernetes.io/zone": value } });
  const cluster = newTestCluster({
    nodes: [zone("a", "x"), zone("b", "x"), zone("c", "y")],
    pods: [aTestPod("web", { on: "a", labels })],
    objects: [[services, service]],
    sets: defaultPluginSets("v1beta3", { spreadByTopology: false }),
  });
  assert.deepEqual(cluster.scores("SelectorSpread", aTestPod("new", { labels })), { a: 0, b: 33, c: 100 });
});

test("SelectorSpread counts the pods that all services of the pod select", () => {
  const service = (name: string, selector: object) => ({ metadata: { name, namespace: "default" }, spec: { selector } });
  const labels = { app: "web", tier: "front" };
  const cluster = newTestCluster({
    nodes: [aTestNode("a"), aTestNode("b")],
    pods: [aTestPod("both", { on: "a", labels }), aTestPod("one", { on: "b", labels: { app: "web" } })],
    objects: [
      [services, service("web", { app: "web" })],
      [services, service("front", { tier: "front" })],
    ],
    sets: defaultPluginSets("v1beta3", { spreadByTopology: false }),
  });
  assert.deepEqual(cluster.scores("SelectorSpread", aTestPod("new", { labels })), { a: 0, b: 100 });
});

test("preferred node affinity adds its weights, the configuration's, too", () => {
  const term = (key: string) => ({ matchExpressions: [{ key, operator: "Exists" as const }] });
  const addedAffinity = {
    preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term("added") }],
  };
  const affinity = {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 3, preference: term("own") },
        { weight: 9, preference: {} },
      ],
    },
  };
  const labelled = [
    aTestNode("both", { labels: { own: "1", added: "1" } }),
    aTestNode("added", { labels: { added: "1" } }),
    aTestNode("none"),
  ];
  const cluster = newTestCluster({ nodes: labelled, args: { NodeAffinity: { addedAffinity } } });
  assert.deepEqual(cluster.scores("NodeAffinity", aTestPod("new", { spec: { affinity } })), { both: 100, added: 25, none: 0 });
  assert.deepEqual(cluster.scores("NodeAffinity", aTestPod("plain")), { both: 100, added: 100, none: 0 });
});

test("node affinity required by the configuration holds whatever the pod's own affinity", async () => {
  const nodeSelectorTerms = [{ matchExpressions: [{ key: "pool", operator: "Exists" as const }] }];
  const addedAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  const cluster = newTestCluster({ nodes, args: { NodeAffinity: { addedAffinity } } });
  assert.equal(
    await cluster.place(aTestPod("new")),
    "0/2 nodes are available: 2 node(s) didn't match scheduler-enforced node affinity.",
  );
});

/** Scores of one node, `a`, that has these amounts, for a pod that requests others. */
function scoreOf(
  plugin: string,
  {
    node = {},
    taken = {},
    wanted = {},
    args = {},
  }: Record<"node" | "taken" | "wanted", Record<string, string>> & {
    args?: Partial<PluginArgs>;
  },
): number | undefined {
  const container = (requests: Record<string, string>) => ({ containers: [{ name: "c", image: "i", resources: { requests } }] });
  const made = aTestNode("a");
  const allocatable = { ...made.status?.allocatable, ...node };
  const cluster = newTestCluster({
    nodes: [{ ...made, status: { ...made.status, allocatable } }],
    pods: [aTestPod("there", { on: "a", spec: container(taken) })],
    args,
  });
  return cluster.scores(plugin, aTestPod("new", { spec: container(wanted) }))["a"];
}
const weighted = (...names: string[]) => names.map((name) => ({ name, weight: 1 }));
const inTheMiddle = [
  { utilization: 30, score: 2 },
  { utilization: 60, score: 7 },
];
const upTo10 = [
  { utilization: 0, score: 0 },
  { utilization: 100, score: 10 },
];

for (const { name, plugin = "NodeResourcesFit", want, ...amounts } of [
  {
    name: "an overcommitted node has the lowest score, not one below it",
    args: fit({ type: "LeastAllocated", resources: cpuOnly }),
    taken: { cpu: "6" },
    wanted: { cpu: "1" },
    want: 0,
  },
  {
    name: "an extended resource does not count for a pod that does not request it",
    args: fit({ type: "LeastAllocated", resources: weighted("cpu", "example.com/gpu") }),
    node: { "example.com/gpu": "4" },
    taken: { cpu: "0" },
    wanted: { cpu: "1" },
    want: 75,
  },
  {
    name: "an extended resource counts for a pod that requests it",
    args: fit({ type: "LeastAllocated", resources: weighted("cpu", "example.com/gpu") }),
    node: { "example.com/gpu": "4" },
    taken: { cpu: "0", "example.com/gpu": "1" },
    wanted: { cpu: "1", "example.com/gpu": "3" },
    want: 37,
  },
  {
    name: "a resource whose ratio scores 0 is left out of the mean",
    args: fit({
      type: "RequestedToCapacityRatio",
      resources: weighted("cpu", "memory"),
      requestedToCapacityRatio: { shape: upTo10 },
    }),
    taken: { cpu: "0", memory: "0" },
    wanted: { cpu: "0", memory: "4Gi" },
    want: 50,
  },
  {
    name: "above the last point of its shape a ratio scores as there",
    args: fit({ type: "RequestedToCapacityRatio", resources: cpuOnly, requestedToCapacityRatio: { shape: inTheMiddle } }),
    taken: { cpu: "0" },
    wanted: { cpu: "3" },
    want: 70,
  },
  {
    name: "below the first point of its shape a ratio scores as there",
    args: fit({ type: "RequestedToCapacityRatio", resources: cpuOnly, requestedToCapacityRatio: { shape: inTheMiddle } }),
    taken: { cpu: "0" },
    wanted: { cpu: "1" },
    want: 20,
  },
  {
    name: "between two points a ratio's score is rounded towards the first",
    args: fit({ type: "RequestedToCapacityRatio", resources: cpuOnly, requestedToCapacityRatio: { shape: inTheMiddle } }),
    node: { cpu: "100" },
    taken: { cpu: "0" },
    wanted: { cpu: "31" },
    want: 21,
  },
  {
    name: "more than there is of a resource scores as all of it",
    args: fit({ type: "MostAllocated", resources: cpuOnly }),
    taken: { cpu: "6" },
    wanted: { cpu: "1" },
    want: 100,
  },
  {
    name: "balance: what is requested beyond the whole of a node counts as the whole",
    plugin: "NodeResourcesBalancedAllocation",
    node: { cpu: "1", memory: "1Gi" },
    taken: { cpu: "1", memory: "0" },
    wanted: { cpu: "1", memory: "1Gi" },
    want: 100,
  },
  {
    name: "balance: a resource that the node does not have is left out",
    plugin: "NodeResourcesBalancedAllocation",
    args: { NodeResourcesBalancedAllocation: { resources: weighted("cpu", "memory", "example.com/gpu") } },
    taken: { cpu: "0", memory: "0" },
    wanted: { cpu: "2", memory: "0" },
    want: 75,
  },
  {
    name: "balance of three resources is their standard deviation",
    plugin: "NodeResourcesBalancedAllocation",
    args: { NodeResourcesBalancedAllocation: { resources: weighted("cpu", "memory", "ephemeral-storage") } },
    node: { "ephemeral-storage": "8Gi" },
    taken: { cpu: "0", memory: "0" },
    wanted: { cpu: "1", memory: "4Gi", "ephemeral-storage": "6Gi" },
    want: 79,
  },
] as {
  name: string;
  plugin?: string;
  args?: Partial<PluginArgs>;
  node?: Record<string, string>;
  taken?: Record<string, string>;
  wanted?: Record<string, string>;
  want: number;
}[]) {
  test(name, () => assert.equal(scoreOf(plugin, { node: {}, taken: {}, wanted: {}, ...amounts }), want));
}

test("a pod that requests nothing fits an overcommitted node, unless that has too many pods", async () => {
  const full = aTestPod("there", { on: "a", cpu: "6" });
  const idle = aTestPod("new", { spec: { containers: [{ name: "c", image: "i" }] } });
  assert.equal(await newTestCluster({ nodes: [aTestNode("a")], pods: [full] }).place(idle), "a");
  const one = newTestCluster({ nodes: [aTestNode("a", { pods: "1" })], pods: [full] });
  assert.equal(await one.place(idle), "0/1 nodes are available: 1 Too many pods.");
});

test("only extended resources can be ignored", async () => {
  const { scoringStrategy } = defaultPluginArgs.NodeResourcesFit;
  const requests = { "hugepages-2Mi": "2Mi" };
  const pod = aTestPod("new", { spec: { containers: [{ name: "c", image: "i", resources: { requests } }] } });
  const args = { NodeResourcesFit: { scoringStrategy, ignoredResources: ["hugepages-2Mi"] } };
  const placed = await newTestCluster({ nodes: [aTestNode("a")], args }).place(pod);
  assert.equal(placed, "0/1 nodes are available: 1 Insufficient hugepages-2Mi.");
});

test("images score up to 1000 MiB for each container, and no more", () => {
  const mebibyte = 2 ** 20;
  const score = (sizeBytes: number, images: string[]) => {
    const containers = images.map((image, i) => ({ name: `c${i}`, image }));
    const cluster = newTestCluster({ nodes: [withImage("a", ["x:1", sizeBytes], ["y:1", sizeBytes])] });
    return cluster.scores("ImageLocality", aTestPod("new", { spec: { containers } }))["a"];
  };
  assert.equal(score(5_000 * mebibyte, ["x:1"]), 100);
  assert.equal(score(1_000 * mebibyte, ["x:1", "z:1"]), 49, "half of what two containers may score");
  assert.equal(score(1_000 * mebibyte, ["x:1", "y:1"]), 100);
  assert.deepEqual(
    [22, 32, 33].map((size) => score(size * mebibyte, ["x:1"])),
    [0, 0, 1],
    "23 MiB are not counted",
  );
});

test("nodes with fewer PreferNoSchedule taints that the pod does not tolerate are preferred; other taints do not count", () => {
  const taint = (key: string, effect: string) => ({ key, value: "v", effect });
  const [first, second] = ["one", "two"].map((key) => taint(key, "PreferNoSchedule"));
  const tainted = (name: string, ...taints: object[]) => aTestNode(name, { spec: { taints } });
  const cluster = newTestCluster({
    nodes: [
      tainted("two", first as object, second as object),
      tainted("one", first as object, taint("x", "NoExecute"), taint("y", "NoSchedule")),
      tainted("tolerated", taint("three", "PreferNoSchedule")),
    ],
  });
  const tolerations = [{ key: "three", operator: "Exists" as const }];
  const scores = cluster.scores("TaintToleration", aTestPod("new", { spec: { tolerations } }));
  assert.deepEqual(scores, { two: 0, one: 50, tolerated: 100 });
});

const spreading = { sets: defaultPluginSets("v1beta3", { spreadByTopology: false }) };

test("SelectorSpread scores a node without a zone by its own pods only", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const cluster = newTestCluster({
    nodes: [aTestNode("zoned", { labels: { "topology.kubernetes.io/zone": "x" } }), aTestNode("bare")],
    pods: ["zoned", "bare", "bare"].map((on, i) => aTestPod(`web${i}`, { on, labels })),
    objects: [[services, service]],
    ...spreading,
  });
  assert.deepEqual(cluster.scores("SelectorSpread", aTestPod("new", { labels })), { zoned: 16, bare: 0 });
});

test("SelectorSpread knows zones by region alone, and by the former labels, which win", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const beta = "failure-domain.beta.kubernetes.io";
  const cluster = newTestCluster({
    nodes: [
      aTestNode("full", { labels: { "topology.kubernetes.io/region": "r" } }),
      aTestNode("beside", { labels: { [`${beta}/region`]: "r", "topology.kubernetes.io/region": "other" } }),
      aTestNode("zoned", { labels: { [`${beta}/region`]: "r", [`${beta}/zone`]: "z" } }),
    ],
    pods: [aTestPod("web", { on: "full", labels })],
    objects: [[services, service]],
    ...spreading,
  });
  const scores = cluster.scores("SelectorSpread", aTestPod("new", { labels }));
  assert.deepEqual(scores, { full: 0, beside: 33, zoned: 100 });
});

test("SelectorSpread leaves pods with spread constraints of their own alone", () => {
  const labels = { app: "web" };
  const service = { metadata: { name: "web", namespace: "default" }, spec: { selector: labels } };
  const cluster = newTestCluster({
    nodes: [aTestNode("a"), aTestNode("b")],
    pods: [aTestPod("web", { on: "a", labels })],
    objects: [[services, service]],
    ...spreading,
  });
  const constraint = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" as const };
  const pod = aTestPod("new", { labels, spec: { topologySpreadConstraints: [constraint] } });
  assert.deepEqual(cluster.scores("SelectorSpread", pod), { a: 0, b: 0 });
});

test("one of several terms of the configuration's required node affinity suffices", async () => {
  const nodeSelectorTerms = ["pool", "rack"].map((key) => ({ matchExpressions: [{ key, operator: "Exists" as const }] }));
  const addedAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  const racked = aTestNode("racked", { labels: { rack: "1" } });
  const cluster = newTestCluster({ nodes: [aTestNode("bare"), racked], args: { NodeAffinity: { addedAffinity } } });
  assert.equal(await cluster.place(aTestPod("new")), "racked");
});
