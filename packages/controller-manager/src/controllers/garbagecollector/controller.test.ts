import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, nodes, pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode, aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newGarbageCollector } from "./controller.ts";

const verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];

async function started(t: { after(fn: () => void): void }, prepare: (world: TestContext) => void): Promise<TestContext> {
  const world = newTestContext(t);
  const { rawAnswers } = world.client;
  rawAnswers.set("/api", { versions: ["v1"] });
  rawAnswers.set("/apis", { groups: [{ name: "apps", versions: [{ version: "v1" }], preferredVersion: { version: "v1" } }] });
  rawAnswers.set("/api/v1", {
    resources: [
      { name: "pods", kind: "Pod", namespaced: true, verbs },
      { name: "configmaps", kind: "ConfigMap", namespaced: true, verbs },
      { name: "nodes", kind: "Node", namespaced: false, verbs },
      { name: "events", kind: "Event", namespaced: true, verbs },
    ],
  });
  rawAnswers.set("/apis/apps/v1", { resources: [{ name: "replicasets", kind: "ReplicaSet", namespaced: true, verbs }] });
  prepare(world);
  await world.run(newGarbageCollector(world.ctx));
  await settle(60);
  return world;
}

const names = ({ client }: TestContext) => client.objects(pods).map(({ metadata }) => metadata.name);
const owner = aReplicaSet({ name: "web" });
const nobody: OwnerReference = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "nobody", uid: "nobody-uid", controller: true };

test("deletes what has only owners that are gone, and nothing else", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(
      pods,
      aPod({ name: "owned", owner }),
      aPod({ name: "free" }),
      aPod({ name: "lost", ownerReferences: [nobody] }),
      aPod({ name: "half", owner, ownerReferences: [nobody] }),
    );
  });
  assert.deepEqual(names(world), ["owned", "free", "half"]);
  const half = world.client.object<Pod>(pods, "default/half");
  assert.deepEqual(
    half?.metadata.ownerReferences?.map(({ name }) => name),
    ["web"],
  );
});

test("events are neither listed nor watched, in either of their groups", async (t) => {
  const world = await started(t, ({ client: { rawAnswers } }) => {
    rawAnswers.set("/apis", { groups: [{ name: "events.k8s.io", versions: [{ version: "v1" }] }] });
    rawAnswers.set("/apis/events.k8s.io/v1", { resources: [{ name: "events", kind: "Event", namespaced: true, verbs }] });
  });
  const followed = world.client.actions.filter(({ verb }) => verb === "list" || verb === "watch");
  assert.deepEqual([...new Set(followed.map(({ resource }) => resource))].sort(), ["configmaps", "nodes", "pods"]);
});

test("a resource without one of the verbs delete, list and watch is not followed", async (t) => {
  const kinds = ["delete", "list", "watch"].map((without) => ({
    ...{ name: `no${without}s`, kind: `No${without}`, namespaced: true },
    verbs: verbs.filter((verb) => verb !== without),
  }));
  const world = await started(t, ({ client: { rawAnswers } }) => {
    const { resources } = rawAnswers.get("/api/v1") as { resources: object[] };
    rawAnswers.set("/api/v1", { resources: [...resources, ...kinds] });
  });
  const followed = world.client.actions.filter(({ verb }) => verb === "list" || verb === "watch");
  assert.deepEqual([...new Set(followed.map(({ resource }) => resource))].sort(), [
    ...["configmaps", "nodes", "pods", "replicasets"],
  ]);
});

test("deletes dependents when their owner is deleted in the background", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", owner }), aPod({ name: "b", owner }));
  });
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Background" });
  await settle(60);
  assert.deepEqual(names(world), []);
});

