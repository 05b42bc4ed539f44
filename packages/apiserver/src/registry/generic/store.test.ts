import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlreadyExists, isConflict, isInvalid, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { conflict, plainError, requestEntityTooLarge, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { DeleteOptions, ManagedFieldsEntry } from "@coxswain/apimachinery/objects/meta/types";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Storage } from "../../storage/storage.ts";
import type { RegistryStore } from "./resource.ts";
import { newRegistryStore } from "./store.ts";
import { aStore, type ConfigMap, configMap, ctx, definitionOf, merge, now, present, storageLike } from "./testing.ts";

test("create fills the system fields and takes none from the client", async (t) => {
  const store = await aStore(t);
  const entry = await store.create(
    ctx(),
    configMap({
      ...{ name: "a", generateName: "b-", uid: "mine", creationTimestamp: "2001-01-01T00:00:00Z" },
      ...{ deletionTimestamp: "2001-01-01T00:00:00Z", deletionGracePeriodSeconds: 5 },
    }),
    {},
  );
  const { name, uid, creationTimestamp, deletionTimestamp, namespace, resourceVersion, ...others } = entry.object().metadata;
  assert.deepEqual([name, others.deletionGracePeriodSeconds], ["a", undefined]);
  assert.match(uid ?? "", /^[0-9a-f-]{36}$/);
  assert.deepEqual([creationTimestamp, deletionTimestamp, namespace], ["2026-01-02T03:04:05Z", undefined, "web"]);
  assert.equal(resourceVersion, String(entry.revision));
});

test("create reports all errors at once, in upstream's words", async (t) => {
  const store = await aStore(t, { validate: () => [{ type: "FieldValueRequired", field: "data", detail: "" }] });
  await assert.rejects(store.create(ctx(), configMap({ name: "Bad_Name" }), {}), (err) => {
    assert.ok(err instanceof StatusError && isInvalid(err));
    assert.match(
      err.message,
      /^ConfigMap "Bad_Name" is invalid: \[metadata\.name: Invalid value: "Bad_Name": .*, data: Required value\]$/,
    );
    assert.deepEqual(
      err.status.details?.causes?.map((cause) => cause.field),
      ["metadata.name", "data"],
    );
    return true;
  });
  await assert.rejects(
    store.create(ctx(), configMap({ name: "a", namespace: "other" }), {}),
    /does not match the namespace sent on the request/,
  );
  await assert.rejects(
    (await aStore(t)).create(ctx(), configMap({ name: "a", resourceVersion: "1" }), {}),
    /resourceVersion should not be set on objects to be created/,
  );
});

test("writes that are accepted issue their strategy's warnings, refused ones none", async (t) => {
  let isValid = false;
  const check = () => (isValid ? [] : [{ type: "FieldValueRequired" as const, field: "data", detail: "" }]);
  const store = await aStore(t, {
    ...{ validate: check, validateUpdate: check },
    ...{ warningsOnCreate: () => ["new"], warningsOnUpdate: () => ["changed"] },
  });
  const warned: string[] = [];
  const warning = ctx({ warn: (text) => void warned.push(text) });
  const create = () => store.create(warning, configMap({ name: "a" }), {});
  const update = () => store.update(warning, "a", merge({ n: "1" }), {});
  await assert.rejects(create(), isInvalid);
  isValid = true;
  await create();
  isValid = false;
  await assert.rejects(update(), isInvalid);
  assert.deepEqual(warned, ["new"]);
  isValid = true;
  await update();
  assert.deepEqual(warned, ["new", "changed"]);
});

test("each finalizer is validated, on create and on update", async (t) => {
  const store = await aStore(t);
  const finalizers = ["example.com/x", "odd"];
  const text =
    /metadata\.finalizers\[1\]: Invalid value: "odd": name is neither a standard finalizer name nor is it fully qualified/;
  await assert.rejects(store.create(ctx(), configMap({ name: "a", finalizers }), {}), text);
  await store.create(ctx(), configMap({ name: "a" }), {});
  await assert.rejects(store.update(ctx(), "a", merge({}, { finalizers }), {}), text);
});

