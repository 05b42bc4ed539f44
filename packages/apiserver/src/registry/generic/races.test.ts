/** Concurrent writers, failures in the middle of a write, and cleanup after an attempt that lost a race. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { RegistryStore } from "./resource.ts";
import { newRegistryStore } from "./store.ts";
import type { Strategy } from "./strategy.ts";
import { aStore, type ConfigMap, configMap, ctx, merge, now, present, storageLike } from "./testing.ts";

const dataOf = (object: KubeObject) => (object as ConfigMap).data;

/** Records the allocations of a strategy: taken, kept (commit) and given back (revert). */
function allocations() {
  const log: string[] = [];
  const begin = async () => {
    log.push("take");
    return { commit: () => void log.push("keep"), revert: () => void log.push("give back") };
  };
  return { log, begin };
}

/** @returns a change function that runs a competing write before its first attempt is stored */
function interrupted(by: () => Promise<unknown>, change = merge({ mine: "1" })) {
  const seen: (KubeObject | undefined)[] = [];
  return {
    seen,
    async change(current: KubeObject | undefined): Promise<KubeObject> {
      seen.push(current);
      if (seen.length === 1) await by();
      return change(current);
    },
  };
}

async function recreate(store: RegistryStore): Promise<void> {
  await store.delete(ctx(), "a", {});
  await store.create(ctx(), configMap({ name: "a" }, { second: "1" }), {});
}

test("an update that loses a race is repeated on the current object, with admission and allocations", async (t) => {
  const { log, begin } = allocations();
  const plain = await aStore(t);
  const store = plain.withStrategy({ namespaceScoped: true, beginUpdate: begin });
  await store.create(ctx(), configMap({ name: "a" }, { first: "1" }), {});
  const { seen, change } = interrupted(() => plain.update(ctx(), "a", merge({ other: "1" }), {}));
  const admitted: unknown[] = [];
  const admit = (step: string) => async (next: KubeObject, current: KubeObject | undefined) =>
    void admitted.push([step, dataOf(next), dataOf(current as KubeObject)]);
  const { entry } = await store.update(ctx(), "a", change, {
    mutateAdmission: admit("mutate"),
    validateAdmission: admit("validate"),
  });
  assert.equal(seen.length, 2);
  assert.deepEqual(dataOf(entry.object()), { first: "1", other: "1", mine: "1" });
  assert.deepEqual(log, ["take", "give back", "take", "keep"]);
  assert.deepEqual(admitted.slice(2), [
    ["mutate", { first: "1", other: "1", mine: "1" }, { first: "1", other: "1" }],
    ["validate", { first: "1", other: "1", mine: "1" }, { first: "1", other: "1" }],
  ]);
});

test("an update with a resourceVersion that loses a race is a Conflict and reverts its allocations", async (t) => {
  const { log, begin } = allocations();
  const plain = await aStore(t);
  const store = plain.withStrategy({ namespaceScoped: true, beginUpdate: begin });
  const created = (await store.create(ctx(), configMap({ name: "a" }), {})).object();
  const { change } = interrupted(
    () => plain.update(ctx(), "a", merge({ other: "1" }), {}),
    () => ({ ...created, data: { mine: "1" } }) as KubeObject,
  );
  await assert.rejects(store.update(ctx(), "a", change, {}), isConflict);
  assert.deepEqual(log, ["take", "give back"]);
  assert.deepEqual(dataOf((await store.get("web", "a")).object()), { other: "1" });
});

for (const { name, preconditions } of [
  { name: "uid", preconditions: ({ uid }: KubeObject["metadata"]) => ({ uid: uid as string }) },
  {
    name: "resourceVersion",
    preconditions: ({ resourceVersion }: KubeObject["metadata"]) => ({ resourceVersion: resourceVersion as string }),
  },
]) {
  test(`the ${name} that an update is held to is looked at again after a lost race`, async (t) => {
    const store = await aStore(t);
    const { metadata } = (await store.create(ctx(), configMap({ name: "a" }), {})).object();
    const { change } = interrupted(
      () => recreate(store),
      () => configMap({ name: "a" }, { mine: "1" }),
    );
    await assert.rejects(store.update(ctx(), "a", change, { preconditions: preconditions(metadata) }), isConflict);
    assert.deepEqual(dataOf((await store.get("web", "a")).object()), { second: "1" });
  });
}

