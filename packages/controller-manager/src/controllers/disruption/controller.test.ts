import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import {
  deployments,
  podDisruptionBudgets,
  pods,
  replicaSets,
  replicationControllers,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { serveDiscovery } from "../../testing/discovery.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newDisruptionController } from "./controller.ts";

const aBudget = (spec: Partial<PodDisruptionBudget["spec"]>, status?: Partial<PodDisruptionBudget["status"]>) => ({
  metadata: { name: "pdb", namespace: "default", generation: 1 },
  spec: { selector: { matchLabels: { app: "web" } }, ...spec },
  ...(status === undefined
    ? {}
    : { status: { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0, ...status } }),
});
const labels = { app: "web" };
const webSet = aReplicaSet({ replicas: 4 });
const webPods = (count: number, options: Parameters<typeof aPod>[0] = {}): Pod[] =>
  Array.from({ length: count }, (_, i) => aPod({ name: `p${i}`, labels, owner: webSet, ...options }));

async function started(t: { after(fn: () => void): void }, ...objects: [ResourceRef, object][]): Promise<TestContext> {
  const world = newTestContext(t);
  for (const [ref, object] of objects) world.client.put(ref, object as Pod);
  await world.run(newDisruptionController(world.ctx));
  return world;
}
const statusOf = ({ client }: TestContext) => client.object<PodDisruptionBudget>(podDisruptionBudgets, "default/pdb")?.status;
const counts = (world: TestContext) => {
  const { currentHealthy, desiredHealthy, disruptionsAllowed, expectedPods } = statusOf(world) ?? {};
  return { currentHealthy, desiredHealthy, disruptionsAllowed, expectedPods };
};
const all = (ref: ResourceRef, objects: readonly object[]): [ResourceRef, object][] => objects.map((object) => [ref, object]);

for (const { name, spec, ready, want } of [
  {
    name: "a number of available pods is of the pods that are there",
    spec: { minAvailable: 2 },
    ready: 3,
    want: { currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1, expectedPods: 3 },
  },
  {
    name: "a share of available pods is of those that their controller asks for, rounded up",
    spec: { minAvailable: "30%" },
    ready: 3,
    want: { currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1, expectedPods: 4 },
  },
  {
    name: "a number of unavailable pods is taken from those that the controller asks for",
    spec: { maxUnavailable: 1 },
    ready: 3,
    want: { currentHealthy: 3, desiredHealthy: 3, disruptionsAllowed: 0, expectedPods: 4 },
  },
  {
    name: "a share of unavailable pods is rounded up too",
    spec: { maxUnavailable: "30%" },
    ready: 3,
    want: { currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1, expectedPods: 4 },
  },
  {
    name: "more may be unavailable than there are",
    spec: { maxUnavailable: 9 },
    ready: 2,
    want: { currentHealthy: 2, desiredHealthy: 0, disruptionsAllowed: 2, expectedPods: 4 },
  },
] as const) {
  test(name, async (t) => {
    const others = [aPod({ name: "unready", labels: { app: "other" } })];
    const world = await started(
      t,
      [podDisruptionBudgets, aBudget(spec)],
      [replicaSets, webSet],
      ...all(pods, [...webPods(ready), ...others]),
    );
    assert.deepEqual(counts(world), want);
  });
}

test("says whether disruptions are allowed, and since when", async (t) => {
  const world = await started(t, [podDisruptionBudgets, aBudget({ minAvailable: 1 })], ...all(pods, webPods(2)));
  const since = new Date(world.clock.now()).toISOString().replace(".000", "");
  const type = "DisruptionAllowed";
  assert.deepEqual(statusOf(world)?.conditions, [
    { type, status: "True", reason: "SufficientPods", message: "", observedGeneration: 1, lastTransitionTime: since },
  ]);
  assert.equal(statusOf(world)?.observedGeneration, 1);
  await world.clock.advance(60_000);
  world.client.put(pods, ...webPods(2, { ready: false }));
  await settle(30);
  const [condition] = statusOf(world)?.conditions ?? [];
  assert.partialDeepStrictEqual(condition, { type, status: "False", reason: "InsufficientPods" });
  assert.notEqual(condition?.lastTransitionTime, since);
});

test("writes nothing when nothing changed", async (t) => {
  const world = await started(t, [podDisruptionBudgets, aBudget({ minAvailable: 1 })], ...all(pods, webPods(2)));
  world.client.clearActions();
  world.client.put(pods, ...webPods(2, { labels: { ...labels, other: "yes" } }));
  await settle(30);
  assert.deepEqual(world.client.writes, []);
});

test("a budget without pods allows nothing and says so", async (t) => {
  const world = await started(t, [podDisruptionBudgets, aBudget({ maxUnavailable: 1 })]);
  assert.deepEqual(counts(world), { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 });
  assert.deepEqual([...new Set(world.events)], ["Normal NoPods No matching pods found"]);
});

test("an empty selector takes every pod of the namespace", async (t) => {
  const elsewhere = aPod({ name: "elsewhere", namespace: "other" });
  const budget = aBudget({ minAvailable: 1, selector: {} });
  const world = await started(t, [podDisruptionBudgets, budget], ...all(pods, [aPod(), aPod({ name: "b" }), elsewhere]));
  assert.equal(counts(world).expectedPods, 2);
});

test("asks a ReplicaSet's Deployment, and adds up several controllers", async (t) => {
  const deployment = aDeployment({ replicas: 5 });
  const owned = (name: string, owner: Parameters<typeof aReplicaSet>[0]) => aReplicaSet({ name, ...owner });
  const [older, newer] = [owned("old", { replicas: 1, owner: deployment }), owned("new", { replicas: 9, owner: deployment })];
  const controller = {
    apiVersion: "v1",
    kind: "ReplicationController",
    metadata: { name: "rc", namespace: "default", uid: "rc-uid" },
    spec: { replicas: 2 },
  };
  const set = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "set", namespace: "default", uid: "set-uid" },
    spec: { replicas: 3 },
  };
  const world = await started(
    t,
    [podDisruptionBudgets, aBudget({ maxUnavailable: 1 })],
    [deployments, deployment],
    ...all(replicaSets, [older, newer]),
    [replicationControllers, controller],
    [statefulSets, set],
    ...all(
      pods,
      [older, newer, controller, set].map((owner, i) => aPod({ name: `p${i}`, labels, owner })),
    ),
  );
  assert.equal(counts(world).expectedPods, 5 + 2 + 3);
});