test("a generated name that is taken is made anew, a given one is AlreadyExists", async (t) => {
  const store = await aStore(t);
  const first = await store.create(ctx(), configMap({ generateName: "job-" }), {});
  assert.match(first.object().metadata.name ?? "", /^job-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  await store.create(ctx(), configMap({ name: "a" }), {});
  await assert.rejects(
    store.create(ctx(), configMap({ name: "a" }), {}),
    (err) => isAlreadyExists(err) && /^configmaps "a" already exists$/.test((err as Error).message),
  );
  await store.update(ctx(), "a", merge({}, { finalizers: ["example.com/hold"] }), {});
  await store.delete(ctx(), "a", {});
  await assert.rejects(
    store.create(ctx(), configMap({ name: "a" }), {}),
    /^StatusError: object is being deleted: configmaps "a" already exists$/,
  );
});

test("allocations of beginCreate are reverted when the write fails", async (t) => {
  const log: string[] = [];
  const store = await aStore(t, {
    beginCreate: async () => ({ commit: () => void log.push("commit"), revert: () => void log.push("revert") }),
  });
  await store.create(ctx(), configMap({ name: "a" }), {});
  await assert.rejects(store.create(ctx(), configMap({ name: "a" }), {}), isAlreadyExists);
  await assert.rejects(
    store.create(ctx(), configMap({ name: "b" }), {
      validateAdmission: async () => {
        throw new Error("no");
      },
    }),
    /no/,
  );
  assert.deepEqual(log, ["commit", "revert", "revert"]);
  assert.equal(await present(store, "b"), false, "admission comes before the write");
});

test("allocations of beginUpdate are reverted when the update completes a deletion and the removal fails", async (t) => {
  const log: string[] = [];
  const store = await aStore(t, {
    beginUpdate: async () => ({ commit: () => void log.push("commit"), revert: () => void log.push("revert") }),
  });
  const { definition, storage } = store;
  const failing = storageLike(storage, { delete: () => Promise.reject(new Error("etcd is away")) });
  await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  const whole = newRegistryStore({ turns: new Turns(), definition, storage });
  await whole.delete(ctx(), "a", {});
  const release = (store: RegistryStore) => store.update(ctx(), "a", merge({}, { finalizers: [] }), {});
  await assert.rejects(release(newRegistryStore({ turns: new Turns(), definition, storage: failing })), /etcd is away/);
  await release(whole);
  assert.deepEqual(log, ["revert", "commit"]);
});

test("a write waits for the commit of its allocations, which are not reverted when that fails", async (t) => {
  const log: string[] = [];
  const begin = async () => ({
    async commit() {
      throw new Error("later");
    },
    revert: () => void log.push("revert"),
  });
  const store = await aStore(t, { beginCreate: begin, beginUpdate: begin });
  await assert.rejects(store.create(ctx(), configMap({ name: "a" }), {}), /later/);
  await assert.rejects(store.update(ctx(), "a", merge({ changed: "1" }), {}), /later/);
  assert.deepEqual([log, await present(store, "a")], [[], true]);
});

test("an update with an old resourceVersion is a Conflict with the usual text", async (t) => {
  const store = await aStore(t);
  const created = await store.create(ctx(), configMap({ name: "a" }), {});
  await store.update(ctx(), "a", merge({ n: "1" }), {});
  await assert.rejects(
    store.update(ctx(), "a", () => ({ ...created.object() }), {}),
    (err) =>
      isConflict(err) &&
      (err as Error).message ===
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
  );
});

test("an update without resourceVersion overwrites, unless the resource forbids it", async (t) => {
  const free = await aStore(t);
  await free.create(ctx(), configMap({ name: "a" }), {});
  const { entry, created } = await free.update(ctx(), "a", () => configMap({ name: "a" }, { n: "1" }), {});
  assert.deepEqual([created, (entry.object() as ConfigMap).data], [false, { n: "1" }]);

  const strict = await aStore(t, { allowUnconditionalUpdate: false });
  await strict.create(ctx(), configMap({ name: "a" }), {});
  await assert.rejects(
    strict.update(ctx(), "a", () => configMap({ name: "a" }), {}),
    /configmaps "a" is invalid: metadata\.resourceVersion: Invalid value: 0x0: must be specified for an update/,
  );
  const ofSubresource = strict.withStrategy({ namespaceScoped: true });
  await assert.rejects(
    ofSubresource.update(ctx(), "a", () => configMap({ name: "a" }), {}),
    /must be specified for an update/,
  );
});

test("an update keeps what users cannot change", async (t) => {
  const store = await aStore(t);
  const { uid, creationTimestamp } = (await store.create(ctx(), configMap({ name: "a" }), {})).object().metadata;
  const { entry } = await store.update(
    ctx({ now: () => now + 5000 }),
    "a",
    () => configMap({ name: "a", creationTimestamp: null }, { n: "1" }),
    {},
  );
  assert.deepEqual([entry.object().metadata.uid, entry.object().metadata.creationTimestamp], [uid, creationTimestamp]);
  await assert.rejects(
    store.update(ctx(), "a", merge({}, { uid: "other" }), {}),
    /metadata\.uid: Invalid value: "other": field is immutable/,
  );
});

test("an update sets no generation where the resource counts none, and cannot end a grace period", async (t) => {
  const store = await aStore(t, { gracePeriod: () => 30 });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const { entry } = await store.update(ctx(), "a", merge({ n: "1" }, { generation: 7 }), {});
  assert.equal(entry.object().metadata.generation, undefined);
  await store.delete(ctx(), "a", {});
  await assert.rejects(
    store.update(ctx(), "a", merge({ n: "2" }, { deletionGracePeriodSeconds: 0 }), {}),
    /metadata\.deletionGracePeriodSeconds: Invalid value: 0: field is immutable/,
  );
});

test("an update neither ends nor moves a deletion, and sets no generation and no grace period", async (t) => {
  const store = await aStore(t, {
    gracePeriod: () => 30,
    prepareForCreate: ({ metadata }) => {
      metadata.generation = 3;
    },
  });
  await store.create(ctx(), configMap({ name: "a" }), {});
  await store.delete(ctx(), "a", {});
  const kept = { deletionTimestamp: "2026-01-02T03:04:35Z", deletionGracePeriodSeconds: 30, generation: 4 };
  for (const asked of [{}, { deletionTimestamp: "2027-01-01T00:00:00Z", generation: 9 }]) {
    const { entry } = await store.update(ctx(), "a", () => configMap({ name: "a", ...asked }, { n: JSON.stringify(asked) }), {});
    assert.partialDeepStrictEqual(entry.object().metadata, kept);
  }
});

test("a strategy that restores the stored metadata loses no managed fields, and the stored object stays as it was", async (t) => {
  const store = await aStore(t, {
    prepareForUpdate: (next, current) => {
      next.metadata = current.metadata;
    },
  });
  const before = (await store.create(ctx(), configMap({ name: "a" }), {})).object();
  const managedFields = [{ manager: "m", operation: "Update", apiVersion: "v1" }] as const;
  const change = merge({ n: "1" }, { labels: { lost: "1" }, managedFields: [...managedFields] });
  const after = (await store.update(ctx(), "a", change, {})).entry.object().metadata;
  assert.deepEqual([after.labels, after.managedFields?.map(({ manager }) => manager)], [undefined, ["m"]]);
  assert.equal(before.metadata.managedFields, undefined);
});

test("an update that creates takes no version from the client", async (t) => {
  const store = await aStore(t, { allowCreateOnUpdate: true });
  const { created } = await store.update(ctx(), "a", () => configMap({ name: "a", resourceVersion: "5" }), {});
  assert.equal(created, true);
});

test("an update of a subresource creates nothing, whatever its own strategy says", async (t) => {
  const store = (await aStore(t)).withStrategy({ namespaceScoped: true, allowCreateOnUpdate: true });
  await assert.rejects(
    store.update(ctx(), "a", () => configMap({ name: "a" }), {}),
    isNotFound,
  );
});

test("an update of a subresource that creates the object prepares it like the resource, and refuses an invalid resourceVersion", async (t) => {
  const prepareForCreate = (object: object) => void Object.assign(object, { data: { prepared: "1" } });
  const store = (await aStore(t, { allowCreateOnUpdate: true, prepareForCreate })).withStrategy({ namespaceScoped: true });
  const { entry } = await store.update(ctx(), "a", () => configMap({ name: "a" }), {});
  assert.deepEqual((entry.object() as ConfigMap).data, { prepared: "1" });
  await assert.rejects(
    store.update(ctx(), "b", () => configMap({ name: "b", resourceVersion: "new" }), {}),
    /parsing "new": invalid syntax/,
  );
  assert.equal(await present(store, "b"), false);
});

test("an update that changes nothing writes nothing", async (t) => {
  const store = await aStore(t);
  const created = await store.create(ctx(), configMap({ name: "a" }, { n: "1" }), {});
  const { entry } = await store.update(ctx(), "a", merge({ n: "1" }), {});
  assert.equal(entry.revision, created.revision);
});

test("an update of what is absent creates it only where that is allowed", async (t) => {
  const store = await aStore(t);
  await assert.rejects(
    store.update(ctx(), "a", () => configMap({ name: "a" }), {}),
    isNotFound,
  );
  const applied = await store.update(ctx(), "a", () => configMap({ name: "a" }), { forceAllowCreate: true });
  assert.equal(applied.created, true);
  const lenient = await aStore(t, { allowCreateOnUpdate: true });
  assert.equal((await lenient.update(ctx(), "b", () => configMap({ name: "b" }), {})).created, true);
});

test("delete removes an object without finalizers and grace period at once", async (t) => {
  let after = 0;
  const store = await aStore(t, { afterDelete: () => void after++ });
  const { uid } = (await store.create(ctx(), configMap({ name: "a" }), {})).object().metadata;
  await assert.rejects(
    store.delete(ctx(), "a", { preconditions: { uid: "other" } }),
    /Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition \(other\)/,
  );
  const { entry, deleted } = await store.delete(ctx(), "a", { preconditions: { uid: uid as string } });
  assert.deepEqual([deleted, entry.object().metadata.uid, after], [true, uid, 1]);
  await assert.rejects(store.delete(ctx(), "a", {}), isNotFound);
});

for (const { name, options, finalizers } of [
  { name: "propagationPolicy Orphan", options: { propagationPolicy: "Orphan" }, finalizers: ["orphan"] },
  { name: "orphanDependents", options: { orphanDependents: true }, finalizers: ["orphan"] },
  { name: "propagationPolicy Foreground", options: { propagationPolicy: "Foreground" }, finalizers: ["foregroundDeletion"] },
] as { name: string; options: DeleteOptions; finalizers: string[] }[]) {
  test(`${name} keeps the object until the garbage collector is done`, async (t) => {
    const store = await aStore(t);
    await store.create(ctx(), configMap({ name: "a" }), {});
    const { entry, deleted } = await store.delete(ctx(), "a", options);
    assert.equal(deleted, false);
    assert.deepEqual(entry.object().metadata.finalizers, finalizers);
    assert.equal(entry.object().metadata.deletionTimestamp, "2026-01-02T03:04:05Z");
    assert.equal(entry.object().metadata.deletionGracePeriodSeconds, 0);
    await store.update(ctx(), "a", merge({}, { finalizers: [] }), {});
    assert.equal(await present(store, "a"), false);
  });
}

test("finalizers hold an object; its deletionTimestamp stays; the last one to leave removes it", async (t) => {
  const store = await aStore(t);
  await store.create(ctx(), configMap({ name: "a", generation: 1, finalizers: ["example.com/x", "example.com/y"] }), {});
  const first = await store.delete(ctx(), "a", {});
  const second = await store.delete(ctx({ now: () => now + 60_000 }), "a", {});
  assert.deepEqual([first.deleted, second.deleted], [false, false]);
  assert.equal(second.entry.object().metadata.deletionTimestamp, first.entry.object().metadata.deletionTimestamp);
  await assert.rejects(
    store.update(ctx(), "a", merge({}, { finalizers: ["example.com/x", "example.com/y", "example.com/z"] }), {}),
    /no new finalizers can be added if the object is being deleted/,
  );
  await store.update(ctx(), "a", merge({}, { finalizers: ["example.com/y"] }), {});
  assert.equal(await present(store, "a"), true);
  const { entry } = await store.update(ctx(), "a", merge({ last: "1" }, { finalizers: [] }), {});
  assert.deepEqual((entry.object() as ConfigMap).data, { last: "1" });
  assert.equal(await present(store, "a"), false);
});

test("graceful deletion marks first, may be shortened, and grace 0 removes", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const first = await store.delete(ctx(), "a", {});
  assert.equal(first.deleted, false);
  assert.partialDeepStrictEqual(first.entry.object().metadata, {
    deletionTimestamp: "2026-01-02T03:04:35Z",
    deletionGracePeriodSeconds: 30,
  });
  const longer = await store.delete(ctx(), "a", { gracePeriodSeconds: 60 });
  assert.deepEqual([longer.deleted, longer.entry.revision], [false, first.entry.revision]);
  const shorter = await store.delete(ctx(), "a", { gracePeriodSeconds: 10 });
  assert.equal(shorter.entry.object().metadata.deletionTimestamp, "2026-01-02T03:04:15Z");
  const now_ = await store.delete(ctx(), "a", { gracePeriodSeconds: 0 });
  assert.equal(now_.deleted, true);
  assert.equal(await present(store, "a"), false);
});

