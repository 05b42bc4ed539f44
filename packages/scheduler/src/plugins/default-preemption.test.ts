import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { podDisruptionBudgets, pods as podsRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { type NodeInfo, newPodInfo } from "../cache/node-info.ts";
import type { Extender, Victims } from "../extenders/extender.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import type { Plugin, PostFilterResult } from "../framework/extension-points.ts";
import { FitError, failed, unschedulable } from "../framework/status.ts";
import { selectVictims } from "../preemption/victims.ts";
import { runPreFilter } from "../profile.ts";
import { decide } from "../scheduling-cycle.ts";
import {
  aTestNode,
  aTestPod,
  listersOver,
  newTestCluster,
  type TestCluster,
  type TestClusterOptions,
} from "../testing/test-cluster.ts";
import { candidateCount } from "./default-preemption.ts";
import type { PluginContext } from "./plugin-context.ts";

/** Runs preemption in a cluster where the pod does not fit. */
async function preempt(
  pod: Pod,
  {
    more = [],
    before = () => {},
    ...options
  }: TestClusterOptions & { more?: readonly Plugin[]; before?: (cluster: TestCluster) => void },
): Promise<{ cluster: TestCluster; result: PostFilterResult }> {
  const known = [...(options.pods ?? []), pod];
  const objects = [...(options.objects ?? []), ...known.map((each) => [podsRef, each] as const)];
  const cluster = newTestCluster({ ...options, objects });
  Object.assign(cluster.profile.at, { filter: [...cluster.profile.at.filter, ...more] });
  cluster.client.put(podsRef, ...known);
  before(cluster);
  return { cluster, result: await attempt(cluster, pod) };
}

/** The result of preemption for a pod that does not fit. */
async function attempt(cluster: TestCluster, pod: Pod): Promise<PostFilterResult> {
  const state: CycleState = new Map();
  const snapshot = cluster.snapshot();
  const choice = {
    percentageOfNodesToScore: 0,
    startIndex: 0,
    random: () => 0,
    nominator: cluster.nominator,
    extenders: [],
    preferNominatedNode: true,
  };
  const [plugin] = cluster.profile.at.postFilter;
  try {
    await decide(cluster.profile, state, newPodInfo(pod), snapshot, choice);
  } catch (err) {
    assert.ok(err instanceof FitError, String(err));
    const result = await plugin?.postFilter?.(state, newPodInfo(pod), err.statuses, snapshot);
    assert.ok(result);
    return result;
  }
  throw new Error("it fits");
}
const gone = ({ client }: TestCluster): string[] =>
  client.writes.flatMap(({ verb, resource, name }) => (verb === "delete" && resource === "pods" ? [name] : []));
const low = (name: string, on: string, more: object = {}): Pod => aTestPod(name, { on, cpu: "4", priority: 1, ...more });
const urgent = (more: object = {}): Pod => aTestPod("urgent", { cpu: "3", priority: 10, ...more });
const nodes = [aTestNode("a"), aTestNode("b")];

test("a lower priority pod is preempted, its resources are reserved, and its Event names the preemptor", async () => {
  const { cluster, result } = await preempt(urgent(), { nodes, pods: [low("a1", "a"), low("b1", "b", { priority: 5 })] });
  assert.deepEqual(result, { nominatedNode: "a" });
  assert.deepEqual(gone(cluster), ["a1"]);
  assert.deepEqual(cluster.events, ["Normal Preempted Preempted by default/urgent on node a"]);
  assert.deepEqual(cluster.related, ["Pod urgent"]);
  assert.deepEqual(
    cluster.nominator.onNode("a").map(({ pod }) => pod.metadata.name),
    ["urgent"],
  );
});

test("pods of lower priority lose their nomination to the node, one of the same priority before them does not", async () => {
  const [peer, lesser] = [aTestPod("peer", { cpu: "1", priority: 10 }), aTestPod("lesser", { cpu: "1", priority: 2 })];
  const { cluster } = await preempt(urgent(), {
    nodes: [aTestNode("a")],
    pods: [low("a1", "a")],
    before: ({ nominator }) => [peer, lesser].forEach((pod) => void nominator.set(pod, "a")),
  });
  const left = cluster.nominator.onNode("a").map(({ pod }) => pod.metadata.name);
  assert.deepEqual(left.toSorted(), ["peer", "urgent"]);
});

test("preemption evicts as few pods as needed, the lowest priority first", async () => {
  const pods = [
    aTestPod("one", { on: "a", cpu: "1", priority: 1 }),
    aTestPod("two", { on: "a", cpu: "1", priority: 2 }),
    aTestPod("three", { on: "a", cpu: "2", priority: 3 }),
  ];
  const { cluster } = await preempt(urgent({ cpu: "2" }), { nodes: [aTestNode("a")], pods });
  assert.deepEqual(gone(cluster).toSorted(), ["one", "two"]);
});

test("pods whose disruption budget is exhausted are evicted only when no others suffice", async () => {
  const labels = { app: "web" };
  const budget = {
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { matchLabels: labels } },
    status: { disruptionsAllowed: 0 },
  };
  const pods = [low("guarded", "a", { labels }), low("free", "b", { priority: 5 })];
  const { cluster, result } = await preempt(urgent(), { nodes, pods, objects: [[podDisruptionBudgets, budget]] });
  assert.equal(result.nominatedNode, "b");
  assert.deepEqual(gone(cluster), ["free"]);
});

