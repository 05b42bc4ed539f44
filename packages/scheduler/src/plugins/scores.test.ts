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
  const labelled = [aTestNode("both", { labels: { own: "1", added: "1" } }), aTestNode("added", { labels: { added: "1" } })];
  const cluster = newTestCluster({ nodes: labelled, args: { NodeAffinity: { addedAffinity } } });
  assert.deepEqual(cluster.scores("NodeAffinity", aTestPod("new", { spec: { affinity } })), { both: 100, added: 25 });
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