test("a dry-run deletes nothing, creates nothing and updates nothing", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  const dry = ctx({ dryRun: true });
  await store.create(dry, configMap({ name: "a" }), {});
  assert.equal(await present(store, "a"), false);
  const created = await store.create(ctx(), configMap({ name: "a" }), {});
  await store.update(dry, "a", merge({ n: "1" }), {});
  await store.delete(dry, "a", {});
  await store.delete(dry, "a", { gracePeriodSeconds: 0 });
  await store.deleteCollection(dry, {}, {});
  assert.equal((await store.get("web", "a")).revision, created.revision);
  let told = 0;
  const telling = store.withStrategy({ namespaceScoped: true, afterDelete: () => void told++ });
  assert.equal((await telling.delete(dry, "a", {})).deleted, true);
  assert.equal((await telling.delete(ctx(), "a", { dryRun: ["All"] })).deleted, true);
  assert.equal(told, 0, "no deletion event is sent for a dry run");
  assert.equal((await store.get("web", "a")).revision, created.revision);
});

test("a deletion of an object that changes after it was decided is decided anew", async (t) => {
  let decisions = 0;
  const store = await aStore(t);
  await store.create(ctx(), configMap({ name: "a" }), {});
  const { deleted, entry } = await store.delete(ctx(), "a", {}, async () => {
    // Adds a finalizer between the decision and the removal.
    if (++decisions === 1) await store.update(ctx(), "a", merge({}, { finalizers: ["example.com/wait"] }), {});
  });
  assert.deepEqual([deleted, decisions], [false, 2]);
  assert.deepEqual(entry.object().metadata.finalizers, ["example.com/wait"]);
  assert.equal(await present(store, "a"), true);
});

