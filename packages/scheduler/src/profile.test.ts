import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { newNodeInfo, newPodInfo } from "./cache/node-info.ts";
import { emptyPluginSet, type PluginSets, pluginPoints } from "./config/plugin-sets.ts";
import { type ClusterEvent, covers, labelOf } from "./framework/cluster-event.ts";
import type { Plugin } from "./framework/extension-points.ts";
import { newNominator } from "./framework/nominator.ts";
import { NodeFilter, newInterests, newProfile, runPreScore, scoreNodes } from "./profile.ts";
import { aTestNode, aTestPod, newTestCluster, type TestPodOptions } from "./testing/test-cluster.ts";

const known: Record<string, Plugin> = {
  Sort: { name: "Sort", compare: () => 0 },
  OtherSort: { name: "OtherSort", compare: () => 0 },
  Bind: { name: "Bind", bind: () => Promise.resolve(undefined) },
  Both: { name: "Both", filter: () => undefined, score: () => 1 },
  Quiet: { name: "Quiet", idleAt: ["preFilter"], filter: () => undefined, wakeUpOn: ["Node/Add"] },
};
const sets = (written: Record<string, { enabled?: string[]; disabled?: string[] }>): PluginSets => {
  const refs = (names: string[] = []) =>
    names.map((name) => ({ name: name.split(":")[0] ?? "", weight: Number(name.split(":")[1] ?? 0) }));
  const own = Object.entries(written).map(([point, { enabled, disabled }]) => [
    point,
    { enabled: refs(enabled), disabled: refs(disabled) },
  ]);
  return {
    ...Object.fromEntries(pluginPoints.map((point) => [point, emptyPluginSet])),
    ...Object.fromEntries(own),
  } as PluginSets;
};
const make = (written: Parameters<typeof sets>[0]) => newProfile("p", sets(written), (name) => known[name]);
const base = ["Sort", "Bind", "Both:3"];

test("multiPoint stands for every point in which a plugin takes part", () => {
  const profile = make({ multiPoint: { enabled: base } });
  assert.deepEqual(
    Object.fromEntries(Object.entries(profile.at).map(([point, plugins]) => [point, plugins.map(({ name }) => name)])),
    {
      preFilter: [],
      filter: ["Both"],
      postFilter: [],
      reserve: [],
      preScore: [],
      score: ["Both"],
      preBind: [],
      bind: ["Bind"],
      postBind: [],
      permit: [],
      queueSort: ["Sort"],
    },
  );
  assert.equal(profile.weights.get("Both"), 3);
});

test("an extension point's own list precedes multiPoint, and its weight wins", () => {
  const profile = make({
    multiPoint: { enabled: [...base, "Quiet"] },
    score: { enabled: ["Both:7"] },
    filter: { enabled: ["Quiet"] },
  });
  assert.equal(profile.weights.get("Both"), 7);
  assert.deepEqual(
    profile.at.filter.map(({ name }) => name),
    ["Quiet", "Both"],
  );
});

test("a plugin without a weight counts once", () => {
  assert.equal(make({ multiPoint: { enabled: ["Sort", "Bind", "Both"] } }).weights.get("Both"), 1);
});

test("a plugin can be disabled at one point, or all can", () => {
  assert.equal(make({ multiPoint: { enabled: base }, score: { disabled: ["Both"] } }).at.score.length, 0);
  assert.equal(make({ multiPoint: { enabled: base }, filter: { disabled: ["*"] } }).at.filter.length, 0);
});

