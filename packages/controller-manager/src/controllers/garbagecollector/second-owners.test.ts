/** Objects with a second owner, name, dependent or attempt, and lookups that must not be repeated. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ObjectMeta, OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newGarbageCollector } from "./controller.ts";

const verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
const things = { group: "example.com", version: "v1", resource: "things", kind: "Thing", namespaced: true };
const thing = (uid: string): OwnerReference => ({ apiVersion: "example.com/v1", kind: "Thing", name: uid, uid });
const gone = (uid: string): OwnerReference => ({ apiVersion: "apps/v1", kind: "ReplicaSet", name: uid, uid });
const deleted = "2022-01-01T00:00:00Z";
const foreground = { deletionTimestamp: deleted, finalizers: ["foregroundDeletion"] };

/** @param thingVerbs of the kind Thing; undefined: not served */
function serve({ client }: TestContext, thingVerbs?: readonly string[]): void {
  const groups = thingVerbs === undefined ? ["apps"] : ["apps", "example.com"];
  const core = [
    { name: "pods", kind: "Pod", namespaced: true, verbs },
    { name: "configmaps", kind: "ConfigMap", namespaced: true, verbs },
    { name: "nodes", kind: "Node", namespaced: false, verbs },
  ];
  for (const [path, answer] of Object.entries({
    "/api": { versions: ["v1"] },
    "/api/v1": { resources: core },
    "/apis": { groups: groups.map((name) => ({ name, versions: [{ version: "v1" }], preferredVersion: { version: "v1" } })) },
    "/apis/apps/v1": { resources: [{ name: "replicasets", kind: "ReplicaSet", namespaced: true, verbs }] },
    "/apis/example.com/v1": { resources: [{ name: "things", kind: "Thing", namespaced: true, verbs: thingVerbs }] },
  }))
    client.rawAnswers.set(path, answer);
}

async function started(t: { after(fn: () => void): void }, prepare: (world: TestContext) => void): Promise<TestContext> {
  const world = newTestContext(t);
  serve(world);
  prepare(world);
  await world.run(newGarbageCollector(world.ctx));
  await settle(60);
  return world;
}

async function later(world: TestContext, ms: number): Promise<void> {
  await world.clock.advance(ms);
  await settle(60);
}

const names = ({ client }: TestContext) => client.objects(pods).map(({ metadata }) => metadata.name);
const ownersOf = ({ client }: TestContext, name: string) =>
  client.object<Pod>(pods, `default/${name}`)?.metadata.ownerReferences?.map((owner) => owner.name);
const owner = aReplicaSet({ name: "web" });
const { uid = "" } = owner.metadata;
const withMeta = (metadata: ObjectMeta, of = owner) => ({ ...of, metadata: { ...of.metadata, ...metadata } });

test("--enable-garbage-collector=false disables the garbage collector", (t) => {
  const { ctx } = newTestContext(t);
  assert.equal(newGarbageCollector({ ...ctx, config: { ...ctx.config, garbageCollector: false } }), undefined);
});

test("an object that is being deleted is not deleted again", async (t) => {
  const world = await started(t, ({ client }) => {
    const pod = aPod({ name: "a", ownerReferences: [gone("x")] });
    const metadata = { ...pod.metadata, deletionTimestamp: deleted, finalizers: ["example.com/x"] };
    client.put(pods, { ...pod, metadata });
  });
  assert.deepEqual(world.client.writes, []);
});

test("an absent owner is looked up once for all dependents, also under another name", async (t) => {
  const owned = (name: string, reference: OwnerReference) => aPod({ name, ownerReferences: [reference] });
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, owned("a", gone("x")), owned("b", gone("x")));
  });
  const looked = () =>
    world.client.actions.flatMap(({ verb, resource, name }) => (verb === "get" && resource === "replicasets" ? [name] : []));
  assert.deepEqual([names(world), looked()], [[], ["x"]]);
  for (const name of ["c", "d"]) {
    world.client.put(pods, owned(name, { ...gone("not-web"), uid }));
    await settle(60);
  }
  assert.deepEqual([names(world), looked()], [[], ["x", "not-web"]]);
});

