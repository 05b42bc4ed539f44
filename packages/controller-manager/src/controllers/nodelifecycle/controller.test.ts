import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { conflict, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, Pod, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDaemonSet, aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { completeConfig } from "../../config.ts";
import type { ControllerContext } from "../../controller-context.ts";
import { kubeControllerManager } from "../../flags.ts";
import { isReady, podNames as names, pass, taintsOf } from "../../testing/node-lifecycle.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { nodeEvent } from "./context.ts";
import { newNodeLifecycleController } from "./controller.ts";

const second = 1000;

async function started(
  t: { after(fn: () => void): void },
  config: Parameters<typeof newTestContext>[1] = {},
): Promise<TestContext> {
  const world = newTestContext(t, config);
  world.client.put(nodes, aNode({ name: "good" }), aNode({ name: "bad" }));
  const tolerations = [{ key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 30 }];
  world.client.put(
    pods,
    aPod({ name: "on-good", nodeName: "good" }),
    aPod({ name: "patient", nodeName: "bad", spec: { tolerations } }),
    aPod({ name: "hasty", nodeName: "bad" }),
    aPod({ name: "immortal", nodeName: "bad", spec: { tolerations: [{ operator: "Exists" }] } }),
  );
  await world.run(newNodeLifecycleController(world.ctx));
  return world;
}

test("--node-monitor-period: a silent node is noticed at the first look after its grace", async (t) => {
  const { nodeLifecycle } = completeConfig(parseFlags(kubeControllerManager.flags, ["--node-monitor-period=45s"]).values);
  const world = await started(t, { nodeLifecycle });
  const { client, clock } = world;
  const readiness = () => client.object<Node>(nodes, "bad")?.status?.conditions?.find(({ type }) => type === "Ready")?.status;
  const start = { before: readiness(), actions: client.actions.length };
  await clock.advance(45 * second - 1);
  assert.deepEqual({ before: readiness(), actions: client.actions.length }, start, "it did not look in between");
  await clock.advance(1);
  assert.equal(readiness(), "Unknown");
});

test("a node that falls silent loses its readiness, its pods' and at last its pods", async (t) => {
  const world = await started(t);
  await pass(world, 40, "good");
  assert.deepEqual(taintsOf(world, "bad"), []);
  await pass(world, 15, "good");
  assert.equal(world.client.object<Node>(nodes, "bad")?.status?.conditions?.[0]?.status, "Unknown");
  assert.deepEqual(taintsOf(world, "bad"), [
    "node.kubernetes.io/unreachable:NoExecute",
    "node.kubernetes.io/unreachable:NoSchedule",
  ]);
  assert.deepEqual(taintsOf(world, "good"), []);
  assert.deepEqual([isReady(world, "patient"), isReady(world, "on-good")], [false, true]);
  assert.deepEqual(names(world), ["on-good", "patient", "immortal"]);
  await pass(world, 35, "good");
  assert.deepEqual(names(world), ["on-good", "immortal"]);
  assert.ok(world.events.includes("Normal NodeNotReady Node bad status is now: NodeNotReady"));
  const marked = world.events.indexOf("Normal TaintManagerEviction Marking for deletion Pod default/hasty");
  assert.equal(world.recorded[marked]?.component, "taint-controller");
});

test("a node that comes back in time keeps its patient pods", async (t) => {
  const world = await started(t);
  await pass(world, 60, "good");
  const node = world.client.object<Node>(nodes, "bad") as Node;
  const ready = {
    type: "Ready",
    status: "True" as const,
    lastHeartbeatTime: "2022-01-01T00:01:05Z",
    lastTransitionTime: "2022-01-01T00:01:05Z",
  };
  world.client.put(nodes, { ...node, status: { ...node.status, conditions: [ready] } });
  await pass(world, 60, "good", "bad");
  assert.deepEqual(taintsOf(world, "bad"), []);
  assert.deepEqual(names(world), ["on-good", "patient", "immortal"]);
  assert.ok(world.events.includes("Normal TaintManagerEviction Cancelling deletion of Pod default/patient"));
  await pass(world, 65, "good");
  assert.ok(taintsOf(world, "bad").includes("node.kubernetes.io/unreachable:NoExecute"));
  assert.ok(names(world).includes("patient"), "its patience begins anew");
});

const cancelling = "Normal TaintManagerEviction Cancelling deletion of Pod default/patient";
const marking = "Normal TaintManagerEviction Marking for deletion Pod default/patient";

for (const { name, act, want } of [
  { name: "whose time is over is marked", act: (world) => pass(world, 35, "good"), want: [marking] },
  {
    name: "that another client deletes no longer waits",
    act: async ({ client }) => client.remove(pods, "default/patient"),
    want: [cancelling],
  },
  {
    name: "is marked at once when a taint comes that it does not tolerate",
    async act({ client }) {
      const node = client.object<Node>(nodes, "bad") as Node;
      client.put(nodes, {
        ...node,
        spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), { key: "k", effect: "NoExecute" }] },
      });
    },
    want: [cancelling, marking],
  },
] as { name: string; act: (world: TestContext) => Promise<void>; want: string[] }[]) {
  test(`events of a pod that tolerates a taint for some time: one ${name}`, async (t) => {
    const world = await started(t);
    await pass(world, 60, "good");
    const events = (): string[] => world.events.filter((event) => event === cancelling || event === marking);
    assert.deepEqual(events(), []);
    await act(world);
    await settle(30);
    assert.deepEqual([events(), names(world).includes("patient")], [want, false]);
  });
}

