import assert from "node:assert/strict";
import { test } from "node:test";
import { methodNotSupported, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, namespaces, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNamespace, aPod } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { deletionConditions } from "./conditions.ts";
import { newNamespaceController } from "./controller.ts";
import { obstacles } from "./obstacles.ts";
import type { DeletionOutcome } from "./writes.ts";

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

function serveDiscovery({ client }: TestContext): void {
  client.rawAnswers.set("/api", { versions: ["v1"] });
  client.rawAnswers.set("/apis", { groups: [] });
  client.rawAnswers.set("/api/v1", {
    resources: [
      { name: "bindings", kind: "Binding", namespaced: true, verbs: ["create"] },
      { name: "nodes", kind: "Node", namespaced: false, verbs },
      { name: "pods", kind: "Pod", namespaced: true, verbs },
      { name: "pods/status", kind: "Pod", namespaced: true, verbs: ["get"] },
      { name: "configmaps", kind: "ConfigMap", namespaced: true, verbs: verbs.filter((verb) => verb !== "deletecollection") },
    ],
  });
}

const leaving = aNamespace({ name: "web", deletedAt: "2022-01-01T00:00:00Z", finalizers: [] });
const aConfigMap = (name: string, finalizers: string[] = []) => ({ metadata: { namespace: "web", name, finalizers } });

test("empties a namespace that is being deleted, and lets it go", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.put(namespaces, leaving, aNamespace({ name: "stays" }));
  client.put(pods, aPod({ namespace: "web" }), aPod({ namespace: "stays" }));
  client.put(configMaps, aConfigMap("a"), aConfigMap("b"));
  await run(newNamespaceController(ctx));
  assert.equal(client.objects(configMaps).length, 2); // not before all API servers have observed the deletion
  await clock.advance(5000);
  assert.equal(client.objects(configMaps).length, 0);
  assert.deepEqual(
    client.objects(pods).map(({ metadata }) => metadata.namespace),
    ["stays"],
  );
  assert.deepEqual(
    client.objects(namespaces).map(({ metadata }) => metadata.name),
    ["stays"],
  );
});

test("reports what blocks the deletion, and continues when that is removed", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.put(namespaces, leaving);
  client.put(configMaps, aConfigMap("held", ["example.com/hold"]));
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  const conditions = client.object<Namespace>(namespaces, "web")?.status?.conditions ?? [];
  assert.partialDeepStrictEqual(
    conditions.find(({ type }) => type === "NamespaceFinalizersRemaining"),
    {
      status: "True",
      reason: "SomeFinalizersRemain",
      message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
    },
  );
  assert.equal(
    conditions.find(({ type }) => type === "NamespaceContentRemaining")?.message,
    "Some resources are remaining: configmaps. has 1 resource instances",
  );
  client.remove(configMaps, "web/held");
  await clock.advance(8000);
  assert.equal(client.object(namespaces, "web"), undefined);
});

/** A terminating namespace with one Pod that is not removed. @param finalizersBeside of a ConfigMap beside it */
async function withStuckPod(
  t: { after(fn: () => void): void },
  terminationGracePeriodSeconds: number | bigint,
  deletedAt: string,
  finalizersBeside: string[] = [],
  config: Parameters<typeof newTestContext>[1] = {},
) {
  const world = newTestContext(t, config);
  serveDiscovery(world);
  if (finalizersBeside.length > 0) world.client.put(configMaps, aConfigMap("held", finalizersBeside));
  world.client.react("deletecollection", "pods", () => ({}));
  world.client.put(namespaces, aNamespace({ name: "web", deletedAt, finalizers: [] }));
  const spec = { terminationGracePeriodSeconds: terminationGracePeriodSeconds as number };
  world.client.put(pods, aPod({ namespace: "web", name: "stuck", spec }));
  await world.run(newNamespaceController(world.ctx));
  await world.clock.advance(5000);
  return world;
}
const conditionOf = ({ client }: TestContext, type: string) =>
  client.object<Namespace>(namespaces, "web")?.status?.conditions?.find((condition) => condition.type === type);

