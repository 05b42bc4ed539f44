import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, Pod, PodSpec, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { cloneNodeInfo, newPodInfo, removePod } from "./cache/node-info.ts";
import { type CycleState, cloneState } from "./framework/cycle-state.ts";
import type { Plugin } from "./framework/extension-points.ts";
import { NodeFilter, neededFilters, type Profile, runPreFilter, runPreScore, scoreNodes } from "./profile.ts";
import { aTestNode, aTestPod, newTestCluster } from "./testing/test-cluster.ts";

/** The profile, with every plugin called for every node. */
const callingAll = ({ at, ...profile }: Profile): Profile => ({
  ...profile,
  at: { ...at, filter: at.filter.map(plain), score: at.score.map(plain) },
});

/** The plugin's filter and score, without what makes calling them needless. */
const plain = (plugin: Plugin): Plugin => ({
  name: plugin.name,
  filter: (state, pod, node) => plugin.filter?.(state, pod, node),
  score: (state, pod, node, snapshot) => plugin.score?.(state, pod, node, snapshot) ?? 0,
  normalize: (state, pod, scores, nodes) => plugin.normalize?.(state, pod, scores, nodes),
});

const zoneKey = "topology.kubernetes.io/zone";
const maybe = <T>(values: readonly T[]): fc.Arbitrary<T | undefined> => fc.constantFrom(undefined, undefined, ...values);

const taints: readonly Taint[] = [
  { key: "dedicated", value: "db", effect: "NoSchedule" },
  { key: "slow", effect: "PreferNoSchedule" },
];
const term = { topologyKey: zoneKey, labelSelector: { matchLabels: { app: "web" } } };
const inPool = { matchExpressions: [{ key: "pool", operator: "In" as const, values: ["1"] }] };
const disk = (pdName: string) => ({ name: "disk", gcePersistentDisk: { pdName } });
const spread = (whenUnsatisfiable: "DoNotSchedule" | "ScheduleAnyway") => [{ ...term, maxSkew: 1, whenUnsatisfiable }];

const places = fc.record({
  zone: maybe(["x", "y"]),
  pool: fc.constantFrom("1", "2"),
  taint: maybe(taints),
  cordoned: maybe([true]),
  image: maybe(["example.com/web:1"]),
});
const wishes = fc.record({
  app: fc.constantFrom("web", "db"),
  cpu: fc.constantFrom("0", "1", "3"),
  port: maybe([80]),
  nodeName: maybe(["n0", "n1"]),
  nodeSelector: maybe<Record<string, string>>([{ pool: "1" }, {}]),
  nodeAffinity: maybe([
    { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [inPool] } },
    { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 3, preference: inPool }] },
  ]),
  podAffinity: maybe([
    { requiredDuringSchedulingIgnoredDuringExecution: [term] },
    { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: term }] },
  ]),
  podAntiAffinity: maybe([
    { requiredDuringSchedulingIgnoredDuringExecution: [term] },
    { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, podAffinityTerm: term }] },
  ]),
  spread: maybe([spread("DoNotSchedule"), spread("ScheduleAnyway")]),
  volume: maybe([disk("a"), disk("b"), { name: "empty", emptyDir: {} }]),
  image: fc.constantFrom("example.com/web:1", "example.com/db"),
  on: fc.nat({ max: 3 }),
});
type Place = typeof places extends fc.Arbitrary<infer T> ? T : never;
type Wish = typeof wishes extends fc.Arbitrary<infer T> ? T : never;

const nodeOf = ({ zone, pool, taint, cordoned, image }: Place, i: number): Node => {
  const labels = { pool, ...(zone !== undefined && { [zoneKey]: zone }) };
  const spec = { ...(taint && { taints: [taint] }), ...(cordoned && { unschedulable: true }) };
  const node = aTestNode(`n${i}`, { labels, spec, cpu: "6" });
  const images = image === undefined ? [] : [{ names: [image], sizeBytes: 300 << 20 }];
  return { ...node, status: { ...node.status, images } };
};

function podOf(name: string, wish: Wish, on?: string): Pod {
  const { app, cpu, port, nodeName, nodeSelector, nodeAffinity, podAffinity, podAntiAffinity, volume, image } = wish;
  const ports = port === undefined ? {} : { ports: [{ containerPort: port, hostPort: port }] };
  const affinity = { ...(nodeAffinity && { nodeAffinity }), ...(podAffinity && { podAffinity }) };
  return aTestPod(name, {
    labels: { app },
    spec: {
      containers: [{ name: "main", image, resources: { requests: { cpu } }, ...ports }],
      affinity: { ...affinity, ...(podAntiAffinity && { podAntiAffinity }) },
      ...(nodeSelector && { nodeSelector }),
      ...(wish.spread && { topologySpreadConstraints: wish.spread }),
      ...(volume && { volumes: [volume] }),
      ...((on ?? nodeName) !== undefined && { nodeName: on ?? nodeName }),
    },
  });
}

