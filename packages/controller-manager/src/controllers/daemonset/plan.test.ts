import assert from "node:assert/strict";
import { test } from "node:test";
import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod, PodSpec, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { aDaemonSet, aNode, aPod, type PodOptions } from "@coxswain/apimachinery/testing/builders";
import { eligibilityFor } from "./eligibility.ts";
import { newFailedPodBackoff } from "./failed-pod-backoff.ts";
import { groupByNode, isUpdated, type View } from "./node-pods.ts";
import { planNodes } from "./plan.ts";
import { pinnedTo, podTemplateOf, targetNodeOf, withDaemonTolerations } from "./pod-template.ts";
import { planRollingUpdate } from "./rolling-update.ts";
import { daemonSetStatus } from "./status.ts";

const now = Date.parse("2024-01-02T00:00:00Z");
const longAgo = "2024-01-01T00:00:00Z";
const always = { shouldRun: true, shouldContinue: true };
const keeps = { shouldRun: false, shouldContinue: true };
const never = { shouldRun: false, shouldContinue: false };

const podOf = (hash: string, name: string, nodeName: string, options: PodOptions = {}): Pod =>
  aPod({ name, nodeName, labels: { app: "agent", "controller-revision-hash": hash }, ...options });
const fresh = (name: string, nodeName: string, options?: PodOptions): Pod => podOf("new", name, nodeName, options);
const stale = (name: string, nodeName: string, options?: PodOptions): Pod => podOf("old", name, nodeName, options);

function viewOf(options: {
  nodes?: Record<string, { shouldRun: boolean; shouldContinue: boolean }>;
  pods?: readonly Pod[];
  maxUnavailable?: number | string;
  maxSurge?: number | string;
  daemonSet?: DaemonSet;
  surgeEnabled?: boolean;
}): View {
  const { nodes = { a: always, b: always, c: always }, pods = [], maxUnavailable = 1, maxSurge = 0 } = options;
  const rollingUpdate = { maxUnavailable, maxSurge };
  return {
    daemonSet: options.daemonSet ?? aDaemonSet({ spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate } } }),
    nodes: Object.entries(nodes).map(([name, eligibility]) => ({ name, ...eligibility })),
    pods: groupByNode(pods),
    hash: "new",
    surgeEnabled: options.surgeEnabled ?? true,
    now,
  };
}

test("a pod is updated by the hash of its label; an empty hash is that of none", () => {
  assert.deepEqual([isUpdated(fresh("p", "a"), "new"), isUpdated(stale("p", "a"), "new")], [true, false]);
  assert.deepEqual([isUpdated(podOf("", "p", "a"), ""), isUpdated(aPod({ name: "p" }), "")], [false, false]);
});

test("pods are grouped by their node; one without a node hides none after it", () => {
  const [unplaced, first, second] = [aPod({ name: "p" }), fresh("q", "a"), fresh("r", "a")];
  assert.deepEqual(groupByNode([unplaced, first, second]), new Map([["a", [first, second]]]));
});

const taint = (effect: string, key = "dedicated"): Taint => ({ key, value: "db", effect });
for (const { name, template = {}, labels, taints, want } of [
  { name: "any node", want: always },
  { name: "the node that the template names", template: { nodeName: "node" }, want: always },
  { name: "no other than the node that the template names", template: { nodeName: "other" }, want: never },
  { name: "nodes with the selected label", template: { nodeSelector: { disk: "ssd" } }, labels: { disk: "ssd" }, want: always },
  { name: "no node without it", template: { nodeSelector: { disk: "ssd" } }, want: never },
  { name: "no node with a taint", taints: [taint("NoSchedule")], want: keeps },
  { name: "no node with a taint that ends pods", taints: [taint("NoExecute")], want: never },
  { name: "nodes that are only better avoided", taints: [taint("PreferNoSchedule")], want: always },
  {
    name: "nodes with a taint that the template tolerates",
    template: { tolerations: [{ key: "dedicated", operator: "Exists" }] },
    taints: [taint("NoSchedule")],
    want: always,
  },
  { name: "nodes that are cordoned", taints: [taint("NoSchedule", "node.kubernetes.io/unschedulable")], want: always },
  { name: "nodes that do not answer", taints: [taint("NoExecute", "node.kubernetes.io/unreachable")], want: always },
  { name: "no node without a network", taints: [taint("NoSchedule", "node.kubernetes.io/network-unavailable")], want: keeps },
  {
    name: "nodes without a network, in the node's own",
    template: { hostNetwork: true },
    taints: [taint("NoSchedule", "node.kubernetes.io/network-unavailable")],
    want: always,
  },
] as { name: string; template?: Partial<PodSpec>; labels?: Record<string, string>; taints?: Taint[]; want: object }[]) {
  test(`a set is for ${name}`, () => {
    const node = aNode({ ...(labels === undefined ? {} : { labels }), ...(taints === undefined ? {} : { taints }) });
    assert.deepEqual(eligibilityFor(aDaemonSet({ template }))(node), want);
  });
}