for (const [written, message] of [
  [{ multiPoint: { enabled: ["Bind"] } }, 'one queue sort plugin required for profile with scheduler name "p"'],
  [
    { multiPoint: { enabled: ["Sort", "OtherSort", "Bind"] } },
    'one queue sort plugin required for profile with scheduler name "p"',
  ],
  [{ multiPoint: { enabled: ["Sort"] } }, "at least one bind plugin is needed"],
  [{ multiPoint: { enabled: base }, filter: { enabled: ["NodeLabel"] } }, 'FilterPlugin "NodeLabel" does not exist'],
  [{ multiPoint: { enabled: base }, filter: { enabled: ["Bind"] } }, 'plugin "Bind" does not extend FilterPlugin plugin'],
  [{ multiPoint: { enabled: [...base, "Both"] } }, 'plugin "Both" already registered as "FilterPlugin"'],
  [{ multiPoint: { enabled: base }, preFilter: { enabled: ["Quiet"] } }, undefined],
  [{ multiPoint: { enabled: ["Sort", "Bind", "Both:92233720368547758080"] } }, "total score of Score plugins could overflow"],
] as const) {
  test(`${JSON.stringify(written)}: ${message ?? "is accepted"}`, () => {
    const run = () => make(written as unknown as Parameters<typeof sets>[0]);
    if (message === undefined) assert.doesNotThrow(run);
    else assert.throws(run, { message });
  });
}

for (const [wanted, event, want] of [
  ["Pod/*", "Pod/Delete", true],
  ["Pod/Add", "Pod/Delete", false],
  ["Node/Update", "Node/UpdateLabel", true],
  ["Node/UpdateTaint", "Node/UpdateUnschedulable", true],
  ["Node/UpdateLabel", "Node/UpdateTaint", false],
  ["Node/Add", "*/*", true],
  ["PersistentVolume/Add", "PersistentVolumeClaim/Add", false],
] as [ClusterEvent, ClusterEvent, boolean][]) {
  test(`${wanted} ${want ? "includes" : "does not include"} ${event}`, () => assert.equal(covers(wanted, event), want));
}

test("events have upstream's names in metrics", () => {
  const events: ClusterEvent[] = ["Pod/Delete", "Node/UpdateTaint", "Node/Add", "PersistentVolumeClaim/Add", "*/*"];
  const want = ["AssignedPodDelete", "NodeTaintChange", "NodeAdd", "PvcAdd", "UnschedulableTimeout"];
  assert.deepEqual(events.map(labelOf), want);
});

test("a preScore plugin that does not succeed fails the cycle, with its name", () => {
  const cluster = newTestCluster({ nodes: [aTestNode("a")] });
  const failing: Plugin = { name: "Failing", preScore: () => ({ code: "Error", reasons: ["ill", "tired"] }) };
  const { at } = cluster.profile;
  const profile = { ...cluster.profile, at: { ...at, preScore: [failing] } };
  const info = newPodInfo(aTestPod("web"));
  const snapshot = cluster.snapshot();
  assert.throws(() => atOnce(runPreScore(profile, new Map(), info, snapshot.nodes, snapshot)), {
    message: 'running PreScore plugin "Failing": ill, tired',
  });
});

test("scores are multiplied by their weights, and each plugin is measured once, whether it scores nodes or all in common", () => {
  const cluster = newTestCluster({ nodes: [aTestNode("a"), aTestNode("b")] });
  const each: Plugin = { name: "Each", score: (_, __, { name }) => (name === "a" ? 1 : 2) };
  const common: Plugin = { name: "Common", commonScore: () => 5, score: () => 0 };
  const weights = new Map([
    ["Each", 10],
    ["Common", 3],
  ]);
  const profile = { ...cluster.profile, weights, at: { ...cluster.profile.at, score: [each, common] } };
  const snapshot = cluster.snapshot();
  const measured: unknown[] = [];
  let now = 0;
  const timer = { now: () => ++now, plugin: (...call: unknown[]) => measured.push(call) };
  const info = newPodInfo(aTestPod("web"));
  assert.deepEqual(atOnce(scoreNodes(profile, new Map(), info, snapshot.nodes, snapshot, timer)), [25, 35]);
  assert.deepEqual(measured, [
    ["Each", "Score", undefined, 1],
    ["Common", "Score", undefined, 2],
  ]);
});