const widgets = {
  group: "example.com",
  version: "v1",
  resource: "widgets",
  kind: "Widget",
  namespaced: true,
  scale: true,
} as const;
const widget = (replicas: number) => ({
  apiVersion: "example.com/v1",
  kind: "Widget",
  metadata: { name: "w", namespace: "default", uid: "w-uid" },
  spec: { replicas },
});

test("asks a custom resource's scale", async (t) => {
  const world = newTestContext(t);
  serveDiscovery(world.client, [widgets]);
  world.client.put(widgets, widget(7));
  world.client.put(pods, aPod({ labels, owner: widget(7) }));
  world.client.put(podDisruptionBudgets, aBudget({ maxUnavailable: 7 }));
  await world.run(newDisruptionController(world.ctx));
  assert.deepEqual(counts(world), { currentHealthy: 1, desiredHealthy: 0, disruptionsAllowed: 1, expectedPods: 7 });
});

const failure = (message: string) =>
  `Warning CalculateExpectedPodCountFailed Failed to calculate the number of expected pods: ${message}`;
for (const { name, served, owner, message, also = [] } of [
  {
    name: "of a kind that is not served",
    served: [],
    owner: widget(1),
    message: 'no matches for kind "Widget" in version "example.com/v1"',
  },
  {
    name: "that cannot be scaled",
    served: [{ ...widgets, scale: false }],
    owner: widget(1),
    message: "widgets.example.com does not implement the scale subresource",
  },
  {
    name: "that is gone",
    served: [widgets],
    owner: widget(1),
    message: 'found no controllers for pod "pod"',
    also: ['Warning NoControllers found no controllers for pod "pod"'],
  },
]) {
  test(`allows nothing when a pod has a controller ${name}`, async (t) => {
    const world = newTestContext(t);
    serveDiscovery(world.client, served);
    world.client.put(pods, aPod({ labels, owner }));
    const before = { currentHealthy: 1, disruptionsAllowed: 1, observedGeneration: 1 };
    world.client.put(podDisruptionBudgets, aBudget({ maxUnavailable: 1 }, before));
    await world.run(newDisruptionController(world.ctx));
    assert.deepEqual([...new Set(world.events)], [...also, failure(message)]);
    hasFields(statusOf(world), {
      disruptionsAllowed: 0,
      currentHealthy: 1,
      conditions: [{ type: "DisruptionAllowed", status: "False", reason: "SyncFailed", message, observedGeneration: 1 }],
    });
  });
}

test("a controller whose scale cannot be read for now is not one that is gone", async (t) => {
  const world = newTestContext(t);
  serveDiscovery(world.client, [widgets]);
  world.client.react("get", "widgets", () => {
    throw serviceUnavailable("away");
  });
  world.client.put(pods, aPod({ labels, owner: widget(1) }));
  world.client.put(podDisruptionBudgets, aBudget({ maxUnavailable: 1 }));
  await world.run(newDisruptionController(world.ctx));
  assert.ok(world.events.length > 0);
  for (const event of world.events) assert.match(event, /^Warning CalculateExpectedPodCountFailed .*away/);
  hasFields(statusOf(world), { disruptionsAllowed: 0, conditions: [{ status: "False", reason: "SyncFailed" }] });
});

