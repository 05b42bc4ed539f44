import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { persistentVolumes } from "@coxswain/apimachinery/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../testing/test-context.ts";
import { aVolume } from "../testing/volumes.ts";
import { newNewest } from "./newest.ts";

const at = (resourceVersion: string, uid = "a-uid"): PersistentVolume => {
  const volume = aVolume("a");
  return { ...volume, metadata: { ...volume.metadata, uid, resourceVersion } };
};

test("prefers its own last write to what the cache still shows", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const informer = ctx.informers.for<PersistentVolume>(persistentVolumes);
  const newest = newNewest(informer);
  client.put(persistentVolumes, aVolume("a"));
  await run();
  const shown = Number(newest.get("a")?.metadata.resourceVersion);
  const version = () => Number(newest.get("a")?.metadata.resourceVersion) - shown;
  newest.written(at(String(shown + 7)));
  assert.equal(version(), 7);
  newest.written(at(String(shown + 3)));
  assert.equal(version(), 7, "an older one changes nothing");
  client.put(persistentVolumes, aVolume("a"));
  await settle(30);
  assert.equal(version(), 7, "nor does an older event");
});

test("keeps nothing of what is gone", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const newest = newNewest(ctx.informers.for<PersistentVolume>(persistentVolumes));
  client.put(persistentVolumes, aVolume("a"));
  await run();
  client.remove(persistentVolumes, "a");
  await settle(30);
  newest.written(at("999"));
  assert.deepEqual([...newest.list()], [], "the answer to a write that came after its object's end");
  client.put(persistentVolumes, at("1", "another"));
  await settle(30);
  newest.written(at("999"));
  assert.equal(newest.get("a")?.metadata.uid, "another");
});