for (const { annotation, want } of [
  { annotation: "007", want: "7" },
  { annotation: "-1", want: "-1" },
  { annotation: "7x", want: undefined },
  { annotation: "", want: undefined },
  { annotation: "9223372036854775807", want: "9223372036854775807" },
  { annotation: "9223372036854775808", want: undefined },
  { annotation: "-9223372036854775809", want: undefined },
]) {
  test(`the template generation ${JSON.stringify(annotation)} gives the label ${want}`, () => {
    const daemonSet = aDaemonSet({ annotations: { "deprecated.daemonset.template.generation": annotation } });
    assert.equal(podTemplateOf(daemonSet, "abc").metadata?.labels?.["pod-template-generation"], want);
  });
}

test("a pod carries its revision and generation, and is for one node alone", () => {
  const daemonSet = aDaemonSet({
    annotations: { "deprecated.daemonset.template.generation": "3" },
    template: {
      affinity: {
        podAntiAffinity: {},
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [] }] },
        },
      },
    },
  });
  const template = pinnedTo(podTemplateOf(daemonSet, "abc"), "n1");
  assert.deepEqual(template.metadata?.labels, {
    app: "agent",
    "pod-template-generation": "3",
    "controller-revision-hash": "abc",
  });
  assert.deepEqual(template.spec?.affinity, {
    podAntiAffinity: {},
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] }],
      },
    },
  });
  assert.equal(targetNodeOf({ metadata: {}, spec: template.spec }), "n1");
  assert.equal(targetNodeOf(aPod({ nodeName: "n2" })), "n2");
  assert.equal(targetNodeOf(aPod()), undefined);
  const matchFields = [{ key: "metadata.name", operator: "NotIn", values: ["n1"] }];
  const requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms: [{ matchFields }] };
  const elsewhere = { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution } } };
  assert.equal(targetNodeOf({ metadata: {}, spec: { containers: [], ...elsewhere } }), undefined, "kept away is not pinned");
  matchFields.splice(0, 1, { key: "metadata.name", operator: "In", values: ["n1", "n2"] });
  assert.equal(targetNodeOf({ metadata: {}, spec: { containers: [], ...elsewhere } }), undefined, "one of two is not pinned");
  matchFields.splice(0, 1, { key: "metadata.namespace", operator: "In", values: ["n1"] });
  assert.equal(targetNodeOf({ metadata: {}, spec: { containers: [], ...elsewhere } }), undefined, "by another field neither");
  assert.deepEqual(daemonSet.spec.template.metadata?.labels, { app: "agent" }, "the set's own template stays as it is");
});

test("tolerates every trouble of a node without end, once each", () => {
  const soon = { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 };
  const { tolerations = [] } = withDaemonTolerations({ containers: [], tolerations: [{ operator: "Exists" }, soon] });
  assert.deepEqual(
    tolerations.map(
      ({ key = "*", effect = "*", tolerationSeconds }) => `${key.split("/").at(-1)}:${effect}:${tolerationSeconds ?? "ever"}`,
    ),
    [
      "*:*:ever",
      "not-ready:NoExecute:ever",
      "unreachable:NoExecute:ever",
      "disk-pressure:NoSchedule:ever",
      "memory-pressure:NoSchedule:ever",
      "pid-pressure:NoSchedule:ever",
      "unschedulable:NoSchedule:ever",
    ],
  );
  const ofHost = withDaemonTolerations({ containers: [], hostNetwork: true }).tolerations ?? [];
  assert.deepEqual(
    [ofHost.length, ofHost.at(-1)],
    [7, { key: "node.kubernetes.io/network-unavailable", operator: "Exists", effect: "NoSchedule" }],
  );
});