test("when no node reports, no pod is evicted", async (t) => {
  const world = await started(t);
  await pass(world, 300);
  assert.deepEqual(names(world), ["on-good", "patient", "hasty", "immortal"]);
  assert.deepEqual(taintsOf(world, "bad"), ["node.kubernetes.io/unreachable:NoSchedule"]);
});

test("pods of a node that has never reported are not evicted before the startup grace period ends", async (t) => {
  const world = await started(t);
  world.client.put(nodes, { ...aNode({ name: "new", createdAt: "2022-01-01T00:00:00Z" }), status: {} });
  await pass(world, 45, "good");
  assert.deepEqual(taintsOf(world, "new"), []);
  await pass(world, 30, "good");
  assert.ok(taintsOf(world, "new").includes("node.kubernetes.io/unreachable:NoExecute"));
});

test("a node that is excluded from disruption does not make its zone a disrupted one", async (t) => {
  const world = await started(t);
  const excluded = { "node.kubernetes.io/exclude-disruption": "" };
  world.client.put(nodes, aNode({ name: "good", labels: excluded }));
  await pass(world, 90, "good");
  // All nodes that are not excluded are silent, so nothing is evicted.
  assert.deepEqual(taintsOf(world, "bad"), ["node.kubernetes.io/unreachable:NoSchedule"]);
});

test("a node that says it is not ready is tainted so", async (t) => {
  const world = await started(t);
  await pass(world, 10, "good", "bad");
  const node = world.client.object<Node>(nodes, "bad") as Node;
  const notReady = {
    type: "Ready",
    status: "False" as const,
    lastHeartbeatTime: "2022-01-01T00:00:01Z",
    lastTransitionTime: "2022-01-01T00:00:01Z",
  };
  world.client.put(nodes, { ...node, status: { ...node.status, conditions: [notReady] } });
  await pass(world, 15, "good", "bad");
  assert.deepEqual(taintsOf(world, "bad"), ["node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"]);
  assert.equal(isReady(world, "patient"), undefined); // deleted: it does not tolerate this taint
  assert.equal(isReady(world, "immortal"), true); // its kubelet still reports the status
});

test("pods that come to a silent node are not ready", async (t) => {
  const world = await started(t);
  await pass(world, 60, "good");
  world.client.put(pods, aPod({ name: "late", nodeName: "bad", spec: { tolerations: [{ operator: "Exists" }] } }));
  world.client.put(pods, aPod({ name: "unready", nodeName: "bad", ready: false }));
  const { nodeName: _, ...unbound } = aPod({ name: "bound-later", nodeName: "bad" }).spec;
  world.client.put(pods, { ...aPod({ name: "bound-later" }), spec: { ...unbound, tolerations: [{ operator: "Exists" }] } });
  await settle(30);
  assert.equal(isReady(world, "late"), false);
  const late = world.client.object<Pod>(pods, "default/late")?.status?.conditions?.find(({ type }) => type === "Ready");
  assert.equal(late?.lastTransitionTime, "2022-01-01T00:01:00Z");
  assert.equal(isReady(world, "bound-later"), true);
  const bound = world.client.object<Pod>(pods, "default/bound-later") as Pod;
  world.client.put(pods, { ...bound, spec: { ...bound.spec, nodeName: "bad" } });
  await settle(30);
  assert.equal(isReady(world, "bound-later"), false);
  const updated = world.client.writes.filter(({ verb, resource }) => verb === "update" && resource === "pods");
  assert.ok(!updated.some(({ name }) => name === "unready"), "it says so already");
  assert.ok(world.events.includes("Warning NodeNotReady Node is not ready"));
});