test("an owner that is nowhere under its first name is looked for under the second", async (t) => {
  const world = await started(t, ({ client }) => {
    const liar = { apiVersion: "v1", kind: "ConfigMap", name: "none", uid: "x" };
    client.put(configMaps, { metadata: { namespace: "default", name: "liar", ownerReferences: [liar] } });
    client.put(pods, aPod({ name: "a", ownerReferences: [gone("x")] }));
  });
  await later(world, 20_000);
  assert.deepEqual([world.client.objects(configMaps), names(world)], [[], []]);
});

test("an owner in another namespace is absent for that namespace only", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    const reference = { ...gone("web"), uid };
    client.put(pods, aPod({ name: "astray", namespace: "other", ownerReferences: [reference] }));
  });
  assert.deepEqual(names(world), []);
  world.client.put(pods, aPod({ name: "half", owner, ownerReferences: [gone("x")] }));
  await settle(60);
  assert.deepEqual(ownersOf(world, "half"), ["web"]);
});

test("a missing cluster-scoped owner is recorded as missing for all namespaces", async (t) => {
  const node = { apiVersion: "v1", kind: "Node", name: "n", uid: "n" };
  const world = await started(t, ({ client }) => {
    for (const namespace of ["default", "other"]) client.put(pods, aPod({ name: namespace, namespace, ownerReferences: [node] }));
  });
  assert.deepEqual(names(world), []);
  assert.equal(world.client.actions.filter(({ verb, resource }) => verb === "get" && resource === "nodes").length, 1);
});

test("an owner whose kind is served later is looked for then; beside one that is gone it counts as there until then", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(pods, aPod({ name: "alone", ownerReferences: [thing("x")] }));
    client.put(pods, aPod({ name: "both", ownerReferences: [gone("y"), thing("z")] }));
  });
  await later(world, 10_000);
  assert.deepEqual(
    [names(world), ownersOf(world, "both")],
    [
      ["alone", "both"],
      ["y", "z"],
    ],
  );
  serve(world, verbs);
  for (let i = 0; i < 10; i++) await later(world, 60_000);
  assert.deepEqual(names(world), []);
});

test("an owner of a kind that cannot be watched is neither listed nor collected itself, and keeps its dependents", async (t) => {
  const world = await started(t, (prepared) => {
    serve(prepared, ["get", "list", "delete"]);
    const metadata = { namespace: "default", name: "x", uid: "x", ownerReferences: [gone("y")] };
    prepared.client.put(things, { metadata });
    prepared.client.put(pods, aPod({ name: "a", ownerReferences: [thing("x")] }));
  });
  await later(world, 20_000);
  assert.deepEqual([names(world), world.client.objects(things).length], [["a"], 1]);
  assert.ok(world.client.actions.every(({ verb, resource }) => resource !== "things" || verb === "get"));
});

test("a deletion that fails is tried again", async (t) => {
  let isAway = true;
  const world = await started(t, ({ client }) => {
    client.put(pods, aPod({ name: "lost", ownerReferences: [gone("x")] }));
    client.react("delete", "pods", () => {
      if (isAway) throw serviceUnavailable("away");
      return undefined;
    });
  });
  assert.deepEqual(names(world), ["lost"]);
  isAway = false;
  await later(world, 60_000);
  assert.deepEqual(names(world), []);
});

for (const { name, metadata } of [
  { name: "waits for another's finalizer", metadata: { deletionTimestamp: deleted, finalizers: ["example.com/x"] } },
  { name: "has the finalizer of a foreground deletion without one", metadata: { finalizers: ["foregroundDeletion"] } },
]) {
  test(`an owner that ${name} is an owner: the reference to a deleted one is removed, the object stays`, async (t) => {
    const world = await started(t, ({ client }) => {
      client.put(replicaSets, withMeta(metadata));
      client.put(pods, aPod({ name: "half", owner, ownerReferences: [gone("x")] }));
    });
    assert.deepEqual([names(world), ownersOf(world, "half")], [["half"], ["web"]]);
  });
}