test("an update of an object that is deleted meanwhile is NotFound, creates nothing, and reverts its allocations", async (t) => {
  const { log, begin } = allocations();
  const store = await aStore(t, { beginUpdate: begin });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const { change } = interrupted(() => store.delete(ctx(), "a", {}));
  await assert.rejects(store.update(ctx(), "a", change, {}), isNotFound);
  assert.equal(await present(store, "a"), false);
  assert.deepEqual(log, ["take", "give back"]);
});

test("a PUT that was to create becomes an update when another creates first", async (t) => {
  const { log, begin } = allocations();
  const plain = await aStore(t, { allowCreateOnUpdate: true });
  const { storage } = plain;
  const strategy: Strategy = { namespaceScoped: true, allowCreateOnUpdate: true, beginCreate: begin };
  const store = newRegistryStore({ turns: new Turns(), definition: { ...plain.definition, strategy }, storage });
  let uid: string | undefined;
  const { change } = interrupted(
    async () => {
      uid = (await plain.create(ctx(), configMap({ name: "a" }), {})).object().metadata.uid;
    },
    () => configMap({ name: "a" }, { mine: "1" }),
  );
  const { entry, created } = await store.update(ctx(), "a", change, {});
  assert.deepEqual([created, entry.object().metadata.uid, dataOf(entry.object())], [false, uid, { mine: "1" }]);
  assert.deepEqual(log, ["take", "give back"]);
});

test("a PUT that was to update creates when the object is deleted under it", async (t) => {
  const store = await aStore(t, { allowCreateOnUpdate: true });
  const { metadata } = (await store.create(ctx(), configMap({ name: "a" }), {})).object();
  const { change } = interrupted(
    () => store.delete(ctx(), "a", {}),
    () => configMap({ name: "a" }, { mine: "1" }),
  );
  const { entry, created } = await store.update(ctx(), "a", change, {});
  assert.equal(created, true);
  assert.notEqual(entry.object().metadata.uid, metadata.uid);
});

for (const step of ["mutateAdmission", "validateAdmission"] as const) {
  test(`an update that ${step} refuses writes nothing and keeps nothing`, async (t) => {
    const { log, begin } = allocations();
    const store = await aStore(t, { beginUpdate: begin });
    const created = await store.create(ctx(), configMap({ name: "a" }), {});
    const refuse = () => Promise.reject(new Error("no"));
    await assert.rejects(store.update(ctx(), "a", merge({ n: "1" }), { [step]: refuse }), /no/);
    assert.deepEqual(log, step === "mutateAdmission" ? [] : ["take", "give back"]);
    assert.equal((await store.get("web", "a")).revision, created.revision);
  });
}

test("a refused create by PUT reverts the allocations of beginCreate", async (t) => {
  const { log, begin } = allocations();
  const store = await aStore(t, { allowCreateOnUpdate: true, beginCreate: begin });
  const validateAdmission = () => Promise.reject(new Error("no"));
  await assert.rejects(
    store.update(ctx(), "a", () => configMap({ name: "a" }), { validateAdmission }),
    /no/,
  );
  assert.deepEqual([log, await present(store, "a")], [["take", "give back"], false]);
});

test("a PUT to a subresource that creates is prepared as the resource and begins as the subresource, as upstream", async (t) => {
  const { log, begin } = allocations();
  const store = await aStore(t, {
    ...{ allowCreateOnUpdate: true, beginCreate: begin },
    prepareForCreate: ({ metadata }) => Object.assign(metadata, { generation: 1 }),
  });
  const status = store.withStrategy({ namespaceScoped: true });
  const { entry, created } = await status.update(ctx(), "a", () => configMap({ name: "a" }), {});
  assert.deepEqual([created, entry.object().metadata.generation, log], [true, 1, []]);
});

