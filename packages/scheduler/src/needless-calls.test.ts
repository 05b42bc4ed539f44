import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { cloneNodeInfo, newPodInfo, removePod } from "./cache/node-info.ts";
import { type CycleState, cloneState } from "./framework/cycle-state.ts";
import type { Plugin } from "./framework/extension-points.ts";
import { NodeFilter, type Profile, runPreFilter, runPreScore, scoreNodes } from "./profile.ts";
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