test("a circle of foreground deletions is broken by blocking none of the owners", async (t) => {
  const second = aReplicaSet({ name: "second" });
  const blocking = ({ metadata }: typeof owner): OwnerReference => ({
    ...gone(metadata.name ?? ""),
    uid: metadata.uid ?? "",
    blockOwnerDeletion: true,
  });
  const pod = aPod({ name: "a", ownerReferences: [blocking(owner), blocking(second)] });
  const back = { apiVersion: "v1", kind: "Pod", name: "a", uid: pod.metadata.uid ?? "", blockOwnerDeletion: true };
  const world = await started(t, ({ client }) => {
    client.put(pods, pod);
    client.put(replicaSets, withMeta({ ...foreground, ownerReferences: [back] }), withMeta(foreground, second));
  });
  const unblocked = world.client.writes.find(({ verb, resource }) => verb === "patch" && resource === "pods")?.sent as Pod;
  assert.deepEqual(
    unblocked.metadata.ownerReferences?.map(({ blockOwnerDeletion }) => blockOwnerDeletion),
    [false, false],
  );
});

test("a dependent that begins to block an owner while that waits for another is deleted, too", async (t) => {
  const block = { ...gone("web"), uid, blockOwnerDeletion: true };
  const first = aPod({ name: "first", ownerReferences: [block] });
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, withMeta(foreground));
    client.put(pods, { ...first, metadata: { ...first.metadata, finalizers: ["example.com/x"] } });
  });
  assert.ok(world.client.object<Pod>(pods, "default/first")?.metadata.deletionTimestamp);
  world.client.put(pods, aPod({ name: "second", ownerReferences: [block] }));
  await settle(60);
  world.client.put(pods, { ...first, metadata: { ...first.metadata, deletionTimestamp: deleted, ownerReferences: [] } });
  await settle(60);
  assert.deepEqual([names(world).includes("second"), world.client.objects(replicaSets)], [false, []]);
});

test("an orphan keeps its other owners", async (t) => {
  const other = aReplicaSet({ name: "other" });
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, withMeta({ deletionTimestamp: deleted, finalizers: ["orphan"] }), other);
    client.put(pods, aPod({ name: "a", owner, ownerReferences: [{ ...gone("other"), uid: other.metadata.uid ?? "" }] }));
  });
  assert.deepEqual(ownersOf(world, "a"), ["other"]);
});

test("a resource that is no longer served blocks no owner; one that is served again is watched again, and no other is listed again", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", ownerReferences: [{ ...gone("web"), uid, blockOwnerDeletion: true }] }));
  });
  const { client } = world;
  const lists = () => client.actions.flatMap(({ verb, resource }) => (verb === "list" ? [resource] : [])).toSorted();
  const initially = ["configmaps", "nodes", "pods", "replicasets"];
  await later(world, 61_000);
  assert.deepEqual(lists(), initially);
  client.rawAnswers.set("/api/v1", { resources: [{ name: "nodes", kind: "Node", namespaced: false, verbs }] });
  await later(world, 31_000);
  await client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Foreground" });
  await later(world, 10_000);
  assert.deepEqual(client.objects(replicaSets), []);
  serve(world);
  await later(world, 31_000);
  assert.deepEqual(lists(), [...initially, "configmaps", "pods"].toSorted());
  assert.deepEqual(names(world), []);
});

test("an object that another controller still sees blocks no owner once its resource is no longer served", async (t) => {
  const world = await started(t, ({ client, ctx }) => {
    client.put(replicaSets, owner);
    ctx.informers.for<Pod>(pods);
  });
  const { client, ctx } = world;
  client.rawAnswers.set("/api/v1", { resources: [{ name: "nodes", kind: "Node", namespaced: false, verbs }] });
  await later(world, 31_000);
  client.put(pods, aPod({ name: "later", ownerReferences: [{ ...gone("web"), uid, blockOwnerDeletion: true }] }));
  await settle(60);
  assert.ok(ctx.informers.for<Pod>(pods).lister.get("default/later"));
  await client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Foreground" });
  await later(world, 10_000);
  assert.deepEqual(client.objects(replicaSets), []);
});