test("pods without a controller are ignored and cause no failure", async (t) => {
  const world = await started(t, [podDisruptionBudgets, aBudget({ maxUnavailable: 1 })], [pods, aPod({ labels })]);
  assert.deepEqual(counts(world), { currentHealthy: 1, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 });
  assert.deepEqual(world.events, []);
});

test("an evicted pod is not healthy, until two minutes went by without its deletion", async (t) => {
  const world = newTestContext(t);
  const at = new Date(world.clock.now()).toISOString().replace(".000", "");
  const disruptedPods = { p0: at, gone: at };
  const budget = aBudget({ minAvailable: 1 }, { disruptedPods });
  world.client.put(podDisruptionBudgets, budget);
  world.client.put(pods, ...webPods(3));
  await world.run(newDisruptionController(world.ctx));
  assert.deepEqual(statusOf(world)?.disruptedPods, { p0: at });
  assert.deepEqual(counts(world), { currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 3 });
  await world.clock.advance(120_000);
  assert.deepEqual(statusOf(world)?.disruptedPods, { p0: at });
  await world.clock.advance(1);
  await settle(30);
  assert.equal(statusOf(world)?.disruptedPods, undefined);
  assert.equal(counts(world).disruptionsAllowed, 2);
  assert.deepEqual(world.events, ["Warning NotDeleted Pod was expected by PDB default/default to be deleted but it wasn't"]);
  assert.deepEqual(world.regarding, ["Pod default/p0"]);
});

test("a pod on its way out is neither healthy nor still to be waited for", async (t) => {
  const at = "2024-01-01T00:00:00Z";
  const going = aPod({ name: "p0", labels, owner: webSet, deletedAt: at });
  const [, ...others] = webPods(3);
  const world = await started(
    t,
    [podDisruptionBudgets, aBudget({ minAvailable: 1 }, { disruptedPods: { p0: at } })],
    ...all(pods, [going, ...others]),
  );
  assert.equal(statusOf(world)?.disruptedPods, undefined);
  assert.deepEqual(counts(world), { currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 3 });
  assert.deepEqual(world.events, []);
});

test("a lost race is run again, and does not forbid disruptions", async (t) => {
  const world = newTestContext(t);
  world.client.put(pods, ...webPods(2));
  let races = 0;
  world.client.react("update", "poddisruptionbudgets", () => {
    if (races++ > 0) return undefined;
    // A concurrent write, which causes a conflict.
    world.client.put(podDisruptionBudgets, aBudget({ minAvailable: 0 }));
    return undefined;
  });
  world.client.put(podDisruptionBudgets, aBudget({ minAvailable: 1 }));
  await world.run(newDisruptionController(world.ctx));
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(races, 2);
  assert.deepEqual(counts(world), { currentHealthy: 2, desiredHealthy: 0, disruptionsAllowed: 2, expectedPods: 2 });
});

test("reports a pod that two budgets select", async (t) => {
  const second = { ...aBudget({ minAvailable: 1 }), metadata: { name: "second", namespace: "default" } };
  const world = await started(t, ...all(podDisruptionBudgets, [aBudget({ minAvailable: 1 }), second]), [pods, aPod({ labels })]);
  const chosen =
    /^Warning MultiplePodDisruptionBudgets Pod "default"\/"pod" matches multiple PodDisruptionBudgets\. {2}Chose "(pdb|second)" arbitrarily\.$/;
  const at = world.events.findIndex((event) => chosen.test(event));
  assert.ok(at >= 0, world.events.join("\n"));
  assert.equal(world.regarding[at], "Pod default/pod");
});

test("a pod changes only the disruption budgets that select it", async (t) => {
  const named = (name: string, selector: object) => ({
    ...aBudget({ minAvailable: 1, selector }),
    metadata: { name, namespace: "default", generation: 1 },
  });
  const world = await started(
    t,
    ...all(podDisruptionBudgets, [
      named("other", { matchLabels: { app: "api" } }),
      named("invalid", { matchExpressions: [{ key: "app", operator: "Nonsense" }] }),
      aBudget({ minAvailable: 1 }),
    ]),
  );
  world.client.clearActions();
  world.client.put(pods, aPod({ labels }));
  await settle(30);
  assert.ok(!world.events.some((event) => event.includes("MultiplePodDisruptionBudgets")));
  assert.deepEqual(
    world.client.writes.map(({ name }) => name),
    ["pdb"],
  );
});