/** A pinned Pod that is not scheduled yet. */
const pinnedPod = (name: string, nodeName: string): Pod => {
  const { metadata, spec } = aPod({ name });
  return { metadata, spec: pinnedTo({ metadata: {}, spec }, nodeName).spec };
};
for (const { name, nodes, pods, maxSurge, surgeEnabled, waitMs = 0, create = [], gone = [], failed = [], retryAfterMs } of [
  { name: "creates one on each node that has none", pods: [fresh("1", "a")], create: ["b", "c"] },
  { name: "creates none where it only may stay", nodes: { a: keeps, b: never }, pods: [] },
  { name: "lets one stay where it may", nodes: { a: keeps }, pods: [fresh("1", "a")] },
  { name: "deletes all where it must not", nodes: { a: never }, pods: [fresh("1", "a"), stale("2", "a")], gone: ["1", "2"] },
  { name: "waits for one on its way out", nodes: { a: always }, pods: [fresh("1", "a", { deletedAt: longAgo })] },
  {
    name: "keeps the oldest of several",
    nodes: { a: always },
    pods: [fresh("2", "a", { createdAt: "2024-01-01T01:00:00Z" }), fresh("1", "a")],
    gone: ["2"],
  },
  {
    name: "replaces a failed one",
    nodes: { a: always },
    pods: [fresh("1", "a", { phase: "Failed" })],
    gone: ["1"],
    failed: ["1"],
  },
  {
    name: "removes one failed one of a node at a time",
    nodes: { a: always, b: always },
    pods: ["1", "2"].flatMap((n) => ["a", "b"].map((node) => fresh(`${node}${n}`, node, { phase: "Failed" }))),
    gone: ["a1", "b1"],
    failed: ["a1", "b1"],
  },
  {
    name: "does not replace a failed one too soon",
    nodes: { a: always },
    pods: [fresh("1", "a", { phase: "Failed" })],
    waitMs: 700,
    retryAfterMs: 700,
  },
  {
    name: "deletes what waits for a node that is gone",
    nodes: {},
    pods: [pinnedPod("pending", "gone"), fresh("1", "gone")],
    gone: ["pending"],
  },
  {
    name: "while surging, creates next to one on its way out",
    nodes: { a: always },
    maxSurge: 1,
    pods: [stale("1", "a", { deletedAt: longAgo })],
    create: ["a"],
  },
  {
    name: "while surging, does not create again and again next to a failed one",
    nodes: { a: always },
    maxSurge: 1,
    pods: [fresh("1", "a", { phase: "Failed" })],
    waitMs: 700,
    retryAfterMs: 700,
  },
  {
    name: "while surging, keeps the old one until the new one serves",
    nodes: { a: always },
    maxSurge: 1,
    pods: [stale("1", "a"), fresh("2", "a", { ready: false })],
  },
  {
    name: "while surging, deletes the old one when the new one serves",
    nodes: { a: always },
    maxSurge: 1,
    pods: [stale("1", "a"), fresh("2", "a")],
    gone: ["1"],
  },
  {
    name: "while surging, deletes the old one when it is not ready",
    nodes: { a: always },
    maxSurge: "50%",
    pods: [stale("1", "a", { ready: false }), fresh("2", "a", { ready: false })],
    gone: ["1"],
  },
  {
    name: "keeps a pod that is on its node rather than an older one that waits",
    nodes: { a: always },
    pods: [{ ...pinnedPod("waiting", "a") }, fresh("1", "a", { createdAt: "2024-01-01T01:00:00Z" })],
    gone: ["waiting"],
  },
  {
    name: "while surging, keeps the oldest of each template",
    nodes: { a: always },
    maxSurge: 1,
    pods: [
      stale("2", "a", { createdAt: "2024-01-01T01:00:00Z" }),
      stale("1", "a"),
      fresh("3", "a", { ready: false }),
      fresh("4", "a", { ready: false, createdAt: "2024-01-01T01:00:00Z" }),
    ],
    gone: ["2", "4"],
  },
  {
    name: "while surging, creates none beside one on its way out where it only may stay",
    nodes: { a: keeps },
    maxSurge: 1,
    pods: [stale("1", "a", { deletedAt: longAgo })],
  },
  {
    name: "with the gate off, does not surge",
    nodes: { a: always },
    maxSurge: 1,
    surgeEnabled: false,
    pods: [stale("1", "a"), fresh("2", "a", { ready: false })],
    gone: ["2"],
  },
] as {
  name: string;
  nodes?: Parameters<typeof viewOf>[0]["nodes"];
  pods: Pod[];
  maxSurge?: number;
  surgeEnabled?: boolean;
  waitMs?: number;
  create?: string[];
  gone?: string[];
  failed?: string[];
  retryAfterMs?: number;
}[]) {
  test(`on its nodes a set ${name}`, () => {
    const view = viewOf({
      pods,
      maxUnavailable: maxSurge === undefined ? 1 : 0,
      ...(nodes === undefined ? {} : { nodes }),
      ...(maxSurge === undefined ? {} : { maxSurge }),
      ...(surgeEnabled === undefined ? {} : { surgeEnabled }),
    });
    const plan = planNodes(view, () => waitMs);
    assert.deepEqual(
      {
        create: plan.create,
        gone: plan.delete.map(({ metadata }) => metadata.name),
        failed: plan.failed.map(({ pod }) => pod.metadata.name),
        retryAfterMs: plan.retryAfterMs,
      },
      { create, gone, failed, retryAfterMs },
    );
  });
}