test("an owner deleted in the foreground is removed last", async (t) => {
  const order: string[] = [];
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", owner }));
  });
  world.ctx.informers.for<Pod>(pods).addHandler({ deleted: ({ metadata }) => order.push(metadata.name ?? "") });
  world.ctx.informers.for(replicaSets).addHandler({ deleted: ({ metadata }) => order.push(metadata.name ?? "") });
  await settle();
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Foreground" });
  await settle(80);
  assert.deepEqual(order, ["a", "web"]);
});

test("an owner deleted in the foreground is explained by the dependents that are left", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", owner }), aPod({ name: "held", owner, finalizers: ["example.com/x"] }));
  });
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Foreground" });
  await settle(80);
  const web = { group: "apps", resource: "replicasets", kind: "ReplicaSet", namespace: "default", name: "web", uid: "" };
  const [decision] = world.ctx.decisions.of(web);
  assert.partialDeepStrictEqual(decision, {
    ...{ verdict: "waiting", reason: "DependentsBlockDeletion" },
    summary: "is deleted in the foreground: waits for 1 of its dependents, which block it, to be deleted",
  });
  assert.deepEqual(
    decision?.related?.map(({ name }) => name),
    ["held"],
  );
});

test("a dependent that is deleted in the foreground itself is not looked at again for its owner", async (t) => {
  const middle = aReplicaSet({ name: "middle", owner });
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner, middle);
    client.put(pods, aPod({ name: "held", owner: middle, finalizers: ["example.com/x"] }));
  });
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Foreground" });
  await settle(120);
  const web = world.client.object(replicaSets, "default/web");
  assert.ok(web?.metadata.deletionTimestamp);
  assert.ok(world.client.object(replicaSets, "default/middle")?.metadata.deletionTimestamp);
  const before = world.client.actions.length;
  world.client.put(replicaSets, { ...web, metadata: { ...web.metadata, labels: { touched: "yes" } } } as typeof web);
  await settle(120);
  assert.deepEqual(
    world.client.actions.slice(before).map(({ verb, name }) => `${verb} ${name}`),
    ["get web"],
  );
});

test("an owner deleted with Orphan leaves its dependents free", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", owner }));
  });
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Orphan" });
  await settle(80);
  assert.deepEqual(names(world), ["a"]);
  assert.deepEqual(world.client.object<Pod>(pods, "default/a")?.metadata.ownerReferences, []);
  assert.equal(world.client.objects(replicaSets).length, 0);
});

test("an owner of another namespace does not count, and an event says so", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, aReplicaSet({ name: "web", namespace: "other" }));
    client.put(pods, aPod({ name: "a", owner }));
  });
  assert.deepEqual(names(world), []);
  const { uid } = owner.metadata;
  const reference = `[apps/v1/ReplicaSet, namespace: default, name: web, uid: ${uid}]`;
  const message = `Warning OwnerRefInvalidNamespace ownerRef ${reference} does not exist in namespace "default"`;
  assert.deepEqual([world.events, world.regarding], [[message], ["Pod default/a"]]);
  world.client.put(pods, aPod({ name: "b", owner }));
  await settle(60);
  assert.deepEqual([names(world), world.events], [[], [message, message]]);
});

test("a reference to the right uid under a wrong name does not affect other dependents", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    const reference = { apiVersion: "v1", kind: "ConfigMap", name: "none", uid: owner.metadata.uid ?? "" };
    client.put(configMaps, { metadata: { namespace: "default", name: "liar", ownerReferences: [reference] } });
  });
  assert.deepEqual(world.client.objects(configMaps), []);
  // Processed because of its absent owner; the valid owner must not be considered absent.
  world.client.put(pods, aPod({ name: "half", owner, ownerReferences: [nobody] }));
  await settle(60);
  assert.deepEqual(names(world), ["half"]);
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Background" });
  await settle(60);
  assert.deepEqual(names(world), []);
});