test("a ReplicaSet of another kind's object than a Deployment counts itself", async (t) => {
  const rollout = { apiVersion: "argoproj.io/v1alpha1", kind: "Rollout", name: "web", uid: "rollout-uid", controller: true };
  const owned = { ...webSet, metadata: { ...webSet.metadata, ownerReferences: [rollout] } };
  const world = await started(
    t,
    [podDisruptionBudgets, aBudget({ maxUnavailable: 1 })],
    [replicaSets, owned],
    ...all(pods, webPods(4)),
  );
  assert.equal(counts(world).expectedPods, 4);
});

test("a controller that was made anew under its name is not that of the pods", async (t) => {
  const world = await started(
    t,
    [podDisruptionBudgets, aBudget({ maxUnavailable: 1 })],
    [replicaSets, aReplicaSet({ replicas: 4, uid: "another" })],
    ...all(pods, webPods(3)),
  );
  hasFields(statusOf(world), { disruptionsAllowed: 0, conditions: [{ reason: "SyncFailed" }] });
});

test("a custom resource that was made anew under its name is not the controller of the pods", async (t) => {
  const world = newTestContext(t);
  serveDiscovery(world.client, [widgets]);
  world.client.put(widgets, { ...widget(7), metadata: { ...widget(7).metadata, uid: "another" } });
  world.client.put(pods, aPod({ labels, owner: widget(7) }));
  world.client.put(podDisruptionBudgets, aBudget({ maxUnavailable: 1 }));
  await world.run(newDisruptionController(world.ctx));
  assert.ok(world.events.includes('Warning NoControllers found no controllers for pod "pod"'));
  assert.equal(counts(world).disruptionsAllowed, 0);
});

test("the scale of a controller is read once for all of its pods", async (t) => {
  const world = newTestContext(t);
  serveDiscovery(world.client, [widgets]);
  world.client.put(widgets, widget(7));
  for (const name of ["a", "b", "c"]) world.client.put(pods, aPod({ name, labels, owner: widget(7) }));
  world.client.put(podDisruptionBudgets, aBudget({ minAvailable: "50%" }));
  await world.run(newDisruptionController(world.ctx));
  const reads = world.client.actions.filter(({ verb, resource }) => verb === "get" && resource === "widgets").length;
  const looks = 1 + world.client.writes.length; // a status that is written leads to another look
  assert.ok(reads <= looks, `${reads} reads in ${looks} looks`);
  assert.partialDeepStrictEqual(counts(world), { desiredHealthy: 4, expectedPods: 7 });
});

test("conditions of others stay beside its own; a budget without a number allows nothing", async (t) => {
  const other = { type: "Other", status: "True" as const, reason: "R", message: "m", lastTransitionTime: "2024-01-01T00:00:00Z" };
  const world = await started(t, [podDisruptionBudgets, aBudget({}, { conditions: [other] })], ...all(pods, webPods(2)));
  assert.deepEqual(counts(world), { currentHealthy: 2, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 });
  const conditions = statusOf(world)?.conditions ?? [];
  assert.deepEqual([conditions[0], conditions[1]?.type, conditions.length], [other, "DisruptionAllowed", 2]);
});

test("the time of the condition stays while its status does", async (t) => {
  const world = await started(t, [podDisruptionBudgets, aBudget({ minAvailable: 1 })], ...all(pods, webPods(3)));
  const since = statusOf(world)?.conditions?.[0]?.lastTransitionTime;
  await world.clock.advance(60_000);
  world.client.remove(pods, "default/p2");
  await settle(30);
  assert.equal(counts(world).disruptionsAllowed, 1);
  assert.equal(statusOf(world)?.conditions?.[0]?.lastTransitionTime, since);
});

test("of two evicted pods the first that becomes overdue is looked at then, the other later", async (t) => {
  const world = newTestContext(t);
  const at = (ms: number) => new Date(world.clock.now() + ms).toISOString().replace(".000", "");
  const disruptedPods = { p0: at(-30_000), p1: at(-90_000) };
  world.client.put(podDisruptionBudgets, aBudget({ minAvailable: 1 }, { disruptedPods }));
  world.client.put(pods, ...webPods(3));
  await world.run(newDisruptionController(world.ctx));
  await world.clock.advance(30_001);
  await settle(30);
  assert.deepEqual(Object.keys(statusOf(world)?.disruptedPods ?? {}), ["p0"]);
  await world.clock.advance(60_000);
  await settle(30);
  assert.equal(statusOf(world)?.disruptedPods, undefined);
});

test("a budget with an invalid selector says so and allows nothing", async (t) => {
  const selector = { matchExpressions: [{ key: "app", operator: "Nonsense" }] };
  const world = await started(t, [podDisruptionBudgets, aBudget({ minAvailable: 0, selector })], ...all(pods, webPods(2)));
  assert.match(world.events[0] ?? "", /^Warning NoPods Failed to get pods: .*Nonsense/);
  hasFields(statusOf(world), { disruptionsAllowed: 0, conditions: [{ reason: "SyncFailed" }] });
});
