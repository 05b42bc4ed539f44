import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { tolerates } from "@coxswain/apimachinery/scheduling/tolerations";
import { aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { defaultConfig } from "../../testing/test-context.ts";
import { newEvictionQueue } from "./eviction-queue.ts";
import { checkHealth, type NodeHealth } from "./health.ts";
import { withConditionTaints, withEvictionTaint } from "./taints.ts";
import { toleratedForMs } from "./tolerations.ts";
import { evictionRate, zoneOf, zoneState } from "./zone-eviction-rate.ts";

const start = Date.parse("2024-01-01T00:00:00Z");
/** @param aheadMs time by which the wall clock was set forward since the start */
const judge = (node: Node, known: NodeHealth | undefined, seconds: number, lease?: Lease, aheadMs = 0) => {
  const monotonic = seconds * 1000;
  return checkHealth({
    node,
    lease,
    known,
    now: start + monotonic + aheadMs,
    monotonic,
    graceMs: 40_000,
    startupGraceMs: 60_000,
  });
};
const leaseAt = (second: number): Lease => ({
  metadata: {},
  spec: { renewTime: `2024-01-01T00:00:${String(second).padStart(2, "0")}.000000Z` },
});

test("a silent node becomes Unknown after the grace period, in all that it reported", () => {
  const node = aNode();
  const first = judge(node, undefined, 0);
  assert.equal(first.conditions, undefined);
  assert.equal(judge(node, first.health, 40).conditions, undefined);
  const late = judge(node, first.health, 41);
  assert.deepEqual([late.observed, late.current], ["True", "Unknown"]);
  assert.deepEqual([first.health.readyChangedAt, late.health.readyChangedAt], [0, 41_000]);
  hasFields(late.conditions, [
    {
      type: "Ready",
      status: "Unknown",
      reason: "NodeStatusUnknown",
      message: "Kubelet stopped posting node status.",
      lastTransitionTime: "2024-01-01T00:00:41Z",
    },
    { type: "MemoryPressure", status: "Unknown", reason: "NodeStatusNeverUpdated" },
    { type: "DiskPressure", status: "Unknown" },
    { type: "PIDPressure", status: "Unknown", lastHeartbeatTime: node.metadata.creationTimestamp },
  ]);
  const written = aNode();
  written.status = { ...written.status, conditions: late.conditions ?? [] };
  const again = judge(written, late.health, 50);
  assert.deepEqual([again.observed, again.conditions], ["Unknown", undefined]);
});

test("a node that is Unknown already has not changed again when its other conditions become so", () => {
  const node = aNode();
  node.status = { ...node.status, conditions: [{ type: "Ready", status: "Unknown" }] };
  const first = judge(node, undefined, 0);
  const late = judge(node, first.health, 41);
  assert.deepEqual(
    late.conditions?.map(({ type }) => type),
    ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"],
  );
  assert.equal(late.health.readyChangedAt, first.health.readyChangedAt);
});

for (const { what, node, afterSeconds } of [
  { what: "that fell silent", node: aNode(), afterSeconds: 41 },
  { what: "that never said anything", node: { ...aNode(), status: {} }, afterSeconds: 61 },
]) {
  test(`the conditions that are written for a node ${what} are no sign of life of it`, () => {
    const first = judge(node, undefined, 0);
    const late = judge(node, first.health, afterSeconds);
    assert.ok(late.conditions);
    const written = { ...node, status: { ...node.status, conditions: late.conditions } };
    const next = judge(written, late.health, afterSeconds + 5);
    assert.equal(next.health.seenAt, first.health.seenAt);
    assert.equal(next.health.readyChangedAt, late.health.readyChangedAt);
  });
}

test("a renewed lease is a sign of life, whatever its clock says", () => {
  const node = aNode();
  const first = judge(node, undefined, 0, leaseAt(1));
  const second = judge(node, first.health, 35, leaseAt(2));
  assert.equal(judge(node, second.health, 70, leaseAt(2)).conditions, undefined);
  assert.notEqual(judge(node, second.health, 76, leaseAt(2)).conditions, undefined);
});

test("a lease that has gone back, as after a restore, begins the grace anew; its next renewal counts, though it is older", () => {
  const node = aNode();
  const first = judge(node, undefined, 0, leaseAt(50));
  const back = judge(node, first.health, 39, leaseAt(10));
  assert.deepEqual([back.health.seenAt, back.health.readyChangedAt], [39_000, 39_000]);
  assert.equal(judge(node, back.health, 79, leaseAt(10)).conditions, undefined);
  assert.notEqual(judge(node, back.health, 80, leaseAt(10)).conditions, undefined);
  const renewed = judge(node, back.health, 60, leaseAt(11));
  assert.equal(judge(node, renewed.health, 100, leaseAt(11)).conditions, undefined);
});

test("a change of the wall clock makes no node unreachable, and keeps no node alive", () => {
  const node = aNode();
  const { health } = judge(node, undefined, 0);
  for (const aheadMs of [3_600_000, -3_600_000]) {
    assert.equal(judge(node, health, 40, undefined, aheadMs).conditions, undefined);
    assert.notEqual(judge(node, health, 41, undefined, aheadMs).conditions, undefined);
  }
});

test("a heartbeat in the status is a sign of life", () => {
  const node = aNode();
  const first = judge(node, undefined, 0);
  const beating = aNode();
  Object.assign(beating.status?.conditions?.[0] ?? {}, { lastHeartbeatTime: "2024-01-01T00:00:30Z" });
  const second = judge(beating, first.health, 30);
  assert.equal(judge(beating, second.health, 65).conditions, undefined);
});

test("a node that never said anything has longer, from its birth", () => {
  const node = aNode();
  node.status = {};
  assert.equal(judge(node, undefined, 60).conditions, undefined);
  const late = judge(node, undefined, 61);
  assert.partialDeepStrictEqual(late.conditions?.[0], {
    type: "Ready",
    status: "Unknown",
    reason: "NodeStatusNeverUpdated",
    message: "Kubelet never posted node status.",
  });
});

const shown = (taints: ReturnType<typeof withConditionTaints>) =>
  taints?.map(({ key, effect }) => `${key.replace("node.kubernetes.io/", "")}:${effect}`);

for (const { name, conditions, unschedulable, taints, want } of [
  { name: "ready", conditions: { Ready: "True" }, want: undefined },
  { name: "not ready", conditions: { Ready: "False" }, want: ["not-ready:NoSchedule"] },
  { name: "unknown", conditions: { Ready: "Unknown" }, want: ["unreachable:NoSchedule"] },
  {
    name: "short of memory and cordoned",
    conditions: { Ready: "True", MemoryPressure: "True" },
    unschedulable: true,
    want: ["memory-pressure:NoSchedule", "unschedulable:NoSchedule"],
  },
  {
    name: "ready again",
    conditions: { Ready: "True" },
    taints: [
      { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" },
      { key: "mine", effect: "NoSchedule" },
    ],
    want: ["mine:NoSchedule"],
  },
  {
    name: "schedulable again",
    conditions: { Ready: "True" },
    taints: [
      { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" },
      { key: "node.kubernetes.io/unschedulable", effect: "NoExecute" },
    ],
    want: ["unschedulable:NoExecute"],
  },
  {
    name: "without a network, a disk and process IDs",
    conditions: { Ready: "True", NetworkUnavailable: "True", DiskPressure: "True", PIDPressure: "True" },
    want: ["disk-pressure:NoSchedule", "network-unavailable:NoSchedule", "pid-pressure:NoSchedule"],
  },
  {
    name: "not ready as before",
    conditions: { Ready: "False" },
    taints: [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }],
    want: undefined,
  },
] as {
  name: string;
  conditions: Record<string, string>;
  unschedulable?: boolean;
  taints?: { key: string; effect: string }[];
  want?: string[];
}[]) {
  test(`taints of a node that is ${name}`, () => {
    const node = aNode(taints === undefined ? {} : { taints });
    node.status = { conditions: Object.entries(conditions).map(([type, status]) => ({ type, status: status as "True" })) };
    if (unschedulable) node.spec = { ...node.spec, unschedulable };
    assert.deepEqual(shown(withConditionTaints(node, start)), want);
  });
}

test("one eviction taint at a time, and none when it is reachable again", () => {
  const tainted = aNode({ taints: [{ key: "node.kubernetes.io/not-ready", effect: "NoExecute" }] });
  assert.deepEqual(shown(withEvictionTaint(tainted, "node.kubernetes.io/unreachable", start)), ["unreachable:NoExecute"]);
  assert.deepEqual(shown(withEvictionTaint(tainted, undefined, start)), []);
  assert.equal(withEvictionTaint(tainted, "node.kubernetes.io/not-ready", start), undefined);
  assert.equal(withEvictionTaint(aNode(), "node.kubernetes.io/unreachable", start)?.[0]?.timeAdded, "2024-01-01T00:00:00Z");
});

const taint = { key: "k", value: "v", effect: "NoExecute" };
for (const { toleration, want } of [
  { toleration: { key: "k", operator: "Equal", value: "v", effect: "NoExecute" }, want: true },
  { toleration: { key: "k", value: "v" }, want: true },
  { toleration: { key: "k", operator: "Exists" }, want: true },
  { toleration: { operator: "Exists" }, want: true },
  { toleration: { key: "k", value: "other" }, want: false },
  { toleration: { key: "k", operator: "Exists", effect: "NoSchedule" }, want: false },
  { toleration: { key: "other", operator: "Exists" }, want: false },
]) {
  test(`${JSON.stringify(toleration)} ${want ? "tolerates" : "does not tolerate"} k=v:NoExecute`, () =>
    assert.equal(tolerates(toleration, taint), want));
}

for (const { name, tolerations, taints, want } of [
  { name: "without taints stays", tolerations: [], taints: [], want: Number.POSITIVE_INFINITY },
  { name: "that does not tolerate is deleted", tolerations: [], taints: [taint], want: 0 },
  {
    name: "that tolerates for ever stays",
    tolerations: [{ operator: "Exists" }],
    taints: [taint],
    want: Number.POSITIVE_INFINITY,
  },
  {
    name: "that tolerates for a while stays so long",
    tolerations: [{ operator: "Exists", tolerationSeconds: 300 }],
    taints: [taint],
    want: 300_000,
  },
  {
    name: "is deleted after the shortest of its tolerations",
    tolerations: [
      { key: "k", operator: "Exists", tolerationSeconds: 9 },
      { key: "l", operator: "Exists", tolerationSeconds: 5 },
    ],
    taints: [taint, { key: "l", effect: "NoExecute" }],
    want: 5000,
  },
  {
    name: "is deleted after the shortest of its tolerations, also when that is the first",
    tolerations: [
      { key: "k", operator: "Exists", tolerationSeconds: 5 },
      { key: "l", operator: "Exists", tolerationSeconds: 9 },
    ],
    taints: [taint, { key: "l", effect: "NoExecute" }],
    want: 5000,
  },
  {
    name: "that tolerates for a negative time is deleted",
    tolerations: [{ operator: "Exists", tolerationSeconds: -1 }],
    taints: [taint],
    want: 0,
  },
  {
    name: "does not mind NoSchedule",
    tolerations: [],
    taints: [{ key: "k", effect: "NoSchedule" }],
    want: Number.POSITIVE_INFINITY,
  },
]) {
  test(`a pod ${name}`, () => assert.equal(toleratedForMs(aPod({ spec: { tolerations } }), taints), want));
}

for (const { ready, notReady, want } of [
  { ready: 3, notReady: 0, want: "Normal" },
  { ready: 1, notReady: 2, want: "Normal" },
  { ready: 2, notReady: 3, want: "PartialDisruption" },
  { ready: 5, notReady: 5, want: "Normal" },
  { ready: 9, notReady: 11, want: "PartialDisruption" },
  { ready: 0, notReady: 1, want: "FullDisruption" },
  { ready: 0, notReady: 0, want: "Normal" },
]) {
  test(`a zone with ${ready} ready and ${notReady} not ready is ${want}`, () =>
    assert.equal(zoneState(ready, notReady, 0.55), want));
}

test("the rate falls in a disrupted zone, and stops where everything is silent", () => {
  const config = defaultConfig.nodeLifecycle;
  assert.equal(evictionRate("Normal", 100, false, config), 0.1);
  assert.equal(evictionRate("PartialDisruption", 51, false, config), 0.01);
  assert.equal(evictionRate("PartialDisruption", 50, false, config), 0);
  assert.equal(evictionRate("FullDisruption", 10, false, config), 0.1);
  assert.equal(evictionRate("FullDisruption", 10, true, config), 0);
});

test("a node's zone is made of its labels", () => {
  assert.equal(zoneOf(aNode()), "");
  assert.equal(zoneOf(aNode({ labels: { "topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r" } })), "r:\0:z");
  assert.equal(zoneOf(aNode({ labels: { "topology.kubernetes.io/zone": "z" } })), ":\0:z");
  assert.equal(zoneOf(aNode({ labels: { "topology.kubernetes.io/region": "r" } })), "r:\0:");
  const former = { "failure-domain.beta.kubernetes.io/zone": "z", "failure-domain.beta.kubernetes.io/region": "r" };
  assert.equal(zoneOf(aNode({ labels: former })), "r:\0:z");
  const both = { ...former, "topology.kubernetes.io/zone": "z2", "topology.kubernetes.io/region": "r2" };
  assert.equal(zoneOf(aNode({ labels: both })), "r2:\0:z2");
});

test("evictions take turns", () => {
  const queue = newEvictionQueue(0.1);
  for (const node of ["a", "b", "c"]) queue.add(node);
  queue.remove("b");
  assert.deepEqual([queue.take(0), queue.take(5000), queue.take(10_000), queue.take(60_000)], ["a", undefined, "c", undefined]);
  queue.add("d");
  queue.setRate(0);
  assert.equal(queue.take(90_000), undefined);
});