const clusters = fc.record({
  where: fc.array(places, { minLength: 1, maxLength: 4 }),
  present: fc.array(wishes, { maxLength: 6 }),
  incoming: wishes,
  nominated: fc.option(wishes, { nil: undefined, freq: 3 }),
  enforced: fc.boolean(),
});

test("filters and scores that are not called because their answer is known give the same result as when they are called", () => {
  let [left, kept] = [0, 0];
  fc.assert(
    fc.property(clusters, ({ where, present, incoming, nominated, enforced }) => {
      const nodes = where.map(nodeOf);
      const pods = present.map((wish, i) => podOf(`p${i}`, wish, `n${wish.on % nodes.length}`));
      const addedAffinity = {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [inPool] },
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: inPool }],
      };
      const cluster = newTestCluster({ nodes, pods, args: enforced ? { NodeAffinity: { addedAffinity } } : {} });
      const { profile, nominator } = cluster;
      const all = callingAll(profile);
      if (nominated !== undefined) nominator.set(podOf("nominated", { ...nominated, nodeName: undefined }), "n0");
      const info = newPodInfo(podOf("incoming", incoming));
      const snapshot = cluster.snapshot();
      const state: CycleState = new Map();
      if (runPreFilter(profile, state, info, snapshot) !== undefined) return;
      for (const node of snapshot.nodes) {
        const trial = { state: cloneState(state), node: cloneNodeInfo(node) };
        const filters = [profile, all].map((each) => new NodeFilter(each, trial.state, info, nominator));
        const agree = (what: string): void => {
          const [short, full] = filters.map((filter) => filter.refusal(trial.node));
          assert.deepEqual(short, full, what);
        };
        agree(`node ${node.name}`);
        for (const other of node.pods.values()) {
          removePod(trial.node, other.pod.metadata.uid ?? "");
          for (const plugin of profile.at.preFilter) plugin.removePod?.(trial.state, info, other, trial.node);
          agree(`node ${node.name} without ${other.pod.metadata.name}`);
        }
      }
      atOnce(runPreScore(profile, state, info, snapshot.nodes, snapshot));
      const [short, full] = [profile, all].map((each) => atOnce(scoreNodes(each, state, info, snapshot.nodes, snapshot)));
      assert.deepEqual(short, full);
      for (const plugin of profile.at.filter) plugin.mayRefuse?.(state, info) === false ? left++ : kept++;
    }),
    { numRuns: process.env["COX_TEST_LONG"] ? 5_000 : 400 },
  );
  assert.ok(left > 0 && kept > 0, `${left} filters were left out, ${kept} were not`);
});

const limits = ["EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits"];
const required = (...terms: object[]) => ({ requiredDuringSchedulingIgnoredDuringExecution: terms });
const preferred = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: term }] };
const rival = (app: string): Pod =>
  aTestPod("rival", {
    on: "n0",
    spec: { affinity: { podAntiAffinity: required({ ...term, labelSelector: { matchLabels: { app } } }) } } as Partial<PodSpec>,
  });