test("the removal that an update has become is decided anew when another writer comes between", async (t) => {
  const gone: unknown[] = [];
  const store = await aStore(t, { afterDelete: (last) => void gone.push(dataOf(last)) });
  await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  await store.delete(ctx(), "a", {});
  const { seen, change } = interrupted(
    () => store.update(ctx(), "a", merge({ other: "1" }), {}),
    merge({ mine: "1" }, { finalizers: [] }),
  );
  const { entry } = await store.update(ctx(), "a", change, {});
  assert.equal(seen.length, 2);
  assert.deepEqual([dataOf(entry.object()), gone], [{ other: "1", mine: "1" }, [{ other: "1", mine: "1" }]]);
  assert.equal(await present(store, "a"), false);
});

test("removing the last finalizer of an object that was just removed succeeds", async (t) => {
  const store = await aStore(t);
  await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  await store.delete(ctx(), "a", {});
  const { change } = interrupted(() => store.storage.delete("web/a", {}), merge({ mine: "1" }, { finalizers: [] }));
  await store.update(ctx(), "a", change, {}).catch((err) => assert.ok(isNotFound(err), String(err)));
  assert.equal(await present(store, "a"), false);
});

test("a dry run that removes the last finalizer leaves the object and sends no deletion event", async (t) => {
  let after = 0;
  const store = await aStore(t, { afterDelete: () => void after++ });
  await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  const marked = (await store.delete(ctx(), "a", {})).entry;
  await store.update(ctx({ dryRun: true }), "a", merge({}, { finalizers: [] }), {});
  assert.deepEqual([(await store.get("web", "a")).revision, after], [marked.revision, 0]);
});

test("an update without finalizers does not end a grace period, nor a deletion that waits for something else", async (t) => {
  const graceful = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  await graceful.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  await graceful.delete(ctx(), "a", {});
  await graceful.update(ctx(), "a", merge({}, { finalizers: [] }), {});
  assert.equal(await present(graceful, "a"), true);

  const waiting = await aStore(t, { completesDeletion: () => false });
  await waiting.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  await waiting.delete(ctx(), "a", {});
  await waiting.update(ctx(), "a", merge({}, { finalizers: [] }), {});
  assert.equal(await present(waiting, "a"), true);
});

test("a deletion held to a uid never takes the object that was made under the same name meanwhile", async (t) => {
  const store = await aStore(t);
  const { uid } = (await store.create(ctx(), configMap({ name: "a" }), {})).object().metadata;
  let looks = 0;
  const admission = async () => {
    if (++looks === 1) await recreate(store);
  };
  await assert.rejects(store.delete(ctx(), "a", { preconditions: { uid: uid as string } }, admission), isConflict);
  assert.equal(await present(store, "a"), true);
});

test("a deletion held to a version is a Conflict when the object changes after it was looked at", async (t) => {
  const store = await aStore(t);
  const { resourceVersion } = (await store.create(ctx(), configMap({ name: "a" }), {})).object().metadata;
  let looks = 0;
  const admission = async () => {
    if (++looks === 1) await store.update(ctx(), "a", merge({ other: "1" }), {});
  };
  const preconditions = { resourceVersion: resourceVersion as string };
  await assert.rejects(store.delete(ctx(), "a", { preconditions }, admission), isConflict);
  assert.equal(await present(store, "a"), true);
});

test("admission decides anew about an object that changed before it was removed", async (t) => {
  const store = await aStore(t);
  await store.create(ctx(), configMap({ name: "a" }), {});
  const admission = async (old: KubeObject) => {
    if (dataOf(old)?.["keep"] !== undefined) throw new Error("kept");
    await store.update(ctx(), "a", merge({ keep: "1" }), {});
  };
  await assert.rejects(store.delete(ctx(), "a", {}, admission), /kept/);
  assert.equal(await present(store, "a"), true);
});