for (const { name, pods, maxUnavailable, maxSurge, create = [], gone = [] } of [
  { name: "does nothing when all are new", pods: [fresh("1", "a"), fresh("2", "b"), fresh("3", "c")] },
  { name: "replaces one at a time", pods: [stale("1", "a"), stale("2", "b"), stale("3", "c")], gone: ["1"] },
  {
    name: "replaces as many as may be missing",
    pods: [stale("1", "a"), stale("2", "b"), stale("3", "c")],
    maxUnavailable: "50%",
    gone: ["1", "2"],
  },
  {
    name: "waits for a new one to serve",
    pods: [fresh("1", "a", { ready: false }), stale("2", "b"), stale("3", "c")],
  },
  { name: "waits for a node that has none", pods: [stale("2", "b"), stale("3", "c")] },
  {
    name: "replaces those that are not ready at once",
    pods: [stale("1", "a", { ready: false }), stale("2", "b", { ready: false }), stale("3", "c")],
    gone: ["1", "2", "3"],
  },
  {
    name: "counts a node with too many pods as missing one",
    pods: [stale("1", "a"), stale("4", "a"), stale("2", "b"), stale("3", "c")],
  },
  {
    name: "surges over as many as may be too many",
    pods: [stale("1", "a"), stale("2", "b"), stale("3", "c")],
    maxUnavailable: 0,
    maxSurge: 2,
    create: ["a", "b"],
  },
  {
    name: "counts new ones that do not serve yet among them",
    pods: [stale("1", "a"), fresh("4", "a", { ready: false }), stale("2", "b"), stale("3", "c")],
    maxUnavailable: 0,
    maxSurge: 2,
    create: ["b"],
  },
  {
    name: "counts a node with too many pods among them",
    pods: [stale("1", "a"), stale("4", "a"), stale("2", "b"), stale("3", "c")],
    maxUnavailable: 0,
    maxSurge: 1,
  },
  {
    name: "continues when the new one is ready",
    pods: [stale("1", "a"), fresh("4", "a"), stale("2", "b"), stale("3", "c")],
    maxUnavailable: 0,
    maxSurge: 1,
    create: ["b"],
    gone: ["1"],
  },
  {
    name: "does not wait for an old one that is going where the new one serves",
    pods: [stale("1", "a", { deletedAt: "2022-01-01T00:00:00Z" }), fresh("4", "a"), stale("2", "b"), stale("3", "c")],
    maxUnavailable: 1,
    gone: ["2"],
  },
  {
    name: "surges at once where the old one is not ready",
    pods: [stale("1", "a", { ready: false }), stale("2", "b", { ready: false }), stale("3", "c")],
    maxUnavailable: 0,
    maxSurge: 1,
    create: ["a", "b", "c"],
  },
] as {
  name: string;
  pods: Pod[];
  maxUnavailable?: number;
  maxSurge?: number;
  create?: string[];
  gone?: string[];
}[]) {
  test(`a rolling update ${name}`, () => {
    const view = viewOf({
      pods,
      ...(maxUnavailable === undefined ? {} : { maxUnavailable }),
      ...(maxSurge === undefined ? {} : { maxSurge }),
    });
    const plan = planRollingUpdate(view);
    assert.deepEqual({ create: plan.create, gone: plan.delete.map(({ metadata }) => metadata.name) }, { create, gone });
  });
}

test("an update that may neither lack nor exceed replaces one at a time", () => {
  const pods = [stale("1", "a"), stale("2", "b"), stale("3", "c")];
  const plan = planRollingUpdate(viewOf({ pods, maxUnavailable: 0, maxSurge: 0 }));
  assert.equal(plan.delete.length, 1);
});

test("while surging, the old pod stays until the new one has served for minReadySeconds", () => {
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } };
  const daemonSet = aDaemonSet({ spec: { minReadySeconds: 60, updateStrategy } });
  const pods = [stale("1", "a"), fresh("2", "a", { readySince: "2024-01-01T23:59:30Z" })];
  const view = viewOf({ nodes: { a: always }, pods, daemonSet });
  const gone = (at: View) => planNodes(at, () => 0).delete.map(({ metadata }) => metadata.name);
  assert.deepEqual([gone(view), gone({ ...view, now: now + 30_000 })], [[], ["1"]]);
});