test("the plugins that rejected a pod determine the events that requeue it", () => {
  const mayHelp = newInterests([make({ multiPoint: { enabled: [...base, "Quiet"] } })]);
  assert.equal(mayHelp("Quiet", "Pod/Delete"), false);
  assert.equal(mayHelp("Quiet", "Node/Add"), true);
  assert.equal(mayHelp("Both", "Pod/Delete"), true);
  assert.equal(mayHelp("SomebodyElse", "Pod/Delete"), true);
  const ofTwo = newInterests([make({ multiPoint: { enabled: base } }), make({ multiPoint: { enabled: [...base, "Quiet"] } })]);
  assert.deepEqual([ofTwo("Quiet", "Pod/Delete"), ofTwo("Quiet", "Node/Add")], [false, true]);
});

const likes = {
  podAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "db" } } },
    ],
  },
};
const avoids = { podAntiAffinity: likes.podAffinity };
for (const { name, nominated, pod, want } of [
  { name: "of lower priority does not count", nominated: { priority: 4 }, pod: { priority: 5 }, want: /^a$/ },
  { name: "counts for a pod that, as it, has no priority", nominated: {}, pod: {}, want: /Insufficient cpu/ },
  { name: "of priority 0 counts for a pod without one", nominated: { priority: 0 }, pod: {}, want: /Insufficient cpu/ },
  { name: "without a priority counts for a pod of priority 0", nominated: {}, pod: { priority: 0 }, want: /Insufficient cpu/ },
  { name: "of the same priority counts", nominated: { priority: 5 }, pod: { priority: 5 }, want: /Insufficient cpu/ },
  { name: "of higher priority counts", nominated: { priority: 6 }, pod: { priority: 5 }, want: /Insufficient cpu/ },
  {
    name: "that may never arrive is no neighbour to be near",
    nominated: { priority: 9, cpu: "100m", labels: { app: "db" } },
    pod: { cpu: "100m", spec: { affinity: likes } },
    want: /didn't match pod affinity rules/,
  },
  {
    name: "that may arrive is kept at a distance",
    nominated: { priority: 9, cpu: "100m", labels: { app: "db" } },
    pod: { cpu: "100m", spec: { affinity: avoids } },
    want: /didn't match pod anti-affinity rules/,
  },
] as { name: string; nominated: TestPodOptions; pod: TestPodOptions; want: RegExp }[]) {
  test(`a nominated pod ${name}`, async () => {
    const cluster = newTestCluster({ nodes: [aTestNode("a", { cpu: "1" })] });
    cluster.nominator.set(aTestPod("nominated", nominated), "a");
    assert.match(await cluster.place(aTestPod("web", pod)), want);
  });
}

test("a measured cycle measures every filter on eight nodes, and leaves out those that cannot refuse on the others", () => {
  const called: string[] = [];
  const measured: string[] = [];
  const filters: Plugin[] = ["Needed", "Idle"].map((name) => ({
    name,
    filter: () => void called.push(name),
    ...(name === "Idle" && { mayRefuse: () => false }),
  }));
  const profile = make({ multiPoint: { enabled: base } });
  const timer = { now: () => 0, plugin: (name: string) => measured.push(name) };
  const filter = new NodeFilter(
    { ...profile, at: { ...profile.at, filter: filters } },
    new Map(),
    newPodInfo(aTestPod("p")),
    newNominator(),
    timer,
  );
  for (let i = 0; i < 20; i++) assert.equal(filter.refusal(newNodeInfo(aTestNode(`n${i}`))), undefined);
  const count = (of: readonly string[], wanted: string): number => of.filter((name) => name === wanted).length;
  assert.deepEqual([count(called, "Needed"), count(called, "Idle")], [20, 8]);
  assert.deepEqual([count(measured, "Needed"), count(measured, "Idle")], [8, 8]);
});