/** A store that runs `between` once, after an object is marked and before it is removed. */
function withBetween(store: RegistryStore, between: () => Promise<unknown>): RegistryStore {
  let first = true;
  const { definition } = store;
  const storage = storageLike(store.storage, {
    async delete(key, options) {
      if (first) await between();
      first = false;
      return store.storage.delete(key, options);
    },
  });
  return newRegistryStore({ turns: new Turns(), definition, storage });
}

test("a finalizer that comes between the mark and the removal holds the object", async (t) => {
  let after = 0;
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 0, afterDelete: () => void after++ });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const held = withBetween(store, () =>
    store.storage.guaranteedUpdate("web/a", (stored) => merge({}, { finalizers: ["example.com/x"] })(stored?.object()), {}),
  );
  const { deleted, entry } = await held.delete(ctx(), "a", {});
  assert.deepEqual([deleted, entry.object().metadata.finalizers, after], [false, ["example.com/x"], 0]);
  assert.equal(await present(store, "a"), true);
});

test("an object marked by this request and removed by another writer counts as deleted; an unmarked one is NotFound", async (t) => {
  const marking = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 0 });
  await marking.create(ctx(), configMap({ name: "a" }), {});
  const { deleted, entry } = await withBetween(marking, () => marking.storage.delete("web/a", {})).delete(ctx(), "a", {});
  assert.deepEqual([deleted, entry.object().metadata.deletionGracePeriodSeconds], [true, 0]);
  const plain = await aStore(t);
  await plain.create(ctx(), configMap({ name: "a" }), {});
  await assert.rejects(withBetween(plain, () => plain.storage.delete("web/a", {})).delete(ctx(), "a", {}), isNotFound);
});

test("a removal that fails after the mark is made up for by the next deletion", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 0 });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const failing = withBetween(store, () => Promise.reject(new Error("etcd is away")));
  await assert.rejects(failing.delete(ctx(), "a", {}), /etcd is away/);
  assert.equal((await store.get("web", "a")).object().metadata.deletionGracePeriodSeconds, 0);
  assert.equal((await store.delete(ctx({ now: () => now + 1000 }), "a", { gracePeriodSeconds: 30 })).deleted, true);
});

test("deletecollection ignores what another client deletes, and reports what may not be deleted", async (t) => {
  const store = await aStore(t);
  for (const name of ["a", "b", "c"]) await store.create(ctx(), configMap({ name }), {});
  const admission = async ({ metadata }: KubeObject) => {
    if (metadata.name === "a") await store.storage.delete("web/a", {});
    if (metadata.name === "b") throw new Error("not b");
  };
  await assert.rejects(store.deleteCollection(ctx(), {}, {}, admission), /not b/);
  const left = () => Promise.all(["a", "b", "c"].map((name) => present(store, name)));
  assert.deepEqual(await left(), [false, true, true], "none is begun after a failure");
  const stop = new AbortController();
  await store.deleteCollection(ctx(), {}, { signal: stop.signal }, async () => stop.abort());
  assert.deepEqual(await left(), [false, false, true], "nor after the client has gone");
});

test("deletecollection over all namespaces deletes each object in its namespace, with separate options", async (t) => {
  const store = await aStore(t);
  for (const namespace of ["db", "web"]) await store.create(ctx({ namespace }), configMap({ name: "a" }), {});
  const { uid } = (await store.get("web", "a")).object().metadata;
  const options = { preconditions: { uid: uid as string }, gracePeriodSeconds: 5 };
  const given = structuredClone(options);
  await assert.rejects(store.deleteCollection(ctx({ namespace: "" }), options, {}), isConflict);
  assert.deepEqual(options, given);
  assert.equal(await store.storage.get("db/a").then((entry) => entry !== undefined), true);
  await store.deleteCollection(ctx({ namespace: "" }), {}, {});
  assert.deepEqual([await store.storage.get("db/a"), await store.storage.get("web/a")], [undefined, undefined]);
});