test("an owner that was first named wrongly still takes its dependents with it", async (t) => {
  const world = await started(t, ({ client }) => {
    const reference = { apiVersion: "v1", kind: "ConfigMap", name: "none", uid: owner.metadata.uid ?? "" };
    client.put(configMaps, { metadata: { namespace: "default", name: "liar", ownerReferences: [reference] } });
    client.put(pods, aPod({ name: "a", owner }));
    client.put(replicaSets, owner);
  });
  await world.clock.advance(20_000);
  assert.deepEqual(names(world), ["a"]);
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Background" });
  await settle(60);
  assert.deepEqual(names(world), []);
});

test("a cluster-scoped object with an owner in a namespace stays, and an event says so", async (t) => {
  const world = await started(t, ({ client }) => {
    const { uid = "" } = owner.metadata;
    client.put(replicaSets, owner);
    client.put(nodes, aNode({ name: "n1", ownerReferences: [{ ...nobody, name: "web", uid }] }));
    client.put(nodes, aNode({ name: "n2", ownerReferences: [nobody] }));
  });
  assert.equal(world.client.objects(nodes).length, 2);
  assert.ok(world.events.some((event) => event.startsWith("Warning OwnerRefInvalidNamespace ")));
});

test("an owner of an unknown kind is never treated as absent", async (t) => {
  const reference = { apiVersion: "example.com/v1", kind: "Thing", name: "x", uid: "x" };
  const world = await started(t, ({ client }) =>
    client.put(configMaps, { metadata: { namespace: "default", name: "a", ownerReferences: [reference] } }),
  );
  await world.clock.advance(60_000);
  assert.equal(world.client.objects(configMaps).length, 1);
});

test("follows resources that the server starts to have", async (t) => {
  const world = await started(t, () => {});
  const { client, clock } = world;
  const widgets = { group: "example.com", version: "v1", resource: "widgets", kind: "Widget", namespaced: true };
  client.rawAnswers.set("/apis/example.com/v1", { resources: [{ name: "widgets", kind: "Widget", namespaced: true, verbs }] });
  client.rawAnswers.set("/apis", {
    groups: ["apps", "example.com"].map((name) => ({ name, versions: [{ version: "v1" }], preferredVersion: { version: "v1" } })),
  });
  client.put(widgets, { metadata: { namespace: "default", name: "w", ownerReferences: [nobody] } });
  await clock.advance(31_000);
  await settle(60);
  assert.equal(client.objects(widgets).length, 0);
});

test("an owner that exists but is not watched yet is looked at again until it is gone", async (t) => {
  const world = await started(t, () => {});
  const { client, clock } = world;
  const widgets = { group: "example.com", version: "v1", resource: "widgets", kind: "Widget", namespaced: true };
  client.react("list", "widgets", () => {
    throw serviceUnavailable("its conversion webhook is away");
  });
  client.rawAnswers.set("/apis/example.com/v1", { resources: [{ name: "widgets", kind: "Widget", namespaced: true, verbs }] });
  client.rawAnswers.set("/apis", { groups: [{ name: "example.com", versions: [{ version: "v1" }] }] });
  await clock.advance(31_000);
  client.put(widgets, { metadata: { namespace: "default", name: "w", uid: "w-uid" } });
  client.put(
    pods,
    aPod({ name: "a", ownerReferences: [{ ...nobody, apiVersion: "example.com/v1", kind: "Widget", name: "w", uid: "w-uid" }] }),
  );
  await clock.advance(10_000);
  assert.deepEqual(names(world), ["a"]);
  client.remove(widgets, "default/w");
  await clock.advance(10_000);
  await settle(60);
  assert.deepEqual(names(world), []);
});

test("uses the informer that another controller has, in place of a separate watch", async (t) => {
  const world = await started(t, ({ client, ctx }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", owner }), aPod({ name: "lost", ownerReferences: [nobody] }));
    ctx.informers.for(pods);
  });
  const watched = world.client.actions.filter(({ verb }) => verb === "watch").map(({ resource }) => resource);
  assert.deepEqual(watched.toSorted(), ["configmaps", "nodes", "pods", "replicasets"]);
  assert.deepEqual(names(world), ["a"]);
  world.client.put(pods, aPod({ name: "later", owner }));
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Background" });
  await settle(60);
  assert.deepEqual(names(world), []);
});