test("a pod has the time that it asks for; one that takes longer is in the way", async (t) => {
  const young = await withStuckPod(t, 30, "2022-01-01T00:00:00Z");
  assert.equal(conditionOf(young, "NamespaceDeletionContentFailure")?.status, "False");
  // It looks 5 s after the start of 2022: 29 and 30 s after these.
  const last = await withStuckPod(t, 30, "2021-12-31T23:59:36Z");
  assert.equal(conditionOf(last, "NamespaceDeletionContentFailure")?.status, "False");
  const over = await withStuckPod(t, 30, "2021-12-31T23:59:35Z");
  assert.equal(conditionOf(over, "NamespaceDeletionContentFailure")?.status, "True");
  const old = await withStuckPod(t, 30, "2021-12-31T23:59:00Z");
  assert.partialDeepStrictEqual(conditionOf(old, "NamespaceDeletionContentFailure"), {
    status: "True",
    reason: "ContentDeletionFailed",
    message:
      "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: web for gvr: /v1, Resource=pods",
  });
  old.client.remove(pods, "web/stuck");
  await old.clock.advance(60_000);
  assert.equal(old.client.object(namespaces, "web"), undefined);
});

test("however long a pod takes to end, its namespace is deleted soon after it", async (t) => {
  const world = await withStuckPod(t, 9223372036854775807n, "2022-01-01T00:00:00Z");
  assert.equal(conditionOf(world, "NamespaceContentRemaining")?.status, "True");
  world.client.remove(pods, "web/stuck");
  await world.clock.advance(301_000);
  assert.equal(world.client.object(namespaces, "web"), undefined);
});

test("--namespace-sync-period: namespaces that are being deleted are looked at so often", async (t) => {
  const config = { namespaceSyncPeriodMs: 10_000, resourceQuotaSyncPeriodMs: 7_000_000 };
  const world = await withStuckPod(t, 9223372036854775807n, "2022-01-01T00:00:00Z", [], config);
  await world.clock.advance(300_000); // its own looks are a minute apart by now
  world.client.remove(pods, "web/stuck");
  await world.clock.advance(15_000);
  assert.equal(world.client.object(namespaces, "web"), undefined);
});

test("content that cannot be deleted is tried again at least once a minute", async (t) => {
  const world = newTestContext(t, { namespaceSyncPeriodMs: 1e9 });
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  const tried: number[] = [];
  client.react("deletecollection", "pods", () => {
    tried.push(clock.now());
    throw serviceUnavailable("etcd is away");
  });
  client.put(namespaces, leaving);
  client.put(pods, aPod({ namespace: "web" }));
  await run(newNamespaceController(ctx));
  await clock.advance(15 * 60_000);
  assert.equal(Math.max(...tried.slice(1).map((at, i) => at - tried[i]!)), 60_000);
});

test("an object held by a finalizer is waited for, whatever else is left", async (t) => {
  const world = newTestContext(t);
  serveDiscovery(world);
  world.client.react("delete", "configmaps", () => ({}));
  world.client.put(namespaces, leaving);
  world.client.put(configMaps, aConfigMap("held", ["example.com/hold"]), aConfigMap("left"));
  await world.run(newNamespaceController(world.ctx));
  await world.clock.advance(5000);
  assert.equal(conditionOf(world, "NamespaceDeletionContentFailure")?.status, "False");
  assert.equal(
    conditionOf(world, "NamespaceContentRemaining")?.message,
    "Some resources are remaining: configmaps. has 2 resource instances",
  );
});

test("objects held by finalizers are looked at again after half of 15 s and one second", async (t) => {
  const world = newTestContext(t);
  serveDiscovery(world);
  world.client.put(namespaces, leaving);
  world.client.put(configMaps, aConfigMap("held", ["example.com/hold"]));
  await world.run(newNamespaceController(world.ctx));
  const looks = () => world.client.actions.filter(({ verb, resource }) => verb === "get" && resource === "namespaces").length;
  await world.clock.advance(5_000);
  await world.clock.advance(5_000); // the event of the conditions that it wrote
  const before = looks();
  const times: number[] = [];
  for (let second = 1; second <= 20; second++) {
    await world.clock.advance(1_000);
    if (looks() > before + times.length) times.push(second);
  }
  assert.deepEqual(times, [8, 16]);
});

test("keeps a namespace of which it cannot know what is in it", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.rawAnswers.set("/apis", { groups: [{ name: "metrics.k8s.io", versions: [{ version: "v1" }] }] });
  client.rawAnswers.set("/apis/metrics.k8s.io/v1", "not a list");
  client.put(namespaces, leaving);
  await run(newNamespaceController(ctx));
  await clock.advance(6000);
  const condition = client.object<Namespace>(namespaces, "web")?.status?.conditions?.[0];
  assert.partialDeepStrictEqual(condition, {
    type: "NamespaceDeletionDiscoveryFailure",
    status: "True",
    reason: "DiscoveryFailed",
  });
});