test("a generated name is tried a few times, and the allocations are reverted once", async (t) => {
  const { log, begin } = allocations();
  const store = await aStore(t, { beginCreate: begin });
  const names = new Set<string>();
  const create = (key: string) => {
    names.add(key);
    return store.storage.create("web/taken", configMap({ name: "taken" }), {});
  };
  await store.storage.create("web/taken", configMap({ name: "taken" }), {});
  const full = newRegistryStore({
    turns: new Turns(),
    definition: store.definition,
    storage: storageLike(store.storage, { create }),
  });
  await assert.rejects(full.create(ctx(), configMap({ generateName: "job-" }), {}), isAlreadyExists);
  assert.ok(names.size > 1, "another name each time");
  assert.deepEqual(log, ["take", "give back"]);
});

test("a name that is taken is AlreadyExists, also when the object that has it cannot be read", async (t) => {
  const { definition, storage } = await aStore(t);
  const get = async (): Promise<never> => {
    throw new Error("etcd is away");
  };
  const store = newRegistryStore({ definition, storage: storageLike(storage, { get }), turns: new Turns() });
  await store.create(ctx(), configMap({ name: "a" }), {});
  await assert.rejects(store.create(ctx(), configMap({ name: "a" }), {}), isAlreadyExists);
});

test("an update that changes nothing itself leaves the stored object to what its strategy makes of a copy", async (t) => {
  const same: boolean[] = [];
  const store = await aStore(t, {
    prepareForUpdate(next, current) {
      same.push(next === current);
      (next as ConfigMap).data = { ...dataOf(next), prepared: "1" };
    },
  });
  const created = await store.create(ctx(), configMap({ name: "a" }), {});
  const { entry } = await store.update(ctx(), "a", (current) => current as KubeObject, {});
  assert.deepEqual([same, dataOf(entry.object()), dataOf(created.object())], [[false], { prepared: "1" }, undefined]);
});

test("an update that changes nothing but the time of a manager is not written", async (t) => {
  const store = await aStore(t);
  const managed = (time: string, data: Record<string, string>) => ({
    ...configMap({ name: "a" }, data),
    metadata: {
      ...configMap({ name: "a" }).metadata,
      managedFields: [{ manager: "m", operation: "Update" as const, apiVersion: "v1", time, fieldsType: "FieldsV1" }],
    },
  });
  const before = await store.create(ctx(), managed("2022-01-01T00:00:00Z", { a: "1" }) as KubeObject, {});
  const put = async (time: string, data: Record<string, string>) => {
    const change = (current: KubeObject | undefined) => {
      const { metadata, ...rest } = managed(time, data);
      return { ...current, ...rest, metadata: { ...current?.metadata, managedFields: metadata.managedFields } } as KubeObject;
    };
    const { entry } = await store.update(ctx(), "a", change, {});
    return [entry.revision > before.revision, entry.object().metadata.managedFields?.[0]?.time];
  };
  assert.deepEqual(await put("2022-01-01T00:00:09Z", { a: "1" }), [false, "2022-01-01T00:00:00Z"]);
  assert.deepEqual(await put("2022-01-01T00:00:09Z", { a: "2" }), [true, "2022-01-01T00:00:09Z"]);
});

test("a deletion held to a version removes what it has marked itself, and admission sees what came between", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 0 });
  const { resourceVersion = "" } = (await store.create(ctx(), configMap({ name: "a" }), {})).object().metadata;
  assert.equal((await store.delete(ctx(), "a", { preconditions: { resourceVersion } })).deleted, true);
  await store.create(ctx(), configMap({ name: "b" }), {});
  const between = withBetween(store, () =>
    store.storage.guaranteedUpdate("web/b", (stored) => merge({ keep: "1" })(stored?.object()), {}),
  );
  const admission = async (old: KubeObject) => {
    if (dataOf(old)?.["keep"] !== undefined) throw new Error("kept");
  };
  await assert.rejects(between.delete(ctx(), "b", {}, admission), /kept/);
  assert.equal(await present(store, "b"), true);
});

