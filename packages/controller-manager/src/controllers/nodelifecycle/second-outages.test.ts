import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodeLifecycleConfig } from "../../config/controller-manager-config.ts";
import { isReady, pass, podNames, reports, taintsOf } from "../../testing/node-lifecycle.ts";
import { defaultConfig, newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newNodeLifecycleController } from "./controller.ts";

/** A running controller. @param where zones by name of a node; without one a node has no zone */
async function running(
  t: Parameters<typeof newTestContext>[0],
  where: Readonly<Record<string, string | undefined>>,
  config: Partial<NodeLifecycleConfig> = {},
): Promise<TestContext> {
  const world = newTestContext(t, { nodeLifecycle: { ...defaultConfig.nodeLifecycle, ...config } });
  for (const [name, zone] of Object.entries(where)) {
    const labels: Record<string, string> = zone === undefined ? {} : { "topology.kubernetes.io/zone": zone };
    world.client.put(nodes, aNode({ name, labels }));
  }
  await world.run(newNodeLifecycleController(world.ctx));
  return world;
}

const fourGood = { "good-1": undefined, "good-2": undefined, "good-3": undefined, "good-4": undefined };
const good = Object.keys(fourGood);
const isEvicted = (world: TestContext, name: string): boolean =>
  taintsOf(world, name).includes("node.kubernetes.io/unreachable:NoExecute");
const evictionsOf = ({ ctx }: TestContext): number =>
  ctx.registry.counter({ name: "node_collector_evictions_number", help: "", labels: ["zone"] }).labels("").value;
const withoutTaintManager = { taintManager: false, podEvictionTimeoutMs: 60_000 };

for (const { what, happen } of [
  { what: "recovers", happen: (world: TestContext) => reports(world, "b", "True") },
  { what: "is removed", happen: ({ client }: TestContext) => client.remove(nodes, "b") },
])
  test(`a node that ${what} while it waits for its eviction takes no other node's turn`, async (t) => {
    const world = await running(t, { ...fourGood, a: undefined, b: undefined, c: undefined }, { evictionRate: 0.01 });
    await pass(world, 60, ...good);
    assert.deepEqual(
      ["a", "b", "c"].map((name) => isEvicted(world, name)),
      [true, false, false],
    );
    happen(world);
    await pass(world, 95, ...good, "b");
    assert.deepEqual(
      ["a", "b", "c"].map((name) => isEvicted(world, name)),
      [true, false, true],
    );
  });

test("a node that reports between the last look at it and its turn is not evicted", async (t) => {
  const world = await running(t, { ...fourGood, a: undefined, b: undefined }, { evictionRate: 1 / 98 });
  await pass(world, 145, ...good);
  assert.deepEqual(
    ["a", "b"].map((name) => isEvicted(world, name)),
    [true, false],
  );
  reports(world, "b", "True");
  await world.clock.advance(4000); // its turn is 148 s after the start, the next look 150 s
  assert.deepEqual(
    taintsOf(world, "b").filter((taint) => taint.endsWith("NoExecute")),
    [],
  );
});

test("a node that reports before its turn does not delay the turn of another zone", async (t) => {
  const where = { a: "x", b: "x", c: "y", d: "y", "good-x1": "x", "good-x2": "x", "good-y1": "y", "good-y2": "y" };
  const world = await running(t, where, { evictionRate: 1 / 98 });
  await pass(world, 145, ...Object.keys(where).filter((name) => name.startsWith("good")));
  reports(world, "b", "True");
  await world.clock.advance(4000); // the turns of both are 148 s after the start
  assert.deepEqual(
    ["a", "b", "c", "d"].map((name) => isEvicted(world, name)),
    [true, false, true, true],
  );
});

test("nodes that wait are evicted as soon as the rate allows, not only at the next look", async (t) => {
  const world = await running(t, { ...fourGood, a: undefined, b: undefined, c: undefined }, { evictionRate: 1 });
  await pass(world, 50, ...good);
  await world.clock.advance(2500);
  assert.deepEqual(
    ["a", "b", "c"].map((name) => isEvicted(world, name)),
    [true, true, true],
  );
});