test("pods that a former leader did not come to mark are marked by the next one", async (t) => {
  const world = newTestContext(t);
  const ready = { type: "Ready", status: "Unknown" as const, lastTransitionTime: "2021-12-31T23:00:00Z" };
  world.client.put(nodes, { ...aNode({ name: "bad" }), status: { conditions: [ready] } }, aNode({ name: "good" }));
  world.client.put(pods, aPod({ name: "left", nodeName: "bad", spec: { tolerations: [{ operator: "Exists" }] } }));
  world.client.put(pods, aPod({ name: "fine", nodeName: "good" }));
  await world.run(newNodeLifecycleController(world.ctx));
  await pass(world, 10, "good");
  assert.deepEqual([isReady(world, "left"), isReady(world, "fine")], [false, true]);
});

/** The controller on two nodes. @param queue whose keys are counted */
async function countingKeysOf(t: Parameters<typeof started>[0], queue: string, ...present: readonly Pod[]) {
  const world = newTestContext(t);
  world.client.put(nodes, aNode({ name: "good" }), aNode({ name: "bad" }));
  world.client.put(pods, ...present);
  let keys = 0;
  const none = (): void => {};
  const queueMetrics: NonNullable<ControllerContext["queueMetrics"]> = (name) => ({
    ...{ added: none, done: none, retried: none },
    got() {
      if (name === queue) keys++;
    },
  });
  await world.run(newNodeLifecycleController({ ...world.ctx, queueMetrics }));
  return { world, keys: () => keys };
}

test("eviction queues are looked at only while a node is in one", async (t) => {
  const { world, keys } = await countingKeysOf(t, "nodelifecycle_evictions");
  await pass(world, 60, "good", "bad");
  assert.equal(keys(), 0);
  await pass(world, 55, "good");
  assert.ok(taintsOf(world, "bad").includes("node.kubernetes.io/unreachable:NoExecute"));
  const looksAtBad = keys();
  assert.notEqual(looksAtBad, 0);
  await pass(world, 60, "good");
  assert.equal(keys(), looksAtBad);
});

test("the taint manager looks at a pod when it is bound or its tolerations change, not at changes of its status", async (t) => {
  const { nodeName: _, ...unbound } = aPod({ name: "later", nodeName: "good" }).spec;
  const { world, keys } = await countingKeysOf(
    t,
    "noexec_taint_pod",
    aPod({ name: "web", nodeName: "good" }),
    aPod({ name: "gone", nodeName: "good" }),
    { ...aPod({ name: "later" }), spec: unbound },
  );
  const looksAfter = async (change: () => void): Promise<number> => {
    const before = keys();
    change();
    await settle(30);
    return keys() - before;
  };
  const { client } = world;
  assert.equal(keys(), 2, "at the start");
  assert.equal(await looksAfter(() => client.put(pods, aPod({ name: "web", nodeName: "good", ready: false }))), 0);
  assert.equal(await looksAfter(() => client.put(pods, aPod({ name: "later", nodeName: "good" }))), 1);
  const spec = { tolerations: [{ operator: "Exists" }] };
  assert.equal(await looksAfter(() => client.put(pods, aPod({ name: "web", nodeName: "good", ready: false, spec }))), 1);
  assert.equal(await looksAfter(() => client.remove(pods, "default/gone")), 0);
  const node = client.object<Node>(nodes, "good") as Node;
  const changed = (labels: Record<string, string>, taints?: Taint[]): Node => ({
    ...node,
    metadata: { ...node.metadata, labels },
    spec: { ...node.spec, ...(taints && { taints }) },
  });
  const taint = { key: "k", effect: "NoSchedule" };
  const looksAt: number[] = [];
  for (const now of [changed({ a: "b" }), changed({ a: "c" }, [taint]), changed({ a: "d" }, [taint]), changed({ a: "d" })])
    looksAt.push(await looksAfter(() => client.put(nodes, now)));
  assert.deepEqual(looksAt, [0, 2, 0, 2], "a node's pods are looked at when its taints change");
});