test("a deletion held to a version is a Conflict when the object changes between its mark and its removal", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 0 });
  const { resourceVersion = "" } = (await store.create(ctx(), configMap({ name: "a" }), {})).object().metadata;
  const changed = withBetween(store, () =>
    store.storage.guaranteedUpdate("web/a", (stored) => merge({ other: "1" })(stored?.object()), {}),
  );
  await assert.rejects(changed.delete(ctx(), "a", { preconditions: { resourceVersion } }), isConflict);
  assert.equal(await present(store, "a"), true);
});

test("a deletion that finds nothing to write in a stale copy looks at the stored object", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const { entry: stale } = await store.delete(ctx(), "a", {}); // marked: deleting it again changes nothing
  await store.delete(ctx(), "a", { gracePeriodSeconds: 0 });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const storage = storageLike(store.storage, {
    async guaranteedUpdate(key, change, options) {
      const settled = await Promise.resolve(change(stale)).catch((thrown: unknown) => {
        if (options?.settles?.(thrown)) throw thrown;
      });
      assert.equal(settled, undefined);
      return store.storage.guaranteedUpdate(key, change, options);
    },
  });
  await newRegistryStore({ turns: new Turns(), definition: store.definition, storage }).delete(ctx(), "a", {});
  assert.equal((await store.get("web", "a")).object().metadata.deletionGracePeriodSeconds, 30);
});

test("a stale copy is not used a second time: the grace period of the stored object applies", async (t) => {
  const store = await aStore(t, { gracePeriod: (current) => (dataOf(current)?.["slow"] === "yes" ? 30 : undefined) });
  const stale = await store.create(ctx(), configMap({ name: "a" }), {});
  await store.update(ctx(), "a", merge({ slow: "yes" }), {});
  let settled = 0;
  const storage = storageLike(store.storage, {
    async guaranteedUpdate(key, change, options) {
      await Promise.resolve(change(stale)).catch((thrown: unknown) => {
        if (!options?.settles?.(thrown)) return;
        assert.equal(++settled, 1);
        throw thrown;
      });
      return store.storage.guaranteedUpdate(key, change, options);
    },
  });
  const { deleted } = await newRegistryStore({ turns: new Turns(), definition: store.definition, storage }).delete(
    ctx(),
    "a",
    {},
  );
  assert.deepEqual([deleted, await present(store, "a")], [false, true]);
});

test("an update that removes the last finalizer and loses a race does not delete the object when its next attempt fails", async (t) => {
  const store = await aStore(t);
  await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  await store.delete(ctx(), "a", {});
  const changed = withBetween(store, () =>
    store.storage.guaranteedUpdate("web/a", (stored) => merge({ other: "1" })(stored?.object()), {}),
  );
  let attempts = 0;
  const change = (current: KubeObject | undefined) => {
    if (++attempts === 2) throw new Error("refused");
    return merge({}, { finalizers: [] })(current);
  };
  await assert.rejects(changed.update(ctx(), "a", change, {}), /refused/);
  assert.equal(attempts, 2);
  assert.equal(await present(store, "a"), true);
});

test("an update that removes the last finalizer succeeds when a concurrent one has already removed the object", async (t) => {
  let after = 0;
  const store = await aStore(t, { afterDelete: () => void after++ });
  await store.create(ctx(), configMap({ name: "a", finalizers: ["example.com/x"] }), {});
  await store.delete(ctx(), "a", {});
  const release = merge({ last: "1" }, { finalizers: [] });
  const overtaken = withBetween(store, () => store.update(ctx(), "a", release, {}));
  const { entry } = await overtaken.update(ctx(), "a", release, {});
  assert.deepEqual([dataOf(entry.object()), await present(store, "a"), after], [{ last: "1" }, false, 1]);
});

