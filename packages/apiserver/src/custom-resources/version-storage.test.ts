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
    const object: KubeObject = { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: `n${i}`, namespace: "a" } };
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
  const base: Partial<Storage> = { list: async () => ({ entries, revision: count }) };
  const storage = newVersionStorage(base as Storage, codec, translation, turns); // cast: only `list` is called
  const list = (signal?: AbortSignal) => storage.list({ prefix: "", ...(signal && { signal }) });
  return { world, list };
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
