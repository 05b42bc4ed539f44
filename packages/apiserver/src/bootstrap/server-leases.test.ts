import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Entry, Storage } from "../storage/storage.ts";
import { newServerLeases } from "./server-leases.ts";

/** A storage that holds only these objects, by key, and says which time to live they were written with. */
function aStorage() {
  const objects = new Map<string, KubeObject>();
  const ttls: (number | undefined)[] = [];
  const entryOf = (key: string) => ({ key, object: () => objects.get(key) }) as unknown as Entry;
  const storage: Partial<Storage> = {
    list: async () => ({ entries: [...objects.keys()].map(entryOf), revision: 1 }),
    async guaranteedUpdate(key, change, { ttlSeconds } = {}) {
      objects.set(key, await change(objects.has(key) ? entryOf(key) : undefined));
      ttls.push(ttlSeconds);
      return entryOf(key);
    },
    async delete(key) {
      const entry = entryOf(key);
      objects.delete(key);
      return entry;
    },
  };
  return { storage: storage as Storage, objects, ttls };
}

test("each renewal is another object, so that it is written, with the time to live of a lease", async () => {
  const { storage, objects, ttls } = aStorage();
  const servers = newServerLeases(storage);
  const generations: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    await servers.renew("192.0.2.1");
    generations.push(objects.get("192.0.2.1")?.metadata.generation);
  }
  assert.deepEqual(
    [generations, ttls],
    [
      [1, 2, 3],
      [15, 15, 15],
    ],
  );
});

test("the endpoints are those that are alive, whatever they were before; who leaves is gone at once", async () => {
  const { storage } = aStorage();
  const servers = newServerLeases(storage);
  await servers.renew("192.0.2.1");
  const both = await servers.renew("192.0.2.2");
  assert.deepEqual(both(["192.0.2.3"]), ["192.0.2.1", "192.0.2.2"]);
  const left = await servers.remove("192.0.2.1");
  assert.deepEqual(left(["192.0.2.1", "192.0.2.2"]), ["192.0.2.2"]);
});

test("a lease that cannot be removed is the error of who leaves, with no list of others", async () => {
  let listed = 0;
  const storage = {
    delete: () => Promise.reject(new Error("no leader")),
    list: async () => ({ entries: [], revision: listed++ }),
  } as unknown as Storage;
  await assert.rejects(newServerLeases(storage).remove("192.0.2.1"), /no leader/);
  assert.equal(listed, 0);
});

test("a renewal keeps the rest of the lease's metadata", async () => {
  const { storage, objects } = aStorage();
  objects.set("192.0.2.1", { metadata: { name: "192.0.2.1", uid: "u1", generation: 4 } });
  await newServerLeases(storage).renew("192.0.2.1");
  assert.deepEqual(objects.get("192.0.2.1")?.metadata, { name: "192.0.2.1", uid: "u1", generation: 5 });
});