test("pods whose disruption budget is exhausted are evicted when no others suffice, where that violates it least", async () => {
  const labels = { app: "web" };
  const budget = {
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { matchLabels: labels } },
    status: { disruptionsAllowed: 0 },
  };
  const two = ["a1", "a2"].map((name) => low(name, "a", { cpu: "2", labels }));
  const one = low("b1", "b", { priority: 5, labels });
  const outcomeOf = async (...pods: Pod[]) => {
    const wanted = urgent({ cpu: "4" });
    const { cluster, result } = await preempt(wanted, { nodes, pods, objects: [[podDisruptionBudgets, budget]] });
    return [result.nominatedNode, gone(cluster).toSorted()];
  };
  assert.deepEqual(await outcomeOf(...two, one), ["b", ["b1"]]);
  assert.deepEqual(await outcomeOf(...two, aTestPod("b1", { on: "b", cpu: "4", priority: 10 })), ["a", ["a1", "a2"]]);
});

test("a victim that no longer exists is no failure; one that cannot be deleted ends the attempt", async () => {
  const pods = [low("a1", "a", { cpu: "2" }), low("a2", "a", { cpu: "2", priority: 2 })];
  const failing = (failure: Error) =>
    preempt(urgent({ cpu: "4" }), {
      nodes: [aTestNode("a")],
      pods,
      before: ({ client }) =>
        client.react("delete", "pods", () => {
          throw failure;
        }),
    });
  const { cluster, result } = await failing(notFound(podsRef, "a1"));
  assert.deepEqual([result.nominatedNode, gone(cluster).toSorted()], ["a", ["a1", "a2"]]);
  await assert.rejects(failing(new Error("away")), /^Error: away$/);
});

for (const { name, pods, wants } of [
  { name: "that no pod is leaving", pods: [low("a1", "a"), low("b1", "b")], wants: ["a"] },
  {
    name: "that a more important pod is leaving",
    pods: [
      low("a1", "a", { priority: 20, cpu: "1", metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } }),
      low("a2", "a", { cpu: "3" }),
      low("b1", "b", { priority: 5 }),
    ],
    wants: ["a"],
  },
]) {
  test(`a pod that was nominated to a node ${name} preempts again`, async () => {
    const { result } = await preempt(urgent({ status: { nominatedNodeName: "a" } }), { nodes, pods });
    assert.deepEqual([result.nominatedNode], wants);
  });
}