test("a deletion of an object that has a grace period by the time of its removal waits for that", async (t) => {
  const store = await aStore(t, { gracePeriod: (current) => ((current as ConfigMap).data?.["slow"] === "yes" ? 30 : undefined) });
  await store.create(ctx(), configMap({ name: "a" }), {});
  let decisions = 0;
  const { deleted, entry } = await store.delete(ctx(), "a", {}, async () => {
    if (++decisions === 1) await store.update(ctx(), "a", merge({ slow: "yes" }), {});
  });
  assert.deepEqual([deleted, decisions, entry.object().metadata.deletionGracePeriodSeconds], [false, 2, 30]);
});

test("a deletion without grace that is held to a version can be tried, and leaves the caller's options as they are", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  const { resourceVersion = "" } = (await store.create(ctx(), configMap({ name: "a" }), {})).object().metadata;
  const options: DeleteOptions = { gracePeriodSeconds: 0, preconditions: { resourceVersion } };
  assert.equal((await store.delete(ctx({ dryRun: true }), "a", options)).deleted, true);
  assert.equal(await present(store, "a"), true);
  assert.equal((await store.delete(ctx(), "a", options)).deleted, true);
  assert.deepEqual(options, { gracePeriodSeconds: 0, preconditions: { resourceVersion } });
});