for (const { what, comeBack } of [
  { what: "recovered", comeBack: (world: TestContext) => reports(world, "bad", "True") },
  {
    what: "was replaced",
    async comeBack(world: TestContext) {
      world.client.remove(nodes, "bad");
      await pass(world, 5, "good");
      world.client.put(nodes, { ...aNode({ name: "bad", uid: "second" }), status: {} });
    },
  },
])
  test(`without a taint manager later pods of an evicted node go at once, and a node that ${what} waits for its turn anew`, async (t) => {
    const world = await running(t, { good: undefined, bad: undefined }, withoutTaintManager);
    const put = (name: string): void => world.client.put(pods, aPod({ name, nodeName: "bad" }));
    put("first");
    await pass(world, 70, "good");
    assert.deepEqual([podNames(world), evictionsOf(world)], [[], 1]);
    put("later");
    await pass(world, 5, "good");
    await settle(30);
    assert.deepEqual([podNames(world), evictionsOf(world)], [[], 1]);
    await comeBack(world);
    await pass(world, 10, "good", "bad");
    put("again");
    await pass(world, 80, "good");
    assert.deepEqual([podNames(world), evictionsOf(world)], [[], 2]);
  });

test("without a taint manager pods of a node that reports that it is not ready go when it has for longer than the timeout", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined }, withoutTaintManager);
  world.client.put(pods, aPod({ name: "p", nodeName: "bad" }));
  await pass(world, 10, "good", "bad");
  reports(world, "bad", "False"); // seen 15 s after the start
  await pass(world, 65, "good", "bad");
  assert.deepEqual(podNames(world), ["p"]);
  await pass(world, 5, "good", "bad");
  await settle(30);
  assert.deepEqual(podNames(world), []);
});

test("without a taint manager the time in which all nodes reported that they were not ready does not count", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined }, withoutTaintManager);
  world.client.put(pods, aPod({ name: "p", nodeName: "bad" }));
  for (const name of ["good", "bad"]) reports(world, name, "False");
  await pass(world, 300, "good", "bad");
  reports(world, "good", "True");
  await pass(world, 50, "good", "bad");
  assert.deepEqual(podNames(world), ["p"]);
  await pass(world, 30, "good", "bad");
  assert.deepEqual(podNames(world), []);
});

test("without a taint manager pods are deleted although their status cannot be written", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined }, withoutTaintManager);
  world.client.put(pods, aPod({ name: "p", nodeName: "bad" }), aPod({ name: "q", nodeName: "bad" }));
  world.client.react("update", "pods", () => {
    throw serviceUnavailable("not now");
  });
  await pass(world, 70, "good");
  assert.deepEqual(podNames(world), []);
});

test("a node that was not ready and then falls silent has the other taints at once, whatever the rate, and back when it reports", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined }, { evictionRate: 0.0001 });
  await pass(world, 10, "good", "bad");
  reports(world, "bad", "False");
  await pass(world, 15, "good", "bad");
  assert.deepEqual(taintsOf(world, "bad"), ["node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"]);
  await pass(world, 55, "good");
  await settle(30);
  assert.deepEqual(taintsOf(world, "bad"), [
    "node.kubernetes.io/unreachable:NoExecute",
    "node.kubernetes.io/unreachable:NoSchedule",
  ]);
  reports(world, "bad", "False");
  await pass(world, 15, "good", "bad");
  await settle(30);
  assert.deepEqual(taintsOf(world, "bad"), ["node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"]);
});

test("each zone has its own turns, and a zone whose nodes are all silent is evicted from while another zone has ready ones", async (t) => {
  const world = await running(t, { "bad-a": "a", "bad-b": "b", "good-b": "b" }, { evictionRate: 0.01 });
  await pass(world, 60, "good-b");
  assert.deepEqual(
    ["bad-a", "bad-b"].map((name) => isEvicted(world, name)),
    [true, true],
  );
});

test("a zone whose last node was removed does not count when all other nodes are silent", async (t) => {
  const world = await running(t, { "bad-a": "a", "good-b": "b" });
  await pass(world, 10, "bad-a", "good-b");
  world.client.remove(nodes, "good-b");
  await pass(world, 10, "bad-a");
  await pass(world, 100);
  assert.deepEqual(taintsOf(world, "bad-a"), ["node.kubernetes.io/unreachable:NoSchedule"]);
});

test("when the last ready node falls silent, evictions that have begun are undone", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined });
  await pass(world, 60, "good");
  assert.equal(isEvicted(world, "bad"), true);
  await pass(world, 60);
  assert.deepEqual(taintsOf(world, "bad"), ["node.kubernetes.io/unreachable:NoSchedule"]);
});