test("a group without resources does not block the others", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.rawAnswers.set("/apis", { groups: [{ name: "custom.metrics.k8s.io", versions: [{ version: "v1beta1" }] }] });
  client.rawAnswers.set("/apis/custom.metrics.k8s.io/v1beta1", { kind: "APIResourceList", resources: null });
  client.put(namespaces, leaving);
  await run(newNamespaceController(ctx));
  await clock.advance(6000);
  assert.equal(client.object(namespaces, "web"), undefined);
});

const nothingLeft: DeletionOutcome = {
  estimateSeconds: 0,
  discoveryFailures: [],
  failures: [],
  remaining: new Map(),
  finalizers: new Map(),
};

test("conditions keep their time while they say the same", () => {
  const [first] = deletionConditions([], nothingLeft, 0);
  assert.deepEqual(first, {
    type: "NamespaceDeletionDiscoveryFailure",
    status: "False",
    reason: "ResourcesDiscovered",
    message: "All resources successfully discovered",
    lastTransitionTime: "1970-01-01T00:00:00Z",
  });
  const again = deletionConditions(
    deletionConditions([], nothingLeft, 0),
    { ...nothingLeft, remaining: new Map([["pods.", 2]]) },
    60_000,
  );
  assert.deepEqual(
    again.map(({ lastTransitionTime }) => lastTransitionTime === "1970-01-01T00:01:00Z"),
    [false, false, false, true, false],
  );
  const fewer = deletionConditions(again, { ...nothingLeft, remaining: new Map([["pods.", 1]]) }, 120_000);
  assert.partialDeepStrictEqual(fewer[3], {
    ...{ status: "True", lastTransitionTime: "1970-01-01T00:02:00Z" },
    message: "Some resources are remaining: pods. has 1 resource instances",
  });
});

test("a resource that is no longer served when its objects are listed is not in the way", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.put(namespaces, leaving);
  client.react("list", "configmaps", () => {
    throw notFound(configMaps, "");
  });
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  assert.equal(client.object(namespaces, "web"), undefined);
});

test("a resource whose deletion fails does not block the others, and keeps the namespace until it succeeds", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  let isAway = true;
  client.react("deletecollection", "pods", () => {
    if (isAway) throw serviceUnavailable("etcd is away");
  });
  client.put(namespaces, { ...leaving, spec: { finalizers: ["kubernetes", "example.com/own"] }, status: { phase: "Active" } });
  client.put(pods, aPod({ namespace: "web" }));
  client.put(configMaps, aConfigMap("a"), aConfigMap("held", ["example.com/hold"]));
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  const stored = () => client.object<Namespace>(namespaces, "web");
  assert.deepEqual(
    client.objects(configMaps).map(({ metadata }) => metadata.name),
    ["held"],
  );
  assert.equal(stored()?.status?.phase, "Terminating");
  const failed = stored()?.status?.conditions?.find(({ type }) => type === "NamespaceDeletionContentFailure");
  assert.equal(failed?.status, "True");
  isAway = false;
  client.remove(configMaps, "web/held");
  await clock.advance(120_000);
  assert.equal(client.objects(pods).length, 0);
  assert.deepEqual(stored()?.spec?.finalizers, ["example.com/own"], "those of others stay");
});

test("objects without deletecollection are deleted one by one; one that was deleted meanwhile is not an error", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.react("deletecollection", "pods", () => {
    throw methodNotSupported(pods, "deletecollection");
  });
  let isFirst = true;
  client.react("delete", "pods", ({ name }) => {
    if (!isFirst) return undefined;
    isFirst = false;
    client.remove(pods, `web/${name}`);
    throw notFound(pods, name);
  });
  client.put(namespaces, leaving);
  client.put(pods, aPod({ namespace: "web", name: "a" }), aPod({ namespace: "web", name: "b" }));
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  assert.deepEqual([client.objects(pods).length, client.objects(namespaces).length], [0, 0]);
});

