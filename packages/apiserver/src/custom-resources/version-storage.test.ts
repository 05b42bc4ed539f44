import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { type Entry, type EntryCodec, EntryMemory, newEntry } from "../storage/entry.ts";
import type { Storage } from "../storage/storage.ts";
import { newTranslation, renameOnly } from "./conversion.ts";
import { newVersionStorage } from "./version-storage.ts";

/** A cache with objects in v1, served in v2. */
function converting(count: number, turns = new Turns()) {
  const codec: EntryCodec = {
    toJson: (object) => JSON.stringify(object),
    *toJsonInSteps(object) {
      yield;
      return JSON.stringify(object);
    },
    fromStored: (bytes) => JSON.parse(bytes.toString()),
    fromJson: (bytes) => JSON.parse(bytes.toString()),
    fieldsOf: () => ({}),
    memory: new EntryMemory(new ByteShare(128 * 1024 * 1024), 16 * 1024 * 1024),
  };
  const entries = Array.from({ length: count }, (_, i): Entry => {
    const metadata = { name: `n${i}`, namespace: "a", generation: 1 };
    const object: KubeObject = { apiVersion: "example.com/v1", kind: "Thing", metadata };
    const entry = newEntry(codec, `a/n${i}`, i + 1, object);
    entry.cool(Buffer.from(JSON.stringify(object)));
    return entry;
  });
  const world = { converted: 0 };
  const translation = newTranslation({
    group: "example.com",
    schemas: new Map(),
    version: "v2",
    storageVersion: "v1",
    convert(objects, version) {
      world.converted += objects.length;
      return renameOnly(objects, version);
    },
    turns,
  });
  const written: { object: KubeObject; suggestion: Entry | undefined }[] = [];
  const base: Partial<Storage> = {
    async create(key, object) {
      written.push({ object, suggestion: undefined });
      return newEntry(codec, key, 7, object);
    },
    get: async (key) => entries.find((one) => one.key === key),
    list: async () => ({ entries, revision: count }),
    async guaranteedUpdate(key, change, { suggestion } = {}) {
      const entry = entries.find((one) => one.key === key)!;
      const object = await change(entry);
      written.push({ object, suggestion });
      return object === entry.object() ? entry : newEntry(codec, key, entry.revision + 1, object);
    },
    async delete(key, { suggestion } = {}) {
      const entry = entries.find((one) => one.key === key)!;
      written.push({ object: entry.object(), suggestion });
      return entry;
    },
  };
  const storage = newVersionStorage(base as Storage, codec, translation, turns); // cast: no other method is called
  const list = (signal?: AbortSignal) => storage.list({ prefix: "", ...(signal && { signal }) });
  return { world, list, storage, entries, written };
}

test("objects of a list are converted once, also when there are nearly as many as the hot ring has places", async () => {
  const { world, list } = converting(4_000);
  const { entries } = await list();
  assert.deepEqual([entries.length, entries[0]?.object().apiVersion, world.converted], [4_000, "example.com/v2", 4_000]);
  for (const entry of (await list()).entries) entry.json();
  await list();
  assert.equal(world.converted, 4_000);
});

test("a list whose client has gone converts nothing more", async () => {
  let nowMs = 0;
  const { world, list } = converting(100, new Turns(() => (nowMs += 50))); // each step takes a whole turn
  const gone = new Error("client has gone");
  await assert.rejects(list(AbortSignal.abort(gone)), gone);
  assert.equal(world.converted, 0);
});

for (const { what, change } of [
  { what: "returns what it was given", change: (current: Entry | undefined) => current!.object() },
  { what: "returns an equal object", change: (current: Entry | undefined) => structuredClone(current!.object()) },
]) {
  test(`an update that ${what} leaves the object in the version in which it is stored`, async () => {
    const { storage, entries, written } = converting(1);
    const seen: (string | undefined)[] = [];
    const updated = await storage.guaranteedUpdate("a/n0", (current) => {
      seen.push(current?.object().apiVersion);
      return change(current);
    });
    assert.deepEqual([seen, updated.object().apiVersion, updated.revision], [["example.com/v2"], "example.com/v2", 1]);
    assert.equal(written[0]?.object, entries[0]?.object());
  });
}

test("an update stores the object in the storage version, and answers in the served one", async () => {
  const { storage, written } = converting(1);
  const updated = await storage.guaranteedUpdate("a/n0", (current) => {
    const object = structuredClone(current!.object());
    object.metadata.labels = { a: "b" };
    return object;
  });
  assert.partialDeepStrictEqual(written[0]?.object, { apiVersion: "example.com/v1", metadata: { labels: { a: "b" } } });
  assert.partialDeepStrictEqual(updated.object(), { apiVersion: "example.com/v2", metadata: { labels: { a: "b" } } });
});

test("a write that begins with an entry that was shown begins with the stored one, or with the entry itself where there is no other", async () => {
  const { list, storage, entries, written } = converting(1);
  const [shown] = (await list()).entries;
  await storage.guaranteedUpdate("a/n0", (current) => current!.object(), { suggestion: shown! });
  await storage.delete("a/n0", { suggestion: shown! });
  await storage.guaranteedUpdate("a/n0", (current) => current!.object(), { suggestion: entries[0]! });
  await storage.guaranteedUpdate("a/n0", (current) => current!.object());
  assert.deepEqual(
    written.map(({ suggestion }) => suggestion && suggestion === entries[0]),
    [true, true, true, undefined],
  );
});

test("what is created is stored in the storage version, and answered and read in the served one", async () => {
  const { storage, written } = converting(1);
  const metadata = { name: "new", namespace: "a", generation: 1 };
  const created = await storage.create("a/new", { apiVersion: "example.com/v2", kind: "Thing", metadata });
  assert.equal(written[0]?.object.apiVersion, "example.com/v1");
  assert.deepEqual(
    [created.object().apiVersion, created.revision, created.object().metadata],
    ["example.com/v2", 7, { ...metadata, resourceVersion: "7" }],
  );
  assert.equal((await storage.get("a/n0"))?.object().apiVersion, "example.com/v2");
  assert.equal(await storage.get("a/none"), undefined);
});
