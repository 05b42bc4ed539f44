import assert from "node:assert/strict";
import { test } from "node:test";
import { newSharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newAssumeCache, versionOf } from "./assume-cache.ts";

const volume = (name: string, text = ""): PersistentVolume => ({
  kind: "PersistentVolume",
  metadata: { name, labels: { text } },
  spec: {},
});
const textOf = (of: PersistentVolume | undefined) => of?.metadata.labels?.["text"];

async function start(t: { after(fn: () => void): void }) {
  const clock = newFakeClock();
  const client = newFakeClient();
  client.put(persistentVolumes, volume("a", "stored"), volume("b", "stored"));
  const informer = newSharedInformer<PersistentVolume>({
    client,
    clock,
    log: discardLogger,
    ref: persistentVolumes,
    resyncMs: 60_000,
  });
  const cache = newAssumeCache(informer);
  const stop = new AbortController();
  t.after(() => stop.abort());
  void informer.run(stop.signal);
  await settle();
  const changed = (name: string, text: string): PersistentVolume => {
    const stored = cache.stored(name) as PersistentVolume;
    return { ...stored, metadata: { ...stored.metadata, labels: { text } } };
  };
  return { clock, client, cache, changed };
}

test("an assumed object is returned instead of the stored one, by get and list, until it is restored", async (t) => {
  const { cache, changed } = await start(t);
  cache.assume(changed("b", "assumed"));
  assert.deepEqual([textOf(cache.get("a")), textOf(cache.get("b")), textOf(cache.stored("b"))], ["stored", "assumed", "stored"]);
  assert.deepEqual(cache.list().map(textOf), ["stored", "assumed"]);
  cache.assume(changed("b", "again"));
  assert.equal(textOf(cache.get("b")), "again");
  cache.restore("b");
  cache.restore("b");
  assert.deepEqual(cache.list().map(textOf), ["stored", "stored"]);
});

test("a newer object from the API replaces the assumed one, and a deletion removes it", async (t) => {
  const { client, cache, changed } = await start(t);
  cache.assume(changed("a", "assumed"));
  cache.assume(changed("b", "assumed"));
  client.put(persistentVolumes, volume("a", "newer"));
  client.remove(persistentVolumes, "b");
  await settle();
  assert.equal(textOf(cache.get("a")), "newer");
  assert.equal(cache.get("b"), undefined);
  client.put(persistentVolumes, volume("b", "made anew"));
  await settle();
  assert.equal(textOf(cache.get("b")), "made anew", "nothing of the one before is left");
});

test("the same version shown again keeps what was assumed; the next one replaces it, also 1000 after 999", async (t) => {
  const { clock, client, cache, changed } = await start(t);
  for (let version = 103; version <= 999; version++) client.put(persistentVolumes, volume("a", "stored"));
  await settle();
  assert.equal(cache.stored("a")?.metadata.resourceVersion, "999");
  cache.assume(changed("a", "assumed"));
  await clock.advance(60_000);
  assert.equal(textOf(cache.get("a")), "assumed");
  client.put(persistentVolumes, volume("a", "newer"));
  await settle();
  assert.deepEqual([cache.stored("a")?.metadata.resourceVersion, textOf(cache.get("a"))], ["1000", "newer"]);
});

test("assuming an older version than the API's is refused and keeps the earlier assumed object", async (t) => {
  const { client, cache, changed } = await start(t);
  const old = changed("a", "late");
  client.put(persistentVolumes, volume("a", "newer"));
  await settle();
  cache.assume(changed("a", "assumed"));
  assert.throws(() => cache.assume(old), /PersistentVolume "a" is out of sync/);
  assert.equal(textOf(cache.get("a")), "assumed");
  assert.throws(() => cache.assume(volume("nowhere")), /could not find PersistentVolume "nowhere"/);
  assert.equal(cache.get("nowhere"), undefined);
});

test("resource versions are compared as numbers of any length; others count as the oldest", () => {
  const of = (resourceVersion?: string) =>
    versionOf({ metadata: { ...(resourceVersion === undefined ? {} : { resourceVersion }) } });
  assert.ok(of("10") > of("9"));
  assert.ok(of("18446744073709551615") > of("9007199254740993"));
  assert.deepEqual([of(), of(""), of("x1"), of("-1"), of("1".repeat(21))], [0n, 0n, 0n, 0n, 0n]);
});
