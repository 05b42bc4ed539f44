import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { aNamespace } from "@coxswain/apimachinery/testing/builders";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { ClusterCache } from "../cache/cluster-cache.ts";
import { type NodeInfo, newPodInfo } from "../cache/node-info.ts";
import { runFilters, runPreFilter } from "../profile.ts";
import { aTestNode, aTestPod, newTestCluster, type TestCluster, type TestPodOptions } from "../testing/test-cluster.ts";
import { NodeTallies, type Share } from "./node-tallies.ts";

const zoneKey = "zone";
const term = (app: string, topologyKey: string) => ({ topologyKey, labelSelector: { matchLabels: { app } } });
const spread = (topologyKey: string, whenUnsatisfiable: "DoNotSchedule" | "ScheduleAnyway", app = "web") => ({
  topologyKey,
  maxSkew: 1,
  whenUnsatisfiable,
  labelSelector: { matchLabels: { app } },
});
/** Kinds of pods by what the plugins count for them. */
const specs = {
  plain: {},
  refusing: {
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term("web", "kubernetes.io/hostname")] } },
  },
  near: {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [term("db", zoneKey), term("db", "kubernetes.io/hostname")],
      },
    },
  },
  wishing: {
    affinity: {
      podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, podAffinityTerm: term("db", zoneKey) }] },
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: term("web", zoneKey) }],
      },
    },
  },
  spreading: { topologySpreadConstraints: [spread(zoneKey, "DoNotSchedule"), spread("kubernetes.io/hostname", "DoNotSchedule")] },
  wideSpreading: { topologySpreadConstraints: [spread(zoneKey, "ScheduleAnyway")], nodeSelector: { disk: "fast" } },
  narrowSpreading: { topologySpreadConstraints: [spread(zoneKey, "DoNotSchedule")], nodeSelector: { disk: "fast" } },
};
type Kind = keyof typeof specs;
const kinds = Object.keys(specs) as Kind[]; // cast: Object.keys forgets the type of the keys

const names = ["a", "b", "c", "d"];
const nodeOf = (name: string, zone: string | undefined, isFast: boolean): Node =>
  aTestNode(name, { labels: { ...(zone === undefined ? {} : { [zoneKey]: zone }), ...(isFast && { disk: "fast" }) } });
const podOf = (name: string, kind: Kind, app: string, on?: string): Pod =>
  aTestPod(name, { labels: { app }, spec: specs[kind], cpu: "10m", ...(on !== undefined && { on }) });

const change = fc.oneof(
  fc.record({
    what: fc.constant("node" as const),
    name: fc.constantFrom(...names),
    zone: fc.constantFrom("x", "y", undefined),
    isFast: fc.boolean(),
  }),
  fc.record({ what: fc.constant("node gone" as const), name: fc.constantFrom(...names) }),
  fc.record({
    what: fc.constant("pod" as const),
    name: fc.constantFrom("1", "2", "3", "4", "5", "6"),
    kind: fc.constantFrom(...kinds),
    app: fc.constantFrom("web", "db"),
    on: fc.constantFrom(...names),
  }),
  fc.record({ what: fc.constant("pod gone" as const), name: fc.constantFrom("1", "2", "3", "4", "5", "6") }),
);

interface Verdict {
  readonly refused: unknown;
  /** Reasons against each node. */
  readonly nodes: readonly unknown[];
  readonly scores: unknown;
}

/** What the two plugins say about a pod. */
function verdictOn({ profile, cache, scores }: TestCluster, pod: Pod): Verdict {
  const info = newPodInfo(pod);
  const snapshot = cache.snapshot();
  const state = new Map();
  const refused = runPreFilter(profile, state, info, snapshot);
  const sorted = snapshot.nodes.toSorted((one, other) => one.name.localeCompare(other.name));
  const nodes = sorted.map((node) => [node.name, runFilters(profile.at.filter, state, info, node)?.reasons]);
  const scored = [scores("InterPodAffinity", pod), scores("PodTopologySpread", pod)];
  return { refused, nodes, scores: scored.map((of) => Object.entries(of).toSorted()) };
}

const verdictsOf = (cluster: TestCluster): Verdict[] => kinds.map((kind) => verdictOn(cluster, podOf("new", kind, "web")));

test("counts that are kept between cycles are those of a scheduler that has just started, whatever changes", () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), (changes) => {
      const kept = newTestCluster();
      const nodes = new Map<string, Node>();
      const pods = new Map<string, Pod>();
      for (const one of changes) {
        if (one.what === "node") {
          const node = nodeOf(one.name, one.zone, one.isFast);
          nodes.set(one.name, node);
          kept.cache.setNode(node);
        } else if (one.what === "node gone") {
          kept.cache.removeNode(nodes.get(one.name) ?? aTestNode(one.name));
          nodes.delete(one.name);
        } else if (one.what === "pod") {
          const pod = podOf(one.name, one.kind, one.app, one.on);
          pods.set(one.name, pod);
          kept.cache.setPod(pod);
        } else {
          kept.cache.removePod(pods.get(one.name) ?? podOf(one.name, "plain", "web"));
          pods.delete(one.name);
        }
        assert.deepEqual(verdictsOf(kept), verdictsOf(newTestCluster({ nodes: [...nodes.values()], pods: [...pods.values()] })));
      }
    }),
    { numRuns: 60 },
  );
});