for (const { name, spec, beside = [], want } of [
  { name: "without wishes", spec: {}, want: [] },
  { name: "with a node", spec: { nodeName: "n0" }, want: ["NodeName"] },
  { name: "with a node selector", spec: { nodeSelector: { pool: "1" } }, want: ["NodeAffinity"] },
  {
    name: "with a preference for nodes",
    spec: {
      affinity: {
        nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 3, preference: inPool }] },
      },
    },
    want: [],
  },
  {
    name: "with a required node affinity",
    spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [inPool] } } } },
    want: ["NodeAffinity"],
  },
  {
    name: "with a host port",
    spec: { containers: [{ name: "c", image: "i", ports: [{ containerPort: 80, hostPort: 80 }] }] },
    want: ["NodePorts"],
  },
  {
    name: "with a container port",
    spec: { containers: [{ name: "c", image: "i", ports: [{ containerPort: 80 }] }] },
    want: [],
  },
  { name: "with an empty folder", spec: { volumes: [{ name: "empty", emptyDir: {} }] }, want: limits },
  { name: "with a disk", spec: { volumes: [disk("a")] }, want: ["VolumeRestrictions", ...limits] },
  {
    name: "with a claim",
    spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] },
    want: [...limits, "VolumeBinding", "VolumeZone"],
  },
  { name: "that has to be spread", spec: { topologySpreadConstraints: spread("DoNotSchedule") }, want: ["PodTopologySpread"] },
  { name: "that had better be spread", spec: { topologySpreadConstraints: spread("ScheduleAnyway") }, want: [] },
  { name: "with affinity", spec: { affinity: { podAffinity: required(term) } }, want: ["InterPodAffinity"] },
  { name: "with anti-affinity", spec: { affinity: { podAntiAffinity: required(term) } }, want: ["InterPodAffinity"] },
  { name: "with a preference for pods", spec: { affinity: { podAffinity: preferred, podAntiAffinity: preferred } }, want: [] },
  { name: "beside one that keeps it away", spec: {}, beside: [rival("web")], want: ["InterPodAffinity"] },
  { name: "beside one that keeps others away", spec: {}, beside: [rival("db")], want: [] },
] as { name: string; spec: Partial<PodSpec>; beside?: Pod[]; want: string[] }[]) {
  test(`of a pod ${name} only the filters are asked that may refuse it`, () => {
    const bound = { "pv.kubernetes.io/bind-completed": "yes" };
    const claim = { metadata: { name: "data", namespace: "default", annotations: bound }, spec: { volumeName: "pv" } };
    const { profile, snapshot } = newTestCluster({
      nodes: [aTestNode("n0", { labels: { [zoneKey]: "x" } })],
      pods: beside,
      objects: [
        [persistentVolumeClaims, claim as KubeObject],
        [persistentVolumes, { metadata: { name: "pv" }, spec: {} } as KubeObject],
      ],
    });
    const state: CycleState = new Map();
    const pod = newPodInfo(aTestPod("web", { labels: { app: "web" }, spec }));
    assert.equal(runPreFilter(profile, state, pod, snapshot()), undefined);
    const always = ["NodeUnschedulable", "TaintToleration", "NodeResourcesFit"];
    const asked = neededFilters(profile, state, pod).map((plugin) => plugin.name);
    assert.deepEqual(asked.toSorted(), [...always, ...want].toSorted());
  });
}

const other = aTestPod("other", { on: "n0", labels: { app: "web" } });
for (const { name, spec = {}, node = {}, images = [], beside = [], want } of [
  { name: "without wishes", beside: [other], want: [] },
  {
    name: "with a preference for nodes",
    spec: {
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 3, preference: inPool }] } },
    },
    want: ["NodeAffinity"],
  },
  { name: "where a node has a taint", node: { taints: [taints[1]] }, want: ["TaintToleration"] },
  { name: "whose image a node has", images: ["busybox:latest"], want: ["ImageLocality"] },
  { name: "whose image no node has", images: ["example.com/web:1"], want: [] },
  {
    name: "that had better be spread",
    spec: { topologySpreadConstraints: spread("ScheduleAnyway") },
    want: ["PodTopologySpread"],
  },
  { name: "that has to be spread", spec: { topologySpreadConstraints: spread("DoNotSchedule") }, want: [] },
  {
    name: "with a preference for pods that are there",
    spec: { affinity: { podAffinity: preferred } },
    beside: [other],
    want: ["InterPodAffinity"],
  },
  { name: "with a preference for pods that are not there", spec: { affinity: { podAffinity: preferred } }, want: [] },
] as { name: string; spec?: Partial<PodSpec>; node?: object; images?: string[]; beside?: Pod[]; want: string[] }[]) {
  test(`of a pod ${name} only the scores are asked for that may differ`, () => {
    const labelled = aTestNode("n0", { labels: { [zoneKey]: "x" }, spec: node });
    const status = { ...labelled.status, images: images.map((image) => ({ names: [image], sizeBytes: 300 << 20 })) };
    const { profile, snapshot } = newTestCluster({ nodes: [{ ...labelled, status }, aTestNode("n1")], pods: beside });
    const state: CycleState = new Map();
    const pod = newPodInfo(aTestPod("web", { labels: { app: "web" }, spec }));
    const { nodes } = snapshot();
    runPreFilter(profile, state, pod, snapshot());
    atOnce(runPreScore(profile, state, pod, nodes, snapshot()));
    const scoring = profile.at.score.filter(({ score }) => score !== undefined);
    const asked = scoring.filter((plugin) => plugin.commonScore?.(state, pod, nodes, snapshot()) === undefined);
    const always = ["NodeResourcesFit", "NodeResourcesBalancedAllocation"];
    assert.deepEqual(asked.map((plugin) => plugin.name).toSorted(), [...always, ...want].toSorted());
  });
}