test("a strategy that restores the stored metadata does not give it the managed fields of the write", async (t) => {
  let stored: KubeObject | undefined;
  const store = await aStore(t, {
    prepareForUpdate(next, current) {
      stored = current;
      next.metadata = current.metadata;
    },
  });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const managedFields = [{ manager: "m", operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: {} }] as const;
  const { entry } = await store.update(ctx(), "a", merge({}, { managedFields: [...managedFields] }), {});
  assert.deepEqual(entry.object().metadata.managedFields, managedFields);
  assert.equal(stored?.metadata.managedFields, undefined);
  const cleared = await store.update(ctx(), "a", () => configMap({ name: "a" }, { n: "1" }), {});
  assert.equal(cleared.entry.object().metadata.managedFields, undefined, "nor those of the object to a write that has none");
});

test("a namespace in an object of a kind that has none is dropped", async (t) => {
  const store = await aStore(t, { namespaceScoped: false });
  const entry = await store.create(ctx(), configMap({ name: "a", namespace: "other" }), {});
  assert.equal("namespace" in entry.object().metadata, false);
});

test("an update that creates passes on no version of an object that was there before", async (t) => {
  const versions: unknown[] = [];
  const store = await aStore(t, {
    allowCreateOnUpdate: true,
    beginCreate: async ({ metadata }) => {
      versions.push(metadata.resourceVersion);
      return { commit() {}, revert() {} };
    },
  });
  const validateAdmission = async ({ metadata }: KubeObject) => void versions.push(metadata.resourceVersion);
  await store.update(ctx(), "a", () => configMap({ name: "a", resourceVersion: "7" }), { validateAdmission });
  assert.deepEqual(versions, [undefined, undefined]);
});

test("a dry run of a deletion without grace answers the marked object and removes nothing", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 0 });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const { deleted, entry } = await store.delete(ctx({ dryRun: true }), "a", {});
  const { deletionTimestamp } = entry.object().metadata;
  assert.deepEqual([deleted, deletionTimestamp, await present(store, "a")], [true, "2026-01-02T03:04:05Z", true]);
});

test("marking an object without finalizers writes no empty list of them", async (t) => {
  const store = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  await store.create(ctx(), configMap({ name: "a" }), {});
  const { entry } = await store.delete(ctx(), "a", { propagationPolicy: "Background" });
  assert.equal("finalizers" in entry.object().metadata, false);
});

test("an object whose deletion the strategy refuses is not deleted", async (t) => {
  const store = await aStore(t, {
    checkDeletion(name) {
      if (name === "system") throw new Error("system objects stay");
    },
  });
  for (const name of ["system", "a"]) await store.create(ctx(), configMap({ name }), {});
  await assert.rejects(store.delete(ctx(), "system", { gracePeriodSeconds: 0 }), /system objects stay/);
  assert.deepEqual([(await store.delete(ctx(), "a", {})).deleted, await present(store, "system")], [true, true]);
});

test("each write of an object that expires renews its time: create, update and the mark of a deletion", async (t) => {
  const plain = await aStore(t, { gracePeriod: (_current, requested) => requested ?? 30 });
  const times: unknown[] = [];
  const storage = storageLike(plain.storage, {
    create(key, object, options) {
      times.push(options?.ttlSeconds);
      return plain.storage.create(key, object, options);
    },
    guaranteedUpdate(key, change, options) {
      times.push(options?.ttlSeconds);
      return plain.storage.guaranteedUpdate(key, change, options);
    },
  });
  const definition = { ...plain.definition, ttlSeconds: ({ eventTtlSeconds }: { eventTtlSeconds: number }) => eventTtlSeconds };
  const store = newRegistryStore({ turns: new Turns(), definition, storage, eventTtlSeconds: 60 });
  const { signal } = new AbortController();
  await store.create(ctx(), configMap({ name: "a" }), { signal });
  await store.update(ctx(), "a", merge({ b: "1" }), { signal });
  await store.delete(ctx(), "a", {});
  assert.deepEqual(times, [60, 60, 60]);
});
