import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Storage } from "../storage/storage.ts";
import { newServerLeases } from "./server-leases.ts";

/** A storage that holds only these objects, by key, and says which time to live they were written with. */
function aStorage() {
  const objects = new Map<string, KubeObject>();
  const ttls: (number | undefined)[] = [];
  const storage = {
    list: async () => ({ entries: [...objects.keys()].map((key) => ({ key })), revision: 1 }),
    async guaranteedUpdate(key, change, { ttlSeconds } = {}) {
      const before = objects.get(key);
      objects.set(key, await change(before === undefined ? undefined : ({ object: () => before } as never)));
      ttls.push(ttlSeconds);
    },
    async delete(key) {
      objects.delete(key);
    },
  } as Partial<Storage> as Storage;
  return { storage, objects, ttls };
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