test("the size of a disrupted zone is the number of all of its nodes", async (t) => {
  const bad = ["a", "b", "c"];
  const where = { good: undefined, "good-2": undefined, a: undefined, b: undefined, c: undefined };
  const world = await running(t, where, { largeClusterSizeThreshold: 4, secondaryEvictionRate: 0.01 });
  const evicted = (): number => bad.filter((name) => isEvicted(world, name)).length;
  await pass(world, 145, "good", "good-2");
  assert.equal(evicted(), 1);
  await pass(world, 10, "good", "good-2");
  assert.equal(evicted(), 2);
});

test("pods that could not be marked not ready are left alone when their node is back, also when it is not ready later", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined });
  world.client.put(pods, aPod({ name: "p", nodeName: "bad", spec: { tolerations: [{ operator: "Exists" }] } }));
  let isRefusing = true;
  world.client.react("update", "pods", () => {
    if (isRefusing) throw serviceUnavailable("not now");
    return undefined;
  });
  await pass(world, 60, "good");
  reports(world, "bad", "True");
  isRefusing = false;
  await pass(world, 15, "good", "bad");
  assert.equal(isReady(world, "p"), true);
  reports(world, "bad", "False");
  await pass(world, 15, "good", "bad");
  assert.equal(isReady(world, "p"), true, "its kubelet reports it");
});

test("a node of the name of one that was removed while its pods could not be marked begins anew", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined });
  world.client.put(pods, aPod({ name: "p", nodeName: "bad", spec: { tolerations: [{ operator: "Exists" }] } }));
  let isRefusing = true;
  world.client.react("update", "pods", () => {
    if (isRefusing) throw serviceUnavailable("not now");
    return undefined;
  });
  await pass(world, 60, "good");
  world.client.remove(nodes, "bad");
  await pass(world, 10, "good");
  isRefusing = false;
  world.client.put(nodes, aNode({ name: "bad", ready: false }));
  await pass(world, 15, "good", "bad");
  assert.equal(isReady(world, "p"), true, "its kubelet reports it");
});

test("a taint that another writer adds at the same time is kept", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined });
  let isFirst = true;
  world.client.react("patch", "nodes", ({ name, sent }) => {
    if (name !== "bad" || !isFirst || !JSON.stringify(sent).includes("NoExecute")) return undefined;
    isFirst = false;
    const node = world.client.object<Node>(nodes, name) as Node;
    const taints = [...(node.spec?.taints ?? []), { key: "example.com/own", effect: "NoSchedule" }];
    world.client.put(nodes, { ...node, spec: { ...node.spec, taints } });
    return undefined;
  });
  await pass(world, 60, "good");
  assert.deepEqual(taintsOf(world, "bad"), [
    "example.com/own:NoSchedule",
    "node.kubernetes.io/unreachable:NoExecute",
    "node.kubernetes.io/unreachable:NoSchedule",
  ]);
});

for (const { what, failure, isRepeated } of [
  { what: "cannot be marked not ready now is tried again", failure: () => serviceUnavailable("not now"), isRepeated: true },
  {
    what: "was deleted before it was marked not ready is not tried again",
    failure: () => notFound(pods, "a"),
    isRepeated: false,
  },
]) {
  test(`a pod that ${what}, and keeps no other from being marked`, async (t) => {
    const world = await running(t, { good: undefined, bad: undefined });
    const spec = { tolerations: [{ operator: "Exists" }] };
    world.client.put(pods, ...["a", "b"].map((name) => aPod({ name, nodeName: "bad", spec })));
    let tries = 0;
    world.client.react("update", "pods", ({ name }) => {
      if (name !== "a") return undefined;
      tries++;
      throw failure();
    });
    await pass(world, 60, "good");
    assert.deepEqual([isReady(world, "b"), tries > 1], [false, isRepeated]);
    const marked = world.events.filter((event) => event === "Warning NodeNotReady Node is not ready");
    assert.equal(marked.length, 1, "an event only for the pod that was marked");
  });
}