test("a pod whose toleration gets longer while it waits stays", async (t) => {
  const world = await started(t);
  await pass(world, 60, "good");
  const patient = world.client.object<Pod>(pods, "default/patient") as Pod;
  const tolerations = patient.spec.tolerations?.map(({ tolerationSeconds: _, ...toleration }) => toleration) ?? [];
  world.client.put(pods, { ...patient, spec: { ...patient.spec, tolerations } });
  await pass(world, 60, "good");
  assert.deepEqual(names(world), ["on-good", "patient", "immortal"]);
});

test("eight lost nodes are written at a time, and the next one when one of them is done", async (t) => {
  const world = newTestContext(t);
  const lost = Array.from({ length: 10 }, (_, at) => `lost-${at}`);
  world.client.put(nodes, aNode({ name: "good" }), ...lost.map((name) => aNode({ name })));
  await world.run(newNodeLifecycleController(world.ctx));
  const answers: (() => void)[] = [];
  world.client.react("update", "nodes", () => new Promise<object>((resolve) => answers.push(() => resolve({}))));
  await pass(world, 45, "good");
  assert.equal(answers.length, 8);
  answers[3]?.();
  await settle(30);
  assert.equal(answers.length, 9);
});

test("without a taint manager pods go after the eviction timeout", async (t) => {
  const { nodeLifecycle } = newTestContext(t).ctx.config;
  const world = await started(t, { nodeLifecycle: { ...nodeLifecycle, taintManager: false, podEvictionTimeoutMs: 60_000 } });
  await pass(world, 55, "good");
  assert.equal(names(world).length, 4);
  await pass(world, 60, "good");
  assert.deepEqual(names(world), ["on-good"]);
  const lost = world.client.writes.filter(({ verb, subresource, sent }) => {
    return verb === "update" && subresource === "status" && (sent as Pod).status?.reason === "NodeLost";
  });
  assert.deepEqual(
    lost.map(({ sent }) => (sent as Pod).status?.message).toSorted(),
    ["hasty", "immortal", "patient"].map((pod) => `Node bad which was running pod ${pod} is unresponsive`),
  );
  assert.ok(world.events.includes("Normal DeletingAllPods Node bad event: Deleting all Pods from Node bad."));
  assert.ok(world.events.includes("Normal NodeControllerEviction Marking for deletion Pod hasty from Node bad"));
  assert.equal(
    world.ctx.registry.counter({ name: "node_collector_evictions_number", help: "", labels: ["zone"] }).labels("").value,
    1,
  );
});

test("without a taint manager a pod that changes meanwhile does not delay the others, and is deleted later", async (t) => {
  const { nodeLifecycle } = newTestContext(t).ctx.config;
  const world = await started(t, { nodeLifecycle: { ...nodeLifecycle, taintManager: false, podEvictionTimeoutMs: 60_000 } });
  let conflicts = 1;
  world.client.react("update", "pods", ({ name, sent }) => {
    if (name === "patient" && (sent as Pod).status?.reason === "NodeLost" && conflicts-- > 0)
      throw conflict(pods, name, "changed");
    return undefined;
  });
  await pass(world, 115, "good");
  assert.deepEqual(names(world), ["on-good"]);
  assert.ok(conflicts <= 0);
});

test("without a taint manager a pod that keeps changing keeps no other pod on its node", async (t) => {
  const { nodeLifecycle } = newTestContext(t).ctx.config;
  const world = await started(t, { nodeLifecycle: { ...nodeLifecycle, taintManager: false, podEvictionTimeoutMs: 60_000 } });
  world.client.react("update", "pods", ({ name = "", sent }) => {
    if (name === "patient" && (sent as Pod).status?.reason === "NodeLost") throw conflict(pods, name, "changed");
    return undefined;
  });
  await pass(world, 115, "good");
  assert.deepEqual(names(world), ["on-good", "patient"]);
});