test("forgets what it followed once that is no longer served", async (t) => {
  const world = await started(t, ({ client, ctx }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", owner }));
    ctx.informers.for(pods);
  });
  world.client.rawAnswers.set("/api/v1", { resources: [{ name: "nodes", kind: "Node", namespaced: false, verbs }] });
  await world.clock.advance(31_000);
  await settle(60);
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Background" });
  world.client.put(pods, aPod({ name: "later", ownerReferences: [nobody] }));
  await settle(60);
  assert.deepEqual(names(world), ["a", "later"]);
});

test("begins when what it cannot list is no longer served", async (t) => {
  const world = await started(t, ({ client }) => {
    client.react("list", "configmaps", () => {
      throw serviceUnavailable("its conversion webhook is away");
    });
    client.put(pods, aPod({ name: "lost", ownerReferences: [nobody] }));
  });
  assert.deepEqual(names(world), ["lost"], "who cannot see everything deletes nothing");
  world.client.rawAnswers.set("/api/v1", { resources: [{ name: "pods", kind: "Pod", namespaced: true, verbs }] });
  await world.clock.advance(60_000);
  await settle(60);
  assert.deepEqual(names(world), []);
});

for (const { name, verb, resource } of [
  { name: "an owner that cannot be read is not taken for deleted", verb: "get", resource: "replicasets" },
  { name: "a reference that could not be removed is removed later", verb: "patch", resource: "pods" },
] as const) {
  test(name, async (t) => {
    let isAway = true;
    const world = await started(t, ({ client }) => {
      client.put(replicaSets, owner);
      client.put(pods, aPod({ name: "half", owner, ownerReferences: [nobody] }));
      client.react(verb, resource, (action) => {
        if (isAway && action.name !== "nobody") throw serviceUnavailable("the server is away");
        return undefined;
      });
    });
    const references = () =>
      world.client
        .object<Pod>(pods, "default/half")
        ?.metadata.ownerReferences?.map((reference) => reference.name)
        .toSorted();
    assert.deepEqual(references(), ["nobody", "web"]);
    isAway = false;
    await world.clock.advance(60_000);
    await settle(60);
    assert.deepEqual(references(), ["web"]);
    assert.ok(world.client.writes.every((write) => write.verb !== "delete"));
  });
}

test("an owner deleted with orphaning stays until all dependents are orphaned", async (t) => {
  let isAway = true;
  const leaving = { ...owner.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["orphan"] };
  const world = await started(t, ({ client }) => {
    client.react("patch", "pods", ({ name }) => {
      if (isAway && name === "b") throw serviceUnavailable("away");
      return undefined;
    });
    client.put(replicaSets, { ...owner, metadata: leaving });
    client.put(pods, aPod({ name: "a", owner }), aPod({ name: "b", owner }));
  });
  const finalizers = () => world.client.object(replicaSets, "default/web")?.metadata.finalizers;
  assert.deepEqual(finalizers(), ["orphan"]);
  isAway = false;
  await world.clock.advance(60_000);
  await settle(60);
  assert.ok(!finalizers()?.length);
  const owners = world.client.objects<Pod>(pods).map(({ metadata }) => metadata.ownerReferences?.length ?? 0);
  assert.deepEqual(owners, [0, 0]);
});

test("deletes exactly the object that it has looked at, and writes only on what it has read", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "lost", ownerReferences: [nobody] }), aPod({ name: "half", owner, ownerReferences: [nobody] }));
  });
  const { writes } = world.client;
  const deletion = writes.find(({ verb }) => verb === "delete");
  assert.equal(deletion?.name, "lost");
  assert.ok((deletion?.sent as { preconditions?: { uid?: string } } | undefined)?.preconditions?.uid);
  const patch = writes.find(({ verb }) => verb === "patch")?.sent as Pod | undefined;
  assert.ok(patch?.metadata.uid && patch.metadata.resourceVersion);
});