test("admission may refuse a deletion", async (t) => {
  const store = await aStore(t);
  await store.create(ctx(), configMap({ name: "a" }), {});
  await assert.rejects(
    store.delete(ctx(), "a", {}, async () => {
      throw new Error("not this one");
    }),
    /not this one/,
  );
  assert.equal(await present(store, "a"), true);
});

test("deletecollection deletes what the selection matches in its namespace", async (t) => {
  const store = await aStore(t);
  for (const name of ["a", "b", "c"]) await store.create(ctx(), configMap({ name }), {});
  await store.create(ctx({ namespace: "db" }), configMap({ name: "a" }), {});
  const { entries } = await store.deleteCollection(ctx(), {}, { fields: FieldSelector.parse("metadata.name!=b") });
  assert.deepEqual(
    entries.map((entry) => entry.key),
    ["web/a", "web/c"],
  );
  const left = await store.list("", {});
  assert.deepEqual(
    left.entries.map((entry) => entry.key),
    ["db/a", "web/b"],
  );
});

test("a deletion of a collection ends with its request: the objects that it has not come to stay", async (t) => {
  const store = await aStore(t);
  for (const name of ["a", "b", "c"]) await store.create(ctx(), configMap({ name }), {});
  const request = new AbortController();
  await store.deleteCollection(ctx(), {}, { signal: request.signal }, async () => request.abort());
  const left = await store.list("web", {});
  assert.deepEqual(
    left.entries.map(({ key }) => key),
    ["web/b", "web/c"],
  );
});