test("without a taint manager the silence of a time in which no node reported does not count", async (t) => {
  const { nodeLifecycle } = newTestContext(t).ctx.config;
  const world = await started(t, { nodeLifecycle: { ...nodeLifecycle, taintManager: false, podEvictionTimeoutMs: 60_000 } });
  await pass(world, 300);
  const node = world.client.object<Node>(nodes, "good") as Node;
  const conditions = node.status?.conditions?.map((condition) => ({ ...condition, status: "True" as const })) ?? [];
  world.client.put(nodes, { ...node, status: { ...node.status, conditions } });
  await pass(world, 40, "good");
  assert.deepEqual(names(world), ["on-good", "patient", "hasty", "immortal"]);
  await pass(world, 60, "good");
  assert.deepEqual(names(world), ["on-good"]);
});

for (const failing of ["good", "bad"])
  test(`a node whose state cannot be written keeps no other from being noticed: ${failing}`, async (t) => {
    const world = await started(t);
    world.client.react("update", "nodes", ({ name }) => {
      if (name === failing) throw serviceUnavailable("away");
      return undefined;
    });
    await pass(world, 60);
    const other = world.client.object<Node>(nodes, failing === "good" ? "bad" : "good");
    assert.equal(other?.status?.conditions?.find(({ type }) => type === "Ready")?.status, "Unknown");
  });

test("zones are counted by the health of their nodes until they have none", async (t) => {
  const world = await started(t);
  const value = (name: string) => world.ctx.registry.gauge({ name, help: "", labels: ["zone"] }).labels("").value;
  const all = () => ["zone_size", "zone_health", "unhealthy_nodes_in_zone"].map((name) => value(`node_collector_${name}`));
  await pass(world, 60, "good");
  assert.deepEqual(all(), [2, 50, 1]);
  const evictions = world.ctx.registry.counter({ name: "node_collector_evictions_number", help: "", labels: ["zone"] });
  assert.equal(evictions.labels("").value, 1);
  for (const name of ["good", "bad"]) world.client.remove(nodes, name);
  await pass(world, 10);
  assert.deepEqual(all(), [0, 100, 0]);
});

test("without a taint manager pods of daemon sets and those that are going stay, and all others go", async (t) => {
  const { nodeLifecycle } = newTestContext(t).ctx.config;
  const world = newTestContext(t, { nodeLifecycle: { ...nodeLifecycle, taintManager: false, podEvictionTimeoutMs: 60_000 } });
  const daemon: OwnerReference = { apiVersion: "apps/v1", kind: "DaemonSet", name: "agent", uid: "agent-uid" };
  const listed = aPod({ name: "d", nodeName: "bad" });
  world.client.put(nodes, aNode({ name: "good" }), aNode({ name: "bad" }));
  world.client.put(
    pods,
    aPod({ name: "a", nodeName: "bad", owner: aDaemonSet() }),
    aPod({ name: "b", nodeName: "bad", deletedAt: "2021-01-01T00:00:00Z", finalizers: ["example.com/hold"] }),
    aPod({ name: "c", nodeName: "bad" }),
    { ...listed, metadata: { ...listed.metadata, ownerReferences: [{ ...daemon, controller: false }] } },
  );
  await world.run(newNodeLifecycleController(world.ctx));
  await pass(world, 115, "good");
  assert.deepEqual(names(world), ["a", "b"]);
  await pass(world, 30, "good");
  const marked = world.client.writes.filter(({ verb, resource, name, sent }) => {
    return verb === "update" && resource === "pods" && name === "a" && (sent as Pod).status?.reason === "NodeLost";
  });
  assert.equal(marked.length, 1, "its reason is written once");
  const deleted = world.client.writes.filter(({ verb }) => verb === "delete").map(({ name }) => name);
  assert.deepEqual(deleted.toSorted(), ["c", "d"]);
});

test("events refer to a node as an object of v1", (t) => {
  const { ctx } = newTestContext(t);
  const reported: unknown[] = [];
  const recorder = { ...ctx.recorder, event: (object: unknown) => void reported.push(object) };
  nodeEvent({ ...ctx, recorder }, { metadata: { name: "n", uid: "u" } }, "NodeNotReady", "status is now: NodeNotReady");
  assert.deepEqual(reported, [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }]);
});

