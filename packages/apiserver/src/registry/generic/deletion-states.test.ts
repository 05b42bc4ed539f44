/** Deletion of objects that are already being deleted, and of objects with finalizers from earlier requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeleteOptions } from "@coxswain/apimachinery/objects/meta/types";
import { aStore, configMap, ctx, now, present } from "./testing.ts";

test("a grace period is shortened again and again, never lengthened, always from its begin, and is one generation", async (t) => {
  const store = await aStore(t, {
    gracePeriod: (_current, requested) => requested ?? 30,
    prepareForCreate: ({ metadata }) => {
      metadata.generation = 1;
    },
  });
  await store.create(ctx(), configMap({ name: "a" }), {});
  for (const { grace, at, want } of [
    { grace: 30, at: 0, want: ["2026-01-02T03:04:35Z", 30, 2] },
    { grace: 10, at: 3, want: ["2026-01-02T03:04:15Z", 10, 2] },
    { grace: 10, at: 4, want: ["2026-01-02T03:04:15Z", 10, 2] },
    { grace: 20, at: 5, want: ["2026-01-02T03:04:15Z", 10, 2] },
    { grace: 5, at: 6, want: ["2026-01-02T03:04:10Z", 5, 2] },
  ]) {
    const { entry } = await store.delete(ctx({ now: () => now + at * 1000 }), "a", { gracePeriodSeconds: grace });
    const { deletionTimestamp, deletionGracePeriodSeconds, generation } = entry.object().metadata;
    assert.deepEqual([deletionTimestamp, deletionGracePeriodSeconds, generation], want, `${grace} s`);
  }
});

test("an object with a finalizer stays after its grace period, with the period 0, until the finalizer is removed", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  await store.delete(ctx(), "a", {});
  const { deleted, entry } = await store.delete(ctx({ now: () => now + 1000 }), "a", { gracePeriodSeconds: 0 });
  assert.deepEqual([deleted, entry.object().metadata.deletionGracePeriodSeconds], [false, 0]);
  assert.equal((await store.delete(ctx(), "a", { gracePeriodSeconds: 0 })).deleted, false);
  assert.equal(await present(store, "a"), true);
});

for (const { name, finalizers, options, want } of [
  {
    name: "Orphan takes the place of Foreground",
    finalizers: ["foregroundDeletion"],
    options: { propagationPolicy: "Orphan" },
    want: ["orphan"],
  },
  {
    name: "Foreground takes the place of orphan",
    finalizers: ["orphan"],
    options: { propagationPolicy: "Foreground" },
    want: ["foregroundDeletion"],
  },
  {
    name: "Background takes orphan away and leaves the others",
    finalizers: ["orphan", "example.com/x"],
    options: { propagationPolicy: "Background" },
    want: ["example.com/x"],
  },
  {
    name: "orphanDependents false takes orphan away and leaves the others",
    finalizers: ["example.com/x", "orphan"],
    options: { orphanDependents: false },
    want: ["example.com/x"],
  },
  { name: "nothing said keeps orphan", finalizers: ["orphan"], options: {}, want: ["orphan"] },
  {
    name: "nothing said keeps Foreground beside the others",
    finalizers: ["example.com/x", "foregroundDeletion"],
    options: {},
    want: ["example.com/x", "foregroundDeletion"],
  },
] as { name: string; finalizers: string[]; options: DeleteOptions; want: string[] }[]) {
  test(`finalizers of a deletion: ${name}`, async (t) => {
    const store = await aStore(t);
    await store.create(ctx(), configMap({ name: "a", finalizers }), {});
    for (const again of [false, true]) {
      const { deleted, entry } = await store.delete(ctx(), "a", options);
      assert.deepEqual([deleted, entry.object().metadata.finalizers], [false, want], again ? "again" : "first");
    }
  });
}

test("a deletion that takes the only finalizer away, orphan, deletes the object", async (t) => {
  const store = await aStore(t);
  await store.create(ctx(), configMap({ name: "a", finalizers: ["orphan"] }), {});
  const { deleted } = await store.delete(ctx(), "a", { propagationPolicy: "Background" });
  assert.deepEqual([deleted, await present(store, "a")], [true, false]);
});

test("a create drops the metadata of the server that a client sends", async (t) => {
  const store = await aStore(t);
  const sent = { name: "a", clusterName: "c", selfLink: "/x", deletionGracePeriodSeconds: 5, uid: "u" };
  const { metadata } = (await store.create(ctx(), configMap(sent), {})).object();
  assert.deepEqual(
    [metadata.clusterName, metadata.selfLink, metadata.deletionGracePeriodSeconds],
    [undefined, undefined, undefined],
  );
  assert.notEqual(metadata.uid, "u");
});

test("without garbage collection, and where a kind does not support it, a policy adds no finalizer", async (t) => {
  for (const store of [
    await aStore(t, {}, { garbageCollection: false }),
    await aStore(t, { defaultGarbageCollection: "Unsupported" }),
  ]) {
    await store.create(ctx(), configMap({ name: "a" }), {});
    assert.equal((await store.delete(ctx(), "a", { propagationPolicy: "Foreground" })).deleted, true);
  }
  const orphaning = await aStore(t, { defaultGarbageCollection: () => "Orphan" });
  await orphaning.create(ctx(), configMap({ name: "a" }), {});
  assert.deepEqual((await orphaning.delete(ctx(), "a", {})).entry.object().metadata.finalizers, ["orphan"]);
});

test("a deletion that a kind begins itself keeps its marks and gets the finalizer of the policy, too", async (t) => {
  const store = await aStore(t, {
    beginDeletion: (current) => ({ ...current, metadata: { ...current.metadata, deletionTimestamp: "2026-01-02T03:04:05Z" } }),
  });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const { deleted, entry } = await store.delete(ctx(), "a", { propagationPolicy: "Foreground" });
  const { deletionTimestamp, finalizers } = entry.object().metadata;
  assert.deepEqual([deleted, deletionTimestamp, finalizers], [false, "2026-01-02T03:04:05Z", ["foregroundDeletion"]]);
  assert.deepEqual((await store.get("web", "a")).object().metadata.finalizers, ["foregroundDeletion"]);
});

test("a dry run of a deletion that finalizers hold answers the marks and stores none", async (t) => {
  const store = await aStore(t);
  const { revision } = await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  for (const options of [{}, { dryRun: ["All"] }]) {
    const { deleted, entry } = await store.delete(ctx({ dryRun: options.dryRun === undefined }), "a", options);
    assert.deepEqual([deleted, entry.object().metadata.deletionTimestamp], [false, "2026-01-02T03:04:05Z"]);
  }
  assert.equal((await store.get("web", "a")).revision, revision);
});