test("a node that was removed and added between two looks counts once", () => {
  const there = podOf("1", "plain", "web", "a");
  const first = nodeOf("a", "x", false);
  const kept = newTestCluster({ nodes: [first, nodeOf("b", "y", false)], pods: [there] });
  verdictsOf(kept);
  kept.cache.removePod(there);
  kept.cache.removeNode(first);
  kept.cache.setNode(nodeOf("a", "y", false));
  kept.cache.setPod(there);
  const fresh = newTestCluster({ nodes: [nodeOf("a", "y", false), nodeOf("b", "y", false)], pods: [there] });
  assert.deepEqual(verdictsOf(kept), verdictsOf(fresh));
});

const required = (...terms: object[]) => ({ requiredDuringSchedulingIgnoredDuringExecution: terms }) as never; // cast: terms of a test
const preferred = (app: string, weight: number) => ({
  affinity: {
    podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm: term(app, zoneKey) }] },
  },
});
const hardZones = { topologySpreadConstraints: [spread(zoneKey, "DoNotSchedule")] };
/** Pods that differ in one thing that their counts depend on. */
const variants: readonly (readonly [what: string, TestPodOptions, TestPodOptions])[] = [
  ["labels", { labels: { app: "web" } }, { labels: { app: "db" } }],
  ["the namespace", { labels: { app: "web" } }, { labels: { app: "web" }, namespace: "other" }],
  [
    "a term's pods",
    { spec: { affinity: { podAffinity: required(term("db", zoneKey)) } } },
    { spec: { affinity: { podAffinity: required(term("web", zoneKey)) } } },
  ],
  [
    "a term's key",
    { spec: { affinity: { podAntiAffinity: required(term("db", zoneKey)) } } },
    { spec: { affinity: { podAntiAffinity: required(term("db", "kubernetes.io/hostname")) } } },
  ],
  [
    "a term's namespaces",
    { spec: { affinity: { podAntiAffinity: required({ ...term("db", zoneKey), namespaces: ["other"] }) } } },
    { spec: { affinity: { podAntiAffinity: required({ ...term("db", zoneKey), namespaces: ["default"] }) } } },
  ],
  ["the weight of a preferred term", { spec: preferred("db", 1) }, { spec: preferred("db", -1) }],
  ["the pods of a preferred term", { spec: preferred("db", 1) }, { spec: preferred("web", 1) }],
  [
    "the node selector of a constraint that has to hold",
    { labels: { app: "db" }, spec: { topologySpreadConstraints: [spread(zoneKey, "DoNotSchedule", "db")] } },
    {
      labels: { app: "db" },
      spec: { topologySpreadConstraints: [spread(zoneKey, "DoNotSchedule", "db")], nodeSelector: { disk: "fast" } },
    },
  ],
  [
    "the node selector of a constraint that should hold",
    { spec: { topologySpreadConstraints: [spread(zoneKey, "ScheduleAnyway")] } },
    { spec: specs.wideSpreading },
  ],
  [
    "the namespace of a constraint that has to hold",
    { labels: { app: "web" }, spec: hardZones },
    { labels: { app: "web" }, spec: hardZones, namespace: "other" },
  ],
  [
    "the namespace of a constraint that should hold",
    { spec: specs.wideSpreading },
    { spec: specs.wideSpreading, namespace: "other" },
  ],
];

/** Three zones with a pod of each app, one of which refuses pods of the app web. */
const populated = {
  nodes: [nodeOf("a", "x", true), nodeOf("b", "y", false), nodeOf("c", "z", true), nodeOf("d", "x", false)],
  pods: [
    podOf("1", "refusing", "web", "a"),
    podOf("2", "plain", "web", "b"),
    podOf("3", "plain", "db", "c"),
    podOf("4", "wishing", "db", "d"),
    aTestPod("5", { labels: { app: "db" }, namespace: "other", on: "b" }),
    aTestPod("6", { labels: { app: "web" }, namespace: "other", on: "c" }),
  ],
};

for (const [what, first, second] of variants) {
  for (const [one, other] of [
    [first, second],
    [second, first],
  ] as const) {
    test(`${what}: a pod after one that differs in it is judged as by a scheduler that has just started (${one === first ? "one way" : "the other way"})`, () => {
      const kept = newTestCluster(populated);
      const before = verdictOn(kept, aTestPod("new", one));
      const after = verdictOn(kept, aTestPod("new", other));
      assert.deepEqual(after, verdictOn(newTestCluster(populated), aTestPod("new", other)));
      assert.notDeepEqual(after, before, "the two pods are judged differently");
    });
  }
}