test("an old pod on a node where it only may stay is replaced too", () => {
  const view = viewOf({ nodes: { a: always, z: keeps }, pods: [fresh("1", "a"), stale("2", "z")] });
  assert.deepEqual(
    planRollingUpdate(view).delete.map(({ metadata }) => metadata.name),
    ["2"],
  );
});

test("a new pod serves only after minReadySeconds", () => {
  const rollingUpdate = { maxUnavailable: 1, maxSurge: 0 };
  const daemonSet = aDaemonSet({ spec: { minReadySeconds: 60, updateStrategy: { type: "RollingUpdate", rollingUpdate } } });
  const pods = [fresh("1", "a", { readySince: "2024-01-01T23:59:30Z" }), stale("2", "b"), stale("3", "c")];
  assert.deepEqual(planRollingUpdate(viewOf({ pods, daemonSet })).delete, []);
  assert.equal(planRollingUpdate({ ...viewOf({ pods, daemonSet }), now: now + 30_000 }).delete.length, 1);
});

test("the status counts nodes, those that should not have a pod apart", () => {
  const daemonSet = aDaemonSet({ generation: 7, spec: { minReadySeconds: 60 } });
  const view = viewOf({
    daemonSet,
    nodes: { a: always, b: always, c: always, d: always, e: keeps, f: never },
    pods: [
      fresh("1", "a"),
      fresh("2", "b", { readySince: "2024-01-01T23:59:30Z" }),
      stale("3", "c", { ready: false }),
      fresh("4", "c", { createdAt: "2024-01-01T01:00:00Z" }),
      stale("5", "e"),
    ],
  });
  const counts = {
    desiredNumberScheduled: 4,
    currentNumberScheduled: 3,
    numberMisscheduled: 1,
    numberReady: 2,
    numberAvailable: 1,
    numberUnavailable: 3,
    updatedNumberScheduled: 2,
  };
  assert.deepEqual(daemonSetStatus(view, true), { ...counts, observedGeneration: 7 });
  daemonSet.status = { ...counts, observedGeneration: 6, collisionCount: 2 };
  assert.deepEqual(daemonSetStatus(view, false), { ...counts, observedGeneration: 6, collisionCount: 2 });
});

test("nodes after one where no pod should run are counted as well", () => {
  const nodes = { a: never, b: always, c: never, d: always };
  const view = viewOf({ nodes, pods: [fresh("astray", "a"), fresh("1", "b"), fresh("2", "d", { ready: false })] });
  assert.partialDeepStrictEqual(daemonSetStatus(view, true), {
    desiredNumberScheduled: 2,
    currentNumberScheduled: 2,
    numberMisscheduled: 1,
    numberReady: 1,
    numberUnavailable: 1,
  });
});

test("failed pods wait longer each time, up to 15 minutes, and are forgotten after half an hour", async () => {
  const clock = newFakeClock();
  const backoff = newFailedPodBackoff(clock);
  assert.equal(backoff.remainingMs("a"), 0);
  const waits: number[] = [];
  for (let i = 0; i < 12; i++) {
    backoff.next("a");
    waits.push(backoff.remainingMs("a") / 1000);
    await clock.advance(backoff.remainingMs("a"));
    assert.equal(backoff.remainingMs("a"), 0);
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  assert.equal(backoff.remainingMs("b"), 0);
  await clock.advance(1_800_001);
  backoff.next("a");
  assert.equal(backoff.remainingMs("a"), 1000);
});

test("failed pods of nodes that are gone are forgotten, in the order of their last failure", async () => {
  const clock = newFakeClock();
  const backoff = newFailedPodBackoff(clock);
  for (const key of ["a", "b", "c"]) backoff.next(key);
  await clock.advance(1_000_000);
  backoff.next("a");
  await clock.advance(1_000_000);
  backoff.next("d");
  assert.equal(backoff.size, 2, "a and d: b and c have not failed for half an hour");
  assert.equal(backoff.remainingMs("b"), 0);
});

test("looks again when the first of several failed pods may be replaced", () => {
  const failedOn = (node: string) => fresh(node, node, { phase: "Failed" });
  const view = viewOf({ nodes: { a: always, b: always, c: always }, pods: ["a", "b", "c"].map(failedOn), maxUnavailable: 1 });
  const waits: Record<string, number> = { a: 900, b: 700, c: 800 };
  assert.equal(planNodes(view, (node) => waits[node] ?? 0).retryAfterMs, 700);
});