test("a pod does not preempt again before a victim on its nominated node is seen to be going", async () => {
  const pod = urgent({ status: { nominatedNodeName: "a" } });
  const { cluster } = await preempt(pod, { nodes, pods: [low("a1", "a"), low("b1", "b")] });
  const again = await attempt(cluster, pod);
  assert.deepEqual([again.nominatedNode, again.status?.code, gone(cluster)], [undefined, "Unschedulable", ["a1"]]);
});

test("a pod preempts elsewhere when its nominated node is unresolvable, even while victims terminate there", async () => {
  const tainted = aTestNode("a", { spec: { taints: [{ key: "k", value: "v", effect: "NoSchedule" }] } });
  const leaving = low("a1", "a", { metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } });
  const { result } = await preempt(urgent({ status: { nominatedNodeName: "a" } }), {
    nodes: [tainted, aTestNode("b")],
    pods: [leaving, low("b1", "b")],
  });
  assert.equal(result.nominatedNode, "b");
});

for (const { name, pod, pods, want } of [
  {
    name: "preemptionPolicy Never",
    pod: urgent({ spec: { preemptionPolicy: "Never" } }),
    pods: [low("a1", "a"), low("b1", "b")],
    want: {},
  },
  {
    name: "victims of before that are still going on the nominated node",
    pod: urgent({ status: { nominatedNodeName: "a" } }),
    pods: [low("a1", "a", { metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } }), low("b1", "b")],
    want: {},
  },
  { name: "only equals", pod: urgent({ priority: 1 }), pods: [low("a1", "a"), low("b1", "b")], want: { nominatedNode: "" } },
  {
    name: "not enough room even without them",
    pod: urgent({ cpu: "40" }),
    pods: [low("a1", "a"), low("b1", "b")],
    want: { nominatedNode: "" },
  },
  {
    name: "a refusal that no pod's end can lift",
    pod: urgent({ spec: { nodeSelector: { disk: "ssd" } } }),
    pods: [low("a1", "a"), low("b1", "b")],
    want: { nominatedNode: "" },
  },
]) {
  test(`no pod is evicted: ${name}`, async () => {
    const { cluster, result } = await preempt(pod, { nodes, pods });
    assert.deepEqual(gone(cluster), []);
    assert.equal(result.nominatedNode, (want as PostFilterResult).nominatedNode);
    assert.equal(result.status?.code, "Unschedulable");
  });
}

for (const [whose, theirs, own] of [
  ["whose anti-affinity excludes it", true, false],
  ["that its own anti-affinity excludes", false, true],
] as const) {
  test(`a pod preempts pods of lower priority ${whose}`, async () => {
    const labels = { app: "web" };
    const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: labels } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
    const excluded = aTestPod("web", { on: "a", labels, priority: 1, ...(theirs && { spec: { affinity } }) });
    const pods = [excluded, aTestPod("db", { on: "a", priority: 1 })];
    const wanted = urgent({ labels, cpu: "1", ...(own && { spec: { affinity } }) });
    const { cluster } = await preempt(wanted, { nodes: [aTestNode("a")], pods });
    assert.deepEqual(gone(cluster), ["web"]);
  });
}

test("a simulated eviction on one node does not count for another: pods of a zone excluded by anti-affinity stay", async () => {
  const term = { topologyKey: "zone", labelSelector: { matchLabels: { app: "db" } } };
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
  const inZone = ["a", "b"].map((name) => aTestNode(name, { labels: { zone: "x" } }));
  const pods = ["a", "b"].map((on) => aTestPod(`db-${on}`, { on, labels: { app: "db" }, priority: 1 }));
  const { cluster, result } = await preempt(urgent({ cpu: "1", spec: { affinity } }), { nodes: inZone, pods });
  assert.deepEqual([gone(cluster), result.nominatedNode], [[], ""]);
});