for (const { deleteCollectionWorkers, want } of [
  { deleteCollectionWorkers: 0, want: 1 },
  { deleteCollectionWorkers: 1, want: 1 },
  { deleteCollectionWorkers: 3, want: 3 },
]) {
  test(`deletecollection works with --delete-collection-workers=${deleteCollectionWorkers}`, async (t) => {
    let active = 0;
    let most = 0;
    const store = await aStore(t, {}, { deleteCollectionWorkers });
    for (let i = 0; i < 8; i++) await store.create(ctx(), configMap({ name: `a${i}` }), {});
    const atWork = async (): Promise<void> => {
      most = Math.max(most, ++active);
      await new Promise(setImmediate);
      active--;
    };
    const { entries } = await store.deleteCollection(ctx(), {}, {}, atWork);
    assert.deepEqual([entries.length, most], [8, want]);
    assert.equal((await store.list("web", {})).entries.length, 0);
  });
}

test("a list by metadata.name reads one object", async (t) => {
  const store = await aStore(t);
  for (const name of ["a", "b"]) await store.create(ctx(), configMap({ name }), {});
  const { entries } = await store.list("web", { fields: FieldSelector.parse("metadata.name=b") });
  assert.deepEqual(
    entries.map((entry) => entry.key),
    ["web/b"],
  );
  assert.deepEqual((await store.list("", { fields: FieldSelector.parse("metadata.name=b") })).entries.length, 1);
});

