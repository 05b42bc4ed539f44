import assert from "node:assert/strict";
import { test } from "node:test";
import type { PluginArgs } from "../config/plugin-args.ts";
import { type ScoredAmounts, scoreOf, weighted } from "../testing/score-of.ts";
import { aTestNode, aTestPod, newTestCluster } from "../testing/test-cluster.ts";

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

const inTheMiddle = [
  { utilization: 30, score: 2 },
  { utilization: 60, score: 7 },
];
const upTo10 = [
  { utilization: 0, score: 0 },
  { utilization: 100, score: 10 },
];

for (const { name, want, ...amounts } of [
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
    name: "more than there is of a resource has the ratio of all of it",
    args: fit({ type: "RequestedToCapacityRatio", resources: cpuOnly, requestedToCapacityRatio: { shape: upTo10 } }),
    taken: { cpu: "6" },
    wanted: { cpu: "1" },
    want: 100,
  },
  {
    name: "all of a resource has the whole ratio, too",
    args: fit({ type: "RequestedToCapacityRatio", resources: cpuOnly, requestedToCapacityRatio: { shape: upTo10 } }),
    taken: { cpu: "3" },
    wanted: { cpu: "1" },
    want: 100,
  },
] as (ScoredAmounts & { name: string; want: number })[]) {
  test(name, () => assert.equal(scoreOf("NodeResourcesFit", amounts), want));
}