for (const { name, wanted, stays } of [
  { name: "its own anti-affinity", wanted: "podAntiAffinity", stays: { labels: { app: "db" } } },
  { name: "the anti-affinity", wanted: undefined, stays: { labels: { app: "db" }, refuses: "web" } },
  { name: "its affinity, which does not hold,", wanted: "podAffinity", stays: { labels: { app: "other" } } },
] as { name: string; wanted: string | undefined; stays: { labels: Record<string, string>; refuses?: string } }[]) {
  test(`no pod is evicted without need: ${name} to a pod that stays remains when all others were deleted`, async () => {
    const to = (app: string) => ({
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app } } },
      ],
    });
    const { labels, refuses } = stays;
    const spec = refuses === undefined ? {} : { spec: { affinity: { podAntiAffinity: to(refuses) } } };
    const pods = [aTestPod("stays", { on: "a", cpu: "100m", priority: 20, labels, ...spec }), low("a1", "a", { cpu: "3" })];
    const pod = urgent({ labels: { app: "web" }, ...(wanted && { spec: { affinity: { [wanted]: to("db") } } }) });
    const { cluster, result } = await preempt(pod, { nodes: [aTestNode("a")], pods });
    assert.deepEqual([gone(cluster), result.nominatedNode], [[], ""]);
  });
}

for (const { name, failing, failure = new Error("away"), left, logged = [] } of [
  { name: "nominations of less important pods on that node are taken back", failing: undefined, left: [] },
  {
    name: "one that cannot be taken back in the API counts no more, and is no obstacle to the next",
    failing: "first",
    left: ["first"],
    logged: ["cannot clear 'NominatedNodeName' field of pod"],
  },
  {
    name: "that of a pod which is gone is no failure to take one back",
    failing: "first",
    failure: notFound(podsRef, "first"),
    left: ["first"],
  },
] as { name: string; failing: string | undefined; failure?: Error; left: string[]; logged?: string[] }[])
  test(name, async () => {
    const waiting = ["first", "second"].map((waits) =>
      aTestPod(waits, { priority: 5, cpu: "100m", status: { nominatedNodeName: "a" } }),
    );
    const pods = [low("a1", "a")];
    const known = [...pods, ...waiting, urgent()];
    const cluster = newTestCluster({ nodes: [aTestNode("a")], pods, objects: known.map((each) => [podsRef, each] as const) });
    cluster.client.put(podsRef, ...known);
    cluster.client.react("patch", "pods", ({ name: patched }) => {
      if (patched === failing) throw failure;
      return undefined;
    });
    for (const pod of waiting) cluster.nominator.set(pod);
    cluster.nominator.set(aTestPod("equal", { priority: 10, cpu: "100m", status: { nominatedNodeName: "a" } }));
    const [plugin] = cluster.profile.at.postFilter;
    const state: CycleState = new Map();
    const info = newPodInfo(urgent());
    runPreFilter(cluster.profile, state, info, cluster.snapshot());
    const result = await plugin?.postFilter?.(state, info, new Map(), cluster.snapshot());
    assert.deepEqual(result, { nominatedNode: "a" });
    assert.deepEqual(
      cluster.nominator.onNode("a").map(({ pod }) => pod.metadata.name),
      ["equal", "urgent"],
    );
    assert.deepEqual(cluster.errors, logged);
    const stored = waiting.map(({ metadata }) => cluster.client.object<Pod>(podsRef, `default/${metadata.name}`));
    const nominated = stored.filter((pod) => pod?.status?.nominatedNodeName !== undefined);
    assert.deepEqual(
      nominated.map((pod) => pod?.metadata.name),
      left,
    );
  });

test("an extender can remove candidates", async () => {
  const extender: Extender = {
    name: "http://extender",
    ignorable: false,
    binds: false,
    preempts: true,
    isInterested: () => true,
    filter: (_, feasible) => Promise.resolve({ feasible, failed: new Map(), unresolvable: new Map() }),
    prioritize: () => Promise.resolve(new Map()),
    preempt: (_, candidates) => Promise.resolve(new Map([["b", candidates.get("b") as Victims]])),
    bind: () => Promise.resolve(),
  };
  const pods = [low("a1", "a"), low("b1", "b", { priority: 5 })];
  const { cluster, result } = await preempt(urgent(), { nodes, pods, extenders: [extender] });
  assert.equal(result.nominatedNode, "b");
  assert.deepEqual(gone(cluster), ["b1"]);
});