for (const name of ["..", ".", "a/b", "a%2Fb"]) {
  test(`the name ${name} is refused before it becomes a key`, async (t) => {
    const store = await aStore(t);
    await assert.rejects(store.get("web", name), /Name parameter invalid/);
  });
}

const entries: ManagedFieldsEntry[] = [
  { manager: "m", operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: {} },
];

/** A storage that refuses objects with managed fields, and those whose data say so. */
const refusing = (inner: Storage, refusal: Error): Storage => {
  const checked = <T extends object>(object: T): T => {
    const { metadata, data } = object as unknown as ConfigMap;
    if (metadata.managedFields !== undefined || data?.["refused"] !== undefined) throw refusal;
    return object;
  };
  return storageLike(inner, {
    create: async (key, object, options) => inner.create(key, checked(object), options),
    guaranteedUpdate: (key, change, options) =>
      inner.guaranteedUpdate(key, async (stored) => checked(await change(stored)), options),
  });
};

const tooLarge = requestEntityTooLarge("etcdserver: request is too large");
for (const { name, refusal, data, untrackedWhenTooLarge, attempts, stored } of [
  { name: "too large is written once more without them", refusal: tooLarge, attempts: 2, stored: true },
  { name: "too large without them, too, is refused", refusal: tooLarge, data: { refused: "" }, attempts: 2, stored: false },
  { name: "too large is refused unless requested", refusal: tooLarge, untrackedWhenTooLarge: false, attempts: 1, stored: false },
  { name: "changed meanwhile is refused", refusal: conflict(definitionOf(), "a", "changed"), attempts: 1, stored: false },
  { name: "refused for another reason stays refused", refusal: plainError("no"), attempts: 1, stored: false },
] as const) {
  test(`an object with managed fields that is ${name}, by create and update`, async (t) => {
    const log: string[] = [];
    const begin = async () => ({ commit: () => void log.push("commit"), revert: () => void log.push("revert") });
    const { definition, storage } = await aStore(t, { beginCreate: begin, beginUpdate: begin });
    const store = newRegistryStore({ turns: new Turns(), definition, storage: refusing(storage, refusal) });
    const validateAdmission = async (object: object) =>
      void log.push(Object.keys((object as ConfigMap).metadata).includes("managedFields") ? "tracked" : "untracked");
    const request = { untrackedWhenTooLarge: untrackedWhenTooLarge ?? true, validateAdmission };
    const metadata = { managedFields: entries };
    await storage.create("web/b", configMap({ name: "b", namespace: "web" }), {});
    for (const [key, write] of [
      ["a", () => store.create(ctx(), configMap({ name: "a", ...metadata }, data), request)],
      ["b", () => store.update(ctx(), "b", merge({ changed: "", ...data }, metadata), request).then(({ entry }) => entry)],
    ] as const) {
      log.length = 0;
      if (stored) assert.equal((await write()).object().metadata.managedFields, undefined, key);
      else await assert.rejects(write(), refusal, key);
      const refused = ["tracked", "revert"];
      assert.deepEqual(log, attempts === 1 ? refused : [...refused, "untracked", stored ? "commit" : "revert"], key);
    }
    const { data: kept = {} } = (await store.get("web", "b")).object() as ConfigMap;
    assert.equal("changed" in kept, stored);
    assert.equal(await present(store, "a"), stored);
  });
}

test("a resource without a strategy has no store", () => {
  const { strategy: _none, ...definition } = definitionOf();
  const options = { definition, storage: {} as Storage, turns: new Turns() };
  assert.throws(() => newRegistryStore(options), { message: "configmaps has no strategy and cannot be stored" });
});