test("each finalizer of each object is counted, and a pod that has ended needs no time", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.put(namespaces, { ...leaving, metadata: { ...leaving.metadata, deletionTimestamp: "2022-01-01T00:00:00Z" } });
  const ended = aPod({ namespace: "web", spec: { terminationGracePeriodSeconds: 3600 }, status: { phase: "Succeeded" } });
  client.put(pods, { ...ended, metadata: { ...ended.metadata, finalizers: ["example.com/a", "example.com/b"] } });
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  const conditions = client.object<Namespace>(namespaces, "web")?.status?.conditions ?? [];
  const { message = "" } = conditions.find(({ type }) => type === "NamespaceFinalizersRemaining") ?? {};
  assert.match(message, /example\.com\/a in 1 resource instances.*example\.com\/b in 1 resource instances/);
  await clock.advance(6000); // the look after the event of the conditions
  client.remove(pods, `web/${ended.metadata.name}`);
  await clock.advance(20_000);
  assert.equal(client.objects(namespaces).length, 0, "not after an hour");
  const [collection] = client.writes.filter(({ verb }) => verb === "deletecollection");
  assert.deepEqual(collection?.sent, { propagationPolicy: "Background" });
});

test("a namespace that another writer changed while its conditions were written is finalized in its new state, at once", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.put(namespaces, leaving);
  let others = 0;
  client.react("update", "namespaces", ({ subresource, sent }) => {
    if (subresource !== "status" || (sent as Namespace).status?.conditions === undefined || others++ > 0) return undefined;
    const { metadata, ...rest } = client.object<Namespace>(namespaces, "web") as Namespace;
    client.put(namespaces, { ...rest, metadata: { ...metadata, labels: { touched: "yes" } } });
    return undefined;
  });
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  assert.equal(client.object(namespaces, "web"), undefined);
  const finalizing = client.writes.filter(({ subresource }) => subresource === "finalize");
  assert.deepEqual(
    finalizing.map(({ sent }) => (sent as Namespace).metadata.labels),
    [{ touched: "yes" }],
  );
});

for (const { what, live } of [
  { what: "was created again under its name", live: () => aNamespace({ name: "web", uid: "second" }) },
  { what: "has only the finalizers of others left", live: () => ({ ...leaving, spec: { finalizers: ["example.com/own"] } }) },
  { what: "is gone", live: () => undefined },
])
  test(`a namespace that ${what}, which only the server knows, keeps its content`, async (t) => {
    const world = newTestContext(t);
    const { client, clock, ctx, run } = world;
    serveDiscovery(world);
    client.put(namespaces, leaving);
    client.put(configMaps, aConfigMap("kept"));
    let reads = 0;
    client.react("get", "namespaces", () => {
      reads++;
      const namespace = live();
      if (namespace === undefined) throw notFound(namespaces, "web");
      return namespace;
    });
    await run(newNamespaceController(ctx));
    await clock.advance(60_000);
    assert.deepEqual(client.writes, []);
    assert.equal(reads, 1, "and is not tried again");
  });

test("the content that takes longest determines when it is looked at again", async (t) => {
  const world = await withStuckPod(t, 100, "2022-01-01T00:00:00Z", ["example.com/hold"]);
  const looks = () => world.client.actions.filter(({ verb, resource }) => verb === "get" && resource === "namespaces").length;
  await world.clock.advance(5_000); // the event of the conditions that it wrote
  const before = looks();
  await world.clock.advance(50_000);
  assert.equal(looks(), before);
  await world.clock.advance(1_000);
  assert.equal(looks(), before + 1);
});

test("a resource that cannot be listed, or whose objects cannot be deleted one by one, is no failure", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  const { resources } = client.rawAnswers.get("/api/v1") as { resources: object[] };
  const unlisted = { name: "secrets", kind: "Secret", namespaced: true, verbs: ["delete"] };
  client.rawAnswers.set("/api/v1", { resources: [...resources, unlisted] });
  client.react("delete", "configmaps", ({ name }) => {
    client.remove(configMaps, `web/${name}`);
    throw methodNotSupported(configMaps, "delete");
  });
  client.react("deletecollection", "pods", () => {
    throw notFound(pods, "");
  });
  client.put(namespaces, leaving);
  client.put(configMaps, aConfigMap("a"), aConfigMap("b"));
  client.put(pods, aPod({ namespace: "web" }));
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  assert.deepEqual([client.objects(pods).length, client.object(namespaces, "web")], [0, undefined]);
  assert.deepEqual(
    client.actions.filter(({ resource }) => resource === "secrets"),
    [],
  );
});