test("an owner that was made anew under its name is not the one that is gone", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "old", ownerReferences: [{ ...nobody, name: "web" }] }), aPod({ name: "new", owner }));
  });
  assert.deepEqual(names(world), ["new"]);
});

test("an owner that only waits for others' finalizers keeps its dependents", async (t) => {
  const world = await started(t, ({ client }) => {
    const metadata = { ...owner.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["example.com/x"] };
    client.put(replicaSets, { ...owner, metadata });
    client.put(pods, aPod({ name: "a", owner }));
  });
  assert.deepEqual(names(world), ["a"]);
});

test("a cluster-scoped object with an owner in a namespace keeps its other owners too, even when they are gone", async (t) => {
  const inNamespace = { apiVersion: "v1", kind: "Pod", name: "a", uid: "a-uid" };
  const gone = { apiVersion: "v1", kind: "Node", name: "gone", uid: "gone-uid" };
  const world = await started(t, ({ client }) => {
    client.put(nodes, { ...aNode({ name: "n" }), metadata: { name: "n", uid: "n-uid", ownerReferences: [gone, inNamespace] } });
  });
  assert.deepEqual(world.client.objects(nodes)[0]?.metadata.ownerReferences, [gone, inNamespace]);
});

for (const [policy, finalizer] of [
  ["Foreground", "foregroundDeletion"],
  ["Orphan", "orphan"],
] as const) {
  test(`an owner deleted with ${policy} waits for a resource whose list has not come yet, and keeps others' finalizers`, async (t) => {
    let away = true;
    const world = await started(t, ({ client }) => {
      client.put(replicaSets, { ...owner, metadata: { ...owner.metadata, finalizers: ["example.com/x"] } });
    });
    const { client, clock } = world;
    const finalizers = () => client.objects(replicaSets)[0]?.metadata.finalizers;
    client.react("list", "secrets", () => {
      if (away) throw serviceUnavailable("starting");
      return undefined;
    });
    client.rawAnswers.set("/api/v1", {
      resources: ["Pod", "ConfigMap", "Secret"].map((kind) => ({
        name: `${kind.toLowerCase()}s`,
        kind,
        namespaced: true,
        verbs,
      })),
    });
    await clock.advance(31_000);
    await client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: policy });
    await settle(60);
    await clock.advance(6_000);
    assert.deepEqual(finalizers(), ["example.com/x", finalizer]);
    away = false;
    for (let i = 0; i < 6; i++) {
      await clock.advance(10_000);
      await settle(60);
    }
    assert.deepEqual(finalizers(), ["example.com/x"]);
  });
}

test("the owners of two groups that cannot be discovered for a while are watched on", async (t) => {
  const world = await started(t, ({ client }) => {
    const groups = ["aaa.example.com", "apps"].map((name) => {
      const version = { groupVersion: `${name}/v1`, version: "v1" };
      return { name, versions: [version], preferredVersion: version };
    });
    client.rawAnswers.set("/apis", { groups });
    client.rawAnswers.set("/apis/aaa.example.com/v1", { resources: [] });
    client.put(replicaSets, owner);
    client.put(pods, aPod({ name: "a", owner }));
  });
  const raw = world.client.raw.bind(world.client);
  world.client.raw = async (method, path) => {
    if (path.startsWith("/apis/a")) throw serviceUnavailable("away");
    return await raw(method, path);
  };
  await world.clock.advance(31_000);
  await settle(60);
  assert.deepEqual(names(world), ["a"]);
  await world.client.delete(replicaSets, { namespace: "default", name: "web" }, { propagationPolicy: "Background" });
  await world.clock.advance(5_000);
  await settle(60);
  assert.deepEqual(names(world), []);
});