test("the labels of a pod's namespace: after they changed, existing pods that select namespaces refuse it", () => {
  const namespace = aNamespace({ name: "default", labels: { team: "one" } });
  const affinity = {
    podAntiAffinity: required({ ...term("web", zoneKey), namespaceSelector: { matchLabels: { team: "two" } } }),
  };
  const guard = aTestPod("guard", { on: "a", namespace: "other", spec: { affinity } });
  const kept = newTestCluster({ nodes: [nodeOf("a", "x", false)], pods: [guard], objects: [[namespaces, namespace]] });
  const refusals = (): unknown => verdictOn(kept, podOf("new", "plain", "web")).nodes;
  assert.deepEqual(refusals(), [["a", undefined]]);
  namespace.metadata.labels = { team: "two" };
  assert.deepEqual(refusals(), [["a", ["node(s) didn't satisfy existing pods anti-affinity rules"]]]);
});

const podsOn = (node: NodeInfo): Share[] => (node.pods.size === 0 ? [] : [[zoneKey, "x", node.pods.size]]);
function* oneByOne(node: NodeInfo): Steps<Share[]> {
  yield;
  return podsOn(node);
}

/** A cluster of the nodes a to d, with a pod on each. */
function fourNodes(): ClusterCache {
  const cache = new ClusterCache(newFakeClock());
  for (const name of names) {
    cache.setNode(aTestNode(name));
    cache.setPod(aTestPod(`on-${name}`, { on: name }));
  }
  return cache;
}

const countOf = (
  tallies: NodeTallies,
  key: string | undefined,
  cache: ClusterCache,
  looked: string[] = [],
): number | undefined => {
  const snapshot = cache.snapshot();
  const counts = atOnce(
    tallies.count(
      key,
      snapshot,
      () => snapshot.nodes,
      function* (node) {
        looked.push(node.name);
        return yield* oneByOne(node);
      },
    ),
  );
  return counts.get(zoneKey, "x");
};

test("only nodes that changed since the last count of a key are looked at again; without a key all are", () => {
  const cache = fourNodes();
  const tallies = new NodeTallies();
  assert.equal(countOf(tallies, "k", cache), 4);
  cache.setPod(aTestPod("second", { on: "c" }));
  const looked: string[] = [];
  assert.equal(countOf(tallies, "k", cache, looked), 5);
  assert.deepEqual(looked, ["c"]);
  for (const key of [undefined, "another"]) {
    looked.length = 0;
    assert.equal(countOf(tallies, key, cache, looked), 5);
    assert.deepEqual(looked, names, String(key));
  }
});

test("a change while a count is being made is part of the next one, and an abandoned count is made anew", () => {
  const cache = fourNodes();
  const tallies = new NodeTallies();
  const snapshot = cache.snapshot();
  const steps = tallies.count("k", snapshot, () => snapshot.nodes, oneByOne);
  for (let step = 0; step < 3; step++) steps.next(); // a and b have been counted
  cache.setPod(aTestPod("second", { on: "a" }));
  assert.equal(countOf(tallies, "k", cache), 5, "another count of the key at the same time does not use the incomplete one");
  assert.equal(atOnce(steps).get(zoneKey, "x"), 4);
  assert.equal(countOf(tallies, "k", cache), 5);
  const abandoned = tallies.count("k", cache.snapshot(), () => cache.snapshot().nodes, oneByOne);
  cache.setPod(aTestPod("third", { on: "a" }));
  abandoned.next();
  abandoned.return(undefined as never);
  assert.equal(countOf(tallies, "k", cache), 6);
});

test("after more changes than are kept all nodes are counted again", () => {
  const cache = fourNodes();
  const tallies = new NodeTallies();
  assert.equal(countOf(tallies, "k", cache), 4);
  for (let i = 0; i < 10_001; i++) cache.setNode(aTestNode("a"));
  cache.removePod(aTestPod("on-b"));
  const looked: string[] = [];
  assert.equal(countOf(tallies, "k", cache, looked), 3);
  assert.deepEqual(looked, names);
});

test("counts of the least recently used keys are dropped", () => {
  const cache = fourNodes();
  const tallies = new NodeTallies();
  for (let key = 0; key < 16; key++) countOf(tallies, String(key), cache);
  const looked: string[] = [];
  countOf(tallies, "0", cache, looked);
  countOf(tallies, "another", cache);
  countOf(tallies, "0", cache, looked);
  assert.deepEqual(looked, [], "used last");
  countOf(tallies, "1", cache, looked);
  assert.deepEqual(looked, names);
});