for (const [nodeCount, want] of [
  [50, 50],
  [500, 100],
  [1_019, 101],
  [5_000, 500],
] as const) {
  test(`of ${nodeCount} nodes ${want} are tried by default`, () =>
    assert.equal(candidateCount(nodeCount, { minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100 }), want));
}

test("only a pod of higher priority can use the resources reserved for a nominated pod", async () => {
  const cluster = newTestCluster({ nodes: [aTestNode("a")] });
  cluster.nominator.set(aTestPod("waiting", { priority: 5, cpu: "4", status: { nominatedNodeName: "a" } }));
  assert.equal(await cluster.place(aTestPod("lesser", { priority: 1 })), "0/1 nodes are available: 1 Insufficient cpu.");
  assert.equal(await cluster.place(aTestPod("greater", { priority: 9 })), "a");
  assert.equal(await cluster.place(aTestPod("waiting", { priority: 5, cpu: "4", status: { nominatedNodeName: "a" } })), "a");
});

test("without the victims the pod fits, all have a lower priority, and none is unnecessary", async () => {
  const residents = fc.array(
    fc.record({
      on: fc.constantFrom("a", "b", "c"),
      cpu: fc.integer({ min: 0, max: 3 }),
      priority: fc.integer({ min: 0, max: 12 }),
    }),
    { maxLength: 9 },
  );
  const places = ["a", "b", "c"].map((name) => aTestNode(name));
  await fc.assert(
    fc.asyncProperty(residents, fc.integer({ min: 1, max: 5 }), async (wanted, cpu) => {
      const pods = wanted.map(({ on, cpu: taken, priority }, i) => aTestPod(`p${i}`, { on, cpu: String(taken), priority }));
      const pod = urgent({ cpu: String(cpu) });
      if (!(await newTestCluster({ nodes: places, pods }).place(pod)).startsWith("0/")) return;
      const { cluster, result } = await preempt(pod, { nodes: places, pods });
      const victims = new Set(gone(cluster));
      const without = (names: ReadonlySet<string>): Promise<string> =>
        newTestCluster({
          nodes: places.filter(({ metadata }) => metadata.name === result.nominatedNode),
          pods: pods.filter(({ metadata }) => !names.has(metadata.name ?? "")),
        }).place(pod);
      if (!result.nominatedNode) {
        const lesser = new Set(pods.flatMap(({ metadata, spec }) => ((spec.priority ?? 0) < 10 ? (metadata.name ?? "") : [])));
        const emptied = pods.filter(({ metadata }) => !lesser.has(metadata.name ?? ""));
        assert.match(await newTestCluster({ nodes: places, pods: emptied }).place(pod), /^0\//);
        return assert.equal(victims.size, 0);
      }
      assert.equal(await without(victims), result.nominatedNode);
      for (const name of victims) {
        const victim = pods.find(({ metadata }) => metadata.name === name);
        assert.ok((victim?.spec.priority ?? 0) < 10);
        const others = new Set([...victims].filter((other) => other !== name));
        assert.match(await without(others), /^0\//, `${name} could have stayed`);
      }
    }),
    { numRuns: 200 },
  );
});

test("a node without victims in an ignorable extender's answer is no candidate; with another extender it is an error", async () => {
  const emptying = (ignorable: boolean): Extender => ({
    name: "emptying",
    ignorable,
    binds: false,
    preempts: true,
    isInterested: () => true,
    filter: async (_, feasible) => ({ feasible, failed: new Map(), unresolvable: new Map() }),
    prioritize: async () => new Map(),
    preempt: async (_, candidates) =>
      new Map(
        [...candidates].map(([node, victims]): [string, Victims] => [node, node === "a" ? { ...victims, pods: [] } : victims]),
      ),
    bind: async () => {},
  });
  const pods = [low("a1", "a"), low("b1", "b", { priority: 5 })];
  const { cluster, result } = await preempt(urgent(), { nodes, pods, extenders: [emptying(true)] });
  assert.deepEqual([result.nominatedNode, gone(cluster)], ["b", ["b1"]]);
  await assert.rejects(
    preempt(urgent(), { nodes, pods, extenders: [emptying(false)] }),
    /^Error: expected at least one victim pod on node "a"$/,
  );
});

test("a plugin that fails on one node does not exclude others; on all nodes it is an error", async () => {
  const failingOn = (...names: string[]): Plugin => ({
    name: "Failing",
    filter: (_, __, node) => (names.includes(node.name) && node.pods.size === 0 ? failed(new Error("broken")) : undefined),
  });
  const pods = [low("a1", "a"), low("b1", "b", { priority: 5 })];
  const { cluster, result } = await preempt(urgent(), { nodes, pods, more: [failingOn("a")] });
  assert.deepEqual([result.nominatedNode, gone(cluster)], ["b", ["b1"]]);
  await assert.rejects(
    preempt(urgent(), { nodes, pods, more: [failingOn("a", "b")] }),
    /^Error: running "Failing" filter plugin: broken, running "Failing" filter plugin: broken$/,
  );
});

test("the pod is nominated before the first victim is deleted, and every node is tried wherever the search begins", async () => {
  const kept: (string | undefined)[] = [];
  const { result } = await preempt(urgent(), {
    nodes: [...nodes, aTestNode("c")],
    pods: [low("a1", "a"), low("b1", "b", { priority: 20 }), low("c1", "c", { priority: 20 })],
    random: () => 0.99,
    before: ({ client, nominator }) =>
      client.react("delete", "pods", () => {
        kept.push(nominator.onNode("a")[0]?.pod.metadata.name);
        return undefined;
      }),
  });
  assert.deepEqual([result.nominatedNode, kept], ["a", ["urgent"]]);
});

const anExtender = (more: Partial<Extender>): Extender => ({
  name: "http://extender",
  ignorable: false,
  binds: false,
  preempts: true,
  isInterested: () => true,
  filter: async (_, feasible) => ({ feasible, failed: new Map(), unresolvable: new Map() }),
  prioritize: async () => new Map(),
  preempt: async (_, candidates) => candidates,
  bind: async () => {},
  ...more,
});
const two = [low("a1", "a"), low("b1", "b", { priority: 5 })];

test("each extender gets the candidates that the previous ones left; an extender without interest is not called", async () => {
  const seen: string[][] = [];
  const striking = anExtender({
    async preempt(_, candidates) {
      seen.push([...candidates.keys()]);
      return new Map([...candidates].filter(([node]) => node !== "a"));
    },
  });
  const idle = anExtender({ isInterested: () => false, preempt: () => assert.fail("it is not interested") });
  const { result } = await preempt(urgent(), { nodes, pods: two, extenders: [idle, striking, striking] });
  assert.deepEqual([result.nominatedNode, seen], ["b", [["a", "b"], ["b"]]]);
});

test("an extender that strikes every candidate ends the attempt; the next extender is not called", async () => {
  const striking = anExtender({ preempt: async () => new Map() });
  const next = anExtender({ preempt: () => assert.fail("it is called without candidates") });
  const { cluster, result } = await preempt(urgent(), { nodes, pods: two, extenders: [striking, next] });
  assert.deepEqual([result.nominatedNode, result.status?.code, gone(cluster)], [undefined, "Unschedulable", []]);
});

for (const [name, later] of [
  ["deleted", undefined],
  ["deleted and created again", urgent({ metadata: { uid: "another" } })],
] as const) {
  test(`for a pod that was ${name} while an extender was called nothing is evicted`, async () => {
    let current: Pod | undefined = urgent();
    const slow = anExtender({
      async preempt(_, candidates) {
        current = later;
        return candidates;
      },
    });
    const given = listersOver(two.map((each) => [podsRef, each]));
    const informers: PluginContext["informers"] = {
      for<T extends KubeObject>(ref: ResourceRef) {
        const informer = given.for<T>(ref);
        // cast: asked for pods
        const get = (key: string) => (key === "default/urgent" ? (current as T | undefined) : informer.lister.get(key));
        return { ...informer, lister: { ...informer.lister, get } };
      },
    };
    const before = ({ client, nominator }: TestCluster): void => {
      client.react("delete", "pods", () => assert.fail("a victim is deleted"));
      nominator.set = () => assert.fail("the pod is nominated");
    };
    const attempt = preempt(urgent(), { nodes, pods: two, extenders: [slow], informers, before });
    await assert.rejects(attempt, /^Error: pod default\/urgent is gone$/);
  });
}

test("the search begins at a random node", async () => {
  const three = ["a", "b", "c"];
  for (const [at, name] of three.entries()) {
    const { result } = await preempt(urgent(), {
      nodes: three.map((node) => aTestNode(node)),
      pods: three.map((node) => low(`${node}1`, node)),
      args: { DefaultPreemption: { minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1 } },
      random: () => (at + 0.5) / 3,
    });
    assert.equal(result.nominatedNode, name);
  }
});

test("the search ends with the wanted number of candidates, though a later node were better", async () => {
  const tried = new Set<string>();
  const watching: Plugin = {
    name: "Watching",
    filter(_, __, { name }) {
      tried.add(name);
      return undefined;
    },
  };
  const { cluster } = await preempt(urgent(), {
    more: [watching],
    nodes: [...nodes, aTestNode("c")],
    pods: [low("a1", "a", { priority: 5 }), low("b1", "b", { priority: 4 }), low("c1", "c")],
    args: { DefaultPreemption: { minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 2 } },
  });
  assert.deepEqual([gone(cluster), [...tried]], [["b1"], ["a", "b"]]);
});

test("a failing ignorable extender does not change the candidates; another extender's failure ends the attempt", async () => {
  const failing = (ignorable: boolean) => anExtender({ ignorable, preempt: () => Promise.reject(new Error("away")) });
  const { result } = await preempt(urgent(), { nodes, pods: two, extenders: [failing(true)] });
  assert.equal(result.nominatedNode, "a");
  await assert.rejects(preempt(urgent(), { nodes, pods: two, extenders: [failing(false)] }), /^Error: away$/);
});

test("the evicted pods are the victims that the extenders returned, not those proposed", async () => {
  const pods = [low("a1", "a", { cpu: "2" }), low("a2", "a", { cpu: "2" })];
  const sparing = anExtender({
    preempt: async (_, candidates) =>
      new Map([...candidates].map(([node, victims]) => [node, { ...victims, pods: victims.pods.slice(0, 1) }])),
  });
  const { cluster } = await preempt(urgent({ cpu: "4" }), { nodes: [aTestNode("a")], pods, extenders: [sparing] });
  assert.equal(gone(cluster).length, 1);
});

test("a terminating pod of equal priority on the nominated node does not count as an earlier victim", async () => {
  const leaving = low("a1", "a", { priority: 10, metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } });
  const { result } = await preempt(urgent({ status: { nominatedNodeName: "a" } }), { nodes, pods: [leaving, low("b1", "b")] });
  assert.equal(result.nominatedNode, "b");
});

test("a pod without a possible node loses its nomination, and each node's reason is reported", async () => {
  const nowhere = { spec: { nodeSelector: { disk: "ssd" } }, status: { nominatedNodeName: "b" } };
  const { cluster, result } = await preempt(urgent(nowhere), { nodes, pods: two });
  assert.equal(cluster.client.object<Pod>(podsRef, "default/urgent")?.status?.nominatedNodeName, undefined);
  const message = "0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
  assert.deepEqual([result.nominatedNode, result.status?.reasons], ["", [message]]);
  const full = [low("a1", "a", { priority: 20 }), low("b1", "b", { priority: 20 })];
  const refusal = (await preempt(urgent(), { nodes, pods: full })).result.status?.reasons[0] ?? "";
  assert.match(refusal, /No victims found on node a for preemptor pod urgent/);
  assert.match(refusal, /No victims found on node b for preemptor pod urgent/);
});

test("on one node a pod of lower priority is kept when only its eviction would violate a budget", async () => {
  const labels = { app: "web" };
  const budget = {
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { matchLabels: labels } },
    status: { disruptionsAllowed: 0 },
  };
  const pods = [low("guarded", "a", { labels, cpu: "2" }), low("free", "a", { priority: 5, cpu: "2" })];
  const { cluster } = await preempt(urgent({ cpu: "2" }), {
    nodes: [aTestNode("a")],
    pods,
    objects: [[podDisruptionBudgets, budget]],
  });
  assert.deepEqual(gone(cluster), ["free"]);
});