test("reports nodes that are added and removed, and keeps the beta labels", async (t) => {
  const world = await started(t);
  world.client.put(nodes, aNode({ name: "new", labels: { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" } }));
  await pass(world, 10, "good", "bad");
  world.client.remove(nodes, "new");
  const labels = world.client.actions.filter(({ verb, name }) => verb === "patch" && name === "new");
  assert.partialDeepStrictEqual(labels[0]?.sent, {
    metadata: { labels: { "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64" } },
  });
  await pass(world, 10, "good", "bad");
  await settle();
  assert.ok(world.events.includes("Normal RegisteredNode Node new event: Registered Node new in Controller"));
  assert.ok(world.events.includes("Normal RemovingNode Node new event: Removing Node new from Controller"));
});

test("a taint that gets another value evicts pods that tolerate the former one alone", async (t) => {
  const world = newTestContext(t);
  const tainted = (value: string): Node => aNode({ name: "a", taints: [{ key: "k", value, effect: "NoExecute" }] });
  const tolerations = [{ key: "k", operator: "Equal", value: "x", effect: "NoExecute" }];
  world.client.put(nodes, tainted("x"));
  world.client.put(pods, aPod({ name: "web", nodeName: "a", spec: { tolerations } }));
  await world.run(newNodeLifecycleController(world.ctx));
  assert.deepEqual(names(world), ["web"]);
  world.client.put(nodes, tainted("y"));
  await settle(60);
  assert.deepEqual(names(world), []);
});

test("an eviction that the server refuses is tried again", async (t) => {
  const world = await started(t);
  let refusals = 2;
  world.client.react("delete", "pods", ({ name }) => {
    if (name === "hasty" && refusals-- > 0) throw serviceUnavailable("not now");
    return undefined;
  });
  await pass(world, 60, "good");
  assert.ok(refusals <= 0);
  assert.ok(!names(world).includes("hasty"));
  assert.ok(names(world).includes("on-good"));
});

test("an eviction whose first request got no response is completed, with one event", async (t) => {
  const world = await started(t);
  const mark = (pod: Pod, grace: number, finalizers: string[] = []): void => {
    const marks = { deletionTimestamp: "2022-01-01T00:00:50Z", deletionGracePeriodSeconds: grace, finalizers };
    world.client.put(pods, { ...pod, metadata: { ...pod.metadata, ...marks } });
  };
  // Not ready, so that nothing else writes it.
  mark(aPod({ name: "ending", nodeName: "bad", ready: false }), 30);
  mark(aPod({ name: "held", nodeName: "bad" }), 0, ["example.com/hold"]);
  mark(aPod({ name: "elsewhere", nodeName: "good" }), 0);
  let failures = 1;
  world.client.react("delete", "pods", ({ name }) => {
    if (name !== "hasty" || failures-- <= 0) return undefined;
    mark(world.client.object<Pod>(pods, "default/hasty") as Pod, 0);
    throw serviceUnavailable("etcd did not answer");
  });
  await pass(world, 60, "good");
  assert.deepEqual(names(world), ["on-good", "patient", "immortal", "ending", "held", "elsewhere"]);
  const deleted = world.client.writes.filter(({ verb }) => verb === "delete").map(({ name }) => name);
  assert.deepEqual(deleted, ["hasty", "hasty"]);
  assert.equal(world.events.filter((event) => event.endsWith("Marking for deletion Pod default/hasty")).length, 1);
});

test("an eviction does not delete another pod that has the name meanwhile", async (t) => {
  const world = await started(t);
  let isReplaced = false;
  world.client.react("delete", "pods", ({ name }) => {
    if (name !== "hasty" || isReplaced) return undefined;
    isReplaced = true;
    world.client.remove(pods, "default/hasty");
    world.client.put(pods, aPod({ name: "hasty", uid: "second", nodeName: "good" }));
    return undefined;
  });
  await pass(world, 60, "good");
  assert.equal(isReplaced, true);
  assert.equal(world.client.object<Pod>(pods, "default/hasty")?.metadata.uid, "second");
});

test("pods that could not be marked not ready are marked at a later look, those that could only once", async (t) => {
  const world = await started(t);
  let refusals = 2;
  world.client.react("update", "pods", ({ name, subresource }) => {
    if (subresource === "status" && name === "immortal" && refusals-- > 0) throw serviceUnavailable("not now");
    return undefined;
  });
  await pass(world, 60, "good");
  assert.equal(isReady(world, "immortal"), false);
  assert.equal(isReady(world, "on-good"), true);
  assert.equal(
    world.client.writes.filter(({ verb, resource, name }) => verb === "update" && resource === "pods" && name === "patient")
      .length,
    1,
  );
  const pod = world.client.object<Pod>(pods, "default/immortal") as Pod;
  world.client.put(pods, { ...pod, status: { ...pod.status, conditions: [{ type: "Ready", status: "True" }] } });
  await pass(world, 15, "good");
  assert.equal(isReady(world, "immortal"), true, "it was marked, and is not again");
});

test("a deleted node that returns under its name is registered again with a new grace period", async (t) => {
  const world = await started(t);
  await pass(world, 10, "good", "bad");
  world.client.remove(nodes, "bad");
  await pass(world, 10, "good");
  world.client.put(nodes, { ...aNode({ name: "bad", uid: "second" }), status: {} });
  await pass(world, 10, "good");
  const said = (what: string): number => world.events.filter((event) => event.includes(`${what} Node bad `)).length;
  assert.deepEqual([said("RegisteredNode"), said("RemovingNode")], [2, 1]);
  await pass(world, 30, "good");
  assert.deepEqual(
    taintsOf(world, "bad").filter((taint) => taint.endsWith("NoExecute")),
    [],
    "its grace at the start is not over",
  );
});

test("the former labels of a node follow the present ones, also without a taint to set", async (t) => {
  const world = newTestContext(t);
  const labels = { "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "amd64" };
  world.client.put(nodes, aNode({ name: "n", labels }));
  await world.run(newNodeLifecycleController(world.ctx));
  assert.partialDeepStrictEqual(world.client.object<Node>(nodes, "n")?.metadata.labels, {
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "arm64",
  });
  assert.deepEqual(taintsOf(world, "n"), []);
});

for (const [name, failure, want] of [
  ["changed meanwhile is left to its change", conflict(nodes, "n", "changed"), 1],
  ["gone is left alone", notFound(nodes, "n"), 1],
  ["that cannot be written is tried again", serviceUnavailable("away"), 2],
] as const)
  test(`the taints of conditions of a node ${name}`, async (t) => {
    const world = newTestContext(t);
    const node = aNode({ name: "n" });
    const full = { type: "MemoryPressure", status: "True" as const };
    world.client.put(nodes, { ...node, status: { ...node.status, conditions: [...(node.status?.conditions ?? []), full] } });
    let tries = 0;
    world.client.react("patch", "nodes", () => {
      if (++tries === 1) throw failure;
    });
    await world.run(newNodeLifecycleController(world.ctx));
    await world.clock.advance(1_000);
    assert.equal(tries, want);
  });

test("a node whose taint met a conflict is not counted as evicted until it is tainted", async (t) => {
  const world = await started(t);
  const evictions = world.ctx.registry.counter({ name: "node_collector_evictions_number", help: "", labels: ["zone"] });
  let conflicts = 1;
  world.client.react("patch", "nodes", ({ name, sent }) => {
    if (name === "bad" && JSON.stringify(sent).includes("NoExecute") && conflicts-- > 0) throw conflict(nodes, name, "changed");
  });
  await pass(world, 100, "good");
  assert.ok(conflicts < 0, "was tried again");
  assert.ok(taintsOf(world, "bad").includes("node.kubernetes.io/unreachable:NoExecute"));
  assert.equal(evictions.labels("").value, 1);
});

test("without a taint manager nodes that wait for their eviction when all fall silent wait no longer", async (t) => {
  const { nodeLifecycle } = newTestContext(t).ctx.config;
  const config = { ...nodeLifecycle, taintManager: false, podEvictionTimeoutMs: 60_000, evictionRate: 0.01 };
  const world = newTestContext(t, { nodeLifecycle: config });
  const good = ["good", "good-2"];
  const bad = ["bad", "bad-2"];
  world.client.put(nodes, ...[...good, ...bad].map((name) => aNode({ name })));
  world.client.put(pods, ...bad.map((nodeName) => aPod({ name: `on-${nodeName}`, nodeName })));
  await world.run(newNodeLifecycleController(world.ctx));
  await pass(world, 120, ...good);
  assert.equal(names(world).length, 1, "one node in 100 s");
  await pass(world, 120);
  for (const name of good) {
    const node = world.client.object<Node>(nodes, name) as Node;
    const conditions = node.status?.conditions?.map((condition) => ({ ...condition, status: "True" as const })) ?? [];
    world.client.put(nodes, { ...node, status: { ...node.status, conditions } });
  }
  await pass(world, 40, ...good);
  assert.equal(names(world).length, 1);
  await pass(world, 300, ...good);
  assert.equal(names(world).length, 0);
});