test("without a taint manager a node that was evicted from before all fell silent waits for its turn anew", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined }, withoutTaintManager);
  await pass(world, 70, "good");
  assert.equal(evictionsOf(world), 1);
  await pass(world, 60);
  reports(world, "good", "True");
  world.client.put(pods, aPod({ name: "later", nodeName: "bad" }));
  await pass(world, 60, "good");
  assert.deepEqual([podNames(world), evictionsOf(world)], [["later"], 1]);
  await pass(world, 30, "good");
  assert.deepEqual([podNames(world), evictionsOf(world)], [[], 2]);
});

test("without a taint manager the time since which a node is not ready is not begun anew by a conflict with its report", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined }, withoutTaintManager);
  world.client.put(pods, aPod({ name: "p", nodeName: "bad" }));
  await pass(world, 5, "good", "bad");
  reports(world, "bad", "False"); // seen 10 s after the start
  const since = world.client.object<Node>(nodes, "bad")?.status?.conditions?.[0]?.lastTransitionTime;
  let conflicts = 0;
  world.client.react("update", "nodes", ({ name }) => {
    if (name !== "bad" || conflicts++ > 0) return undefined;
    const node = world.client.object<Node>(nodes, "bad") as Node;
    const lastHeartbeatTime = "2022-01-01T00:00:50Z";
    const condition = { type: "Ready", status: "False" as const, lastHeartbeatTime, lastTransitionTime: since ?? null };
    world.client.put(nodes, { ...node, status: { ...node.status, conditions: [condition] } });
    throw conflict(nodes, "bad", "it has just reported");
  });
  await pass(world, 65, "good");
  assert.deepEqual([conflicts, podNames(world)], [1, ["p"]]);
  await pass(world, 10, "good");
  await settle(30);
  assert.deepEqual(podNames(world), []);
});

test("a node is registered once, also when its first check meets a conflict", async (t) => {
  const world = newTestContext(t);
  // Made long ago, so that its startup grace is over.
  const metadata = { name: "new", uid: "new", creationTimestamp: "2021-01-01T00:00:00Z" };
  world.client.put(nodes, aNode({ name: "good" }), { ...aNode(), metadata, status: {} });
  let conflicts = 0;
  world.client.react("update", "nodes", ({ name }) => {
    if (name === "new" && conflicts++ === 0) throw conflict(nodes, "new", "changed");
    return undefined;
  });
  await world.run(newNodeLifecycleController(world.ctx));
  await pass(world, 15, "good");
  assert.ok(conflicts > 1);
  const registered = world.events.filter((event) => event.startsWith("Normal RegisteredNode Node new "));
  assert.equal(registered.length, 1);
});

test("a node that has fallen silent and meets a conflict counts as ready until that is written", async (t) => {
  const world = await running(t, { good: undefined, bad: undefined });
  let conflicts = 0;
  world.client.react("update", "nodes", ({ name }) => {
    if (name === "bad" && conflicts++ === 0) throw conflict(nodes, "bad", "changed");
    return undefined;
  });
  const unhealthy = async (): Promise<string | undefined> =>
    /^node_collector_unhealthy_nodes_in_zone\{zone=""\} (\d+)$/m.exec(await world.ctx.registry.render())?.[1];
  const seen: (string | undefined)[] = [];
  while (conflicts < 2) {
    await pass(world, 5, "good");
    seen.push(await unhealthy());
  }
  assert.deepEqual(seen.slice(-2), ["0", "1"]);
});

test("evictions are looked at ten times a second while nodes wait", async (t) => {
  const bad = ["bad-1", "bad-2", "bad-3"];
  const where = { ...fourGood, ...Object.fromEntries(bad.map((name) => [name, undefined])) };
  const world = await running(t, where, { evictionRate: 5 });
  const evicted = (): number => bad.filter((name) => isEvicted(world, name)).length;
  while (evicted() === 0) await pass(world, 5, ...good);
  const seen: number[] = [];
  for (let i = 0; i < 5; i++) {
    seen.push(evicted());
    await world.clock.advance(100);
    await settle(30);
  }
  assert.deepEqual(seen, [1, 1, 2, 2, 3]);
});

test("without a taint manager a taint with NoExecute that someone sets evicts nobody", async (t) => {
  const world = await running(t, { good: undefined, tainted: undefined }, { taintManager: false });
  world.client.put(pods, aPod({ name: "p", nodeName: "tainted" }));
  world.client.put(nodes, aNode({ name: "tainted", taints: [{ key: "x", effect: "NoExecute" }] }));
  await pass(world, 15, "good", "tainted");
  assert.deepEqual(podNames(world), ["p"]);
});