test("what the conditions list is sorted, and a changed reason alone is a change", () => {
  const outcome: DeletionOutcome = {
    ...nothingLeft,
    failures: [new Error("b"), new Error("a")],
    remaining: new Map([
      ["pods.", 2],
      ["configmaps.", 1],
    ]),
    finalizers: new Map([
      ["z/z", 1],
      ["a/a", 2],
    ]),
  };
  const conditions = deletionConditions([], outcome, 0);
  assert.deepEqual(
    conditions.slice(2).map(({ message }) => message),
    [
      "Failed to delete all resource types, 2 remaining: a, b",
      "Some resources are remaining: configmaps. has 1 resource instances, pods. has 2 resource instances",
      "Some content in the namespace has finalizers remaining: a/a in 2 resource instances, z/z in 1 resource instances",
    ],
  );
  const former = conditions.map((condition) => ({ ...condition, reason: "Former" }));
  assert.deepEqual(
    deletionConditions(former, outcome, 60_000).map(({ reason, lastTransitionTime }) => [reason, lastTransitionTime]),
    conditions.map(({ reason }) => [reason, "1970-01-01T00:01:00Z"]),
  );
});

test("one object is named in the singular, and the core group has no APIService to repair", () => {
  const finalizers = new Map([
    ["a/a", 1],
    ["b/b", 2],
  ]);
  const held = obstacles({ ...nothingLeft, finalizers, remaining: new Map([["pods.", 3]]) });
  assert.partialDeepStrictEqual(held.description, {
    summary: "waits for the finalizer a/a of 1 object, b/b of 2 objects; left: 3 of pods",
  });
  const failed = (groupVersion: string) =>
    obstacles({ ...nothingLeft, discoveryFailures: [{ groupVersion, error: new Error("away") }] }).description;
  assert.deepEqual((failed("v1") as { related: unknown }).related, []);
  hasFields(failed("example.com/v1"), { related: [{ name: "v1.example.com" }] });
});

for (const { what, verb, resource, message } of [
  { what: "listed", verb: "list", resource: "configmaps", message: /^Failed to delete all resource types, 1 remaining: .*away/ },
  {
    what: "deleted",
    verb: "delete",
    resource: "configmaps",
    message: /^Failed to delete all resource types, 1 remaining: .*away/,
  },
] as const) {
  test(`a namespace whose objects cannot be ${what} stays, and says why, until they can`, async (t) => {
    const world = newTestContext(t);
    const { client, clock, ctx, run } = world;
    serveDiscovery(world);
    let isAway = true;
    client.react(verb, resource, () => {
      if (isAway) throw serviceUnavailable("away");
      return undefined;
    });
    client.put(namespaces, leaving);
    client.put(configMaps, aConfigMap("a"));
    await run(newNamespaceController(ctx));
    await clock.advance(5000);
    assert.match(conditionOf(world, "NamespaceDeletionContentFailure")?.message ?? "", message);
    isAway = false;
    await clock.advance(60_000);
    assert.equal(client.object(namespaces, "web"), undefined);
  });
}

test("a namespace whose finalizer cannot be removed loses it later", async (t) => {
  const world = newTestContext(t, { namespaceSyncPeriodMs: 1e9 });
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  let tries = 0;
  client.react("update", "namespaces", ({ subresource }) => {
    if (subresource === "finalize" && tries++ === 0) throw serviceUnavailable("away");
    return undefined;
  });
  client.put(namespaces, leaving);
  await run(newNamespaceController(ctx));
  await clock.advance(60_000);
  assert.deepEqual([tries, client.object(namespaces, "web")], [2, undefined]);
});

test("a pod without a grace period beside one that has it takes nothing from its time", async (t) => {
  const world = newTestContext(t);
  const { client, clock, ctx, run } = world;
  serveDiscovery(world);
  client.react("deletecollection", "pods", () => ({}));
  client.put(namespaces, leaving);
  const spec = { terminationGracePeriodSeconds: 30 };
  client.put(pods, aPod({ namespace: "web", name: "a", spec }), aPod({ namespace: "web", name: "b" }));
  await run(newNamespaceController(ctx));
  await clock.advance(5000);
  assert.equal(conditionOf(world, "NamespaceDeletionContentFailure")?.status, "False");
});