test("the search continues beyond the wanted number of candidates until one violates no budget", async () => {
  const labels = { app: "web" };
  const budget = {
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { matchLabels: labels } },
    status: { disruptionsAllowed: 0 },
  };
  const { cluster } = await preempt(urgent(), {
    nodes: [...nodes, aTestNode("c")],
    pods: [low("a1", "a", { labels }), low("b1", "b", { labels }), low("c1", "c", { priority: 5 })],
    objects: [[podDisruptionBudgets, budget]],
    args: { DefaultPreemption: { minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1 } },
  });
  assert.deepEqual(gone(cluster), ["c1"]);
});

for (const { name, before, message } of [
  {
    name: "one that fails is the failure, though the others just have no victims",
    before: { fails: true, pods: [low("a1", "a"), low("b1", "b", { priority: 20 })] },
    message: /^Error: running "Failing" filter plugin: broken$/,
  },
  {
    name: "one where no pod has to be evicted contradicts the refusal before",
    before: { fails: false, pods: [low("a1", "a", { cpu: "1" }), low("b1", "b", { priority: 20 })] },
    message: /^Error: expected at least one victim pod on node "a"$/,
  },
]) {
  test(`without a candidate among the nodes ${name}`, async () => {
    let isRefused = !before.fails;
    const failing: Plugin = {
      name: "Failing",
      filter(_, __, node) {
        if (node.name !== "a") return undefined;
        if (before.fails) return node.pods.size === 0 ? failed(new Error("broken")) : undefined;
        const refusal = isRefused ? ({ code: "Unschedulable", reasons: ["once"] } as const) : undefined;
        isRefused = false;
        return refusal;
      },
    };
    await assert.rejects(preempt(urgent(), { nodes, pods: before.pods, more: [failing] }), message);
  });
}

test("a simulation changes neither the nodes of the snapshot nor the state of the cycle", async () => {
  const cluster = newTestCluster({ nodes: [aTestNode("a")], pods: [low("a1", "a", { cpu: "2" }), low("a2", "a", { cpu: "2" })] });
  const state: CycleState = new Map();
  const states: CycleState[] = [];
  const told = (trial: CycleState): void => void states.push(trial);
  const { at } = cluster.profile;
  const profile = {
    ...cluster.profile,
    at: { ...at, preFilter: [...at.preFilter, { name: "Told", removePod: told, addPod: told }] },
  };
  const info = newPodInfo(urgent());
  runPreFilter(cluster.profile, state, info, cluster.snapshot());
  const node = cluster.snapshot().nodes[0] as NodeInfo;
  const selected = atOnce(selectVictims(profile, state, info, node, [], cluster.nominator));
  assert.ok("pods" in selected && selected.pods.length === 2);
  assert.deepEqual([[...node.pods.keys()], states.length > 0, states.includes(state)], [["a1", "a2"], true, false]);
});

test("nothing is evicted for a pod that is gone when the preemption begins", async () => {
  const cluster = newTestCluster({ nodes, pods: [low("old", "a")] });
  const [plugin] = cluster.profile.at.postFilter;
  const statuses = new Map([["a", unschedulable("Insufficient cpu")]]);
  const outcome = plugin?.postFilter?.(new Map(), newPodInfo(urgent()), statuses, cluster.snapshot());
  await assert.rejects(Promise.resolve(outcome), { message: "pod default/urgent is gone" });
  assert.deepEqual(cluster.client.writes, []);
});
