import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlreadyExists, isConflict, isNotFound, isResourceExpired } from "@coxswain/apimachinery/objects/errors/predicates";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { StorageMetrics } from "../metrics.ts";
import { newObjectCodec } from "../object-codec.ts";
import { OwnWrites } from "../own-writes.ts";
import type { Entry } from "../storage.ts";
import { runStorageSuite } from "../suite.ts";
import { aConfigMap, crowdedTurns, follow, suiteResource, unlimitedEntries, withData } from "../testing.ts";
import { newEtcdClient } from "./client.ts";
import { EtcdError } from "./errors.ts";
import { newLeases } from "./leases.ts";
import { EtcdStore } from "./store.ts";

let prefixes = 0;

async function openStore(
  t: { after(fn: () => void): void },
  mediaType = "application/vnd.kubernetes.protobuf",
  turns = new Turns(),
  metrics?: StorageMetrics,
) {
  const etcd = await startEtcd();
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const storage = new EtcdStore({
    turns,
    client,
    codec: newObjectCodec(suiteResource, mediaType, unlimitedEntries()),
    leases: newLeases({ client, clock: realClock }),
    etcdPrefix: `/store-test-${prefixes++}`,
    clock: realClock,
    log: discardLogger,
    metrics,
  });
  const compact = async () => {
    const { revision } = await client.range({ key: "x" });
    await client.compact(revision);
    return revision;
  };
  return { storage, behind: storage, client, compact };
}

runStorageSuite("etcd store", openStore);
runStorageSuite("etcd store with JSON values", (t) => openStore(t, "application/json"));

test("a watch of a revision that is still to come is refused without a time after which to ask again", async (t) => {
  const { storage } = await openStore(t);
  const current = await storage.currentRevision();
  const watching = storage.watch({ prefix: "", revision: current + 1_000_000, signal: new AbortController().signal });
  await assert.rejects(watching, (err) => {
    assert.ok(err instanceof StatusError);
    assert.match(err.message, /^Timeout: Too large resource version: /);
    assert.equal(err.status.details?.retryAfterSeconds, undefined);
    return true;
  });
});

test("counting the objects of a resource is measured by its prefix", async (t) => {
  const measured: unknown[] = [];
  const metrics = { etcdRequest: (...[operation, type]: unknown[]) => void measured.push([operation, type]) };
  const { storage } = await openStore(t, undefined, undefined, metrics as unknown as StorageMetrics); // cast: no other part is used
  assert.equal(await storage.count(), 0);
  assert.deepEqual(measured, [["listWithCount", storage.prefix]]);
});

test("a watch of a compacted revision ends with Expired", async (t) => {
  const { storage, compact } = await openStore(t);
  const { revision } = await storage.create("web/a", aConfigMap("a"));
  await storage.create("web/b", aConfigMap("b"));
  await compact();
  const watch = await follow(storage, { prefix: "", revision: revision - 1 });
  const [event] = await watch.next(1);
  assert.ok(event?.type === "ERROR" && isResourceExpired(event.error), JSON.stringify(event));
  assert.equal(await watch.stream.ready(), false);
});

test("a large value of the watch does not wait for other long work", async (t) => {
  const { turns, servedBefore } = crowdedTurns(10);
  const { storage } = await openStore(t, "application/json", turns);
  const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key-${at}`, "v"]));
  let entry: Entry | undefined;
  void Promise.resolve(storage.decode("web/a", Buffer.from(JSON.stringify(aConfigMap("a", data))), 8)).then((made) => {
    entry = made;
  });
  assert.ok((await servedBefore(() => entry !== undefined)) <= 1, "it waits for no more than the rest of its slice");
  assert.deepEqual([...entry!.encodeInSteps()], [], "its JSON is there");
});

test("a dry run is based on the stored object, not on a cached one", async (t) => {
  const { storage } = await openStore(t);
  const suggestion = await storage.create("web/a", aConfigMap("a", { color: "red" }));
  await storage.guaranteedUpdate("web/a", (e) => withData(e, { shape: "round" }));
  const red = { suggestion, dryRun: true, preconditions: { resourceVersion: String(suggestion.revision) } };
  await assert.rejects(storage.delete("web/a", red), isConflict);
  await assert.rejects(
    storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }), red),
    isConflict,
  );
  await storage.delete("web/a");
  await assert.rejects(storage.delete("web/a", { suggestion, dryRun: true }), isNotFound);
});

test("a write that etcd rejected is reported to those who wait for its event", async (t) => {
  const { storage } = await openStore(t);
  await storage.create("web/a", aConfigMap("a"));
  const told: (number | undefined)[] = [];
  const own: OwnWrites = Object.assign(new OwnWrites(() => 0), {
    answered: (_: unknown, revision: number | undefined) => void told.push(revision),
  });
  await assert.rejects(storage.create("web/a", aConfigMap("a"), { own }), isAlreadyExists);
  const { revision } = await storage.create("web/b", aConfigMap("b"), { own });
  assert.deepEqual(told, [undefined, revision]);
});

test("an update that was refused for the current object is not tried again", async (t) => {
  const { storage } = await openStore(t);
  const suggestion = await storage.create("web/a", aConfigMap("a"));
  let asked = 0;
  const refuse = (): never => {
    asked++;
    throw new Error("no");
  };
  await assert.rejects(storage.guaranteedUpdate("web/a", refuse, { suggestion }), /no/);
  assert.equal(asked, 1);
});

test("an error about a state that the caller suggested is final when the caller says so, otherwise the stored one is tried", async (t) => {
  const { storage } = await openStore(t);
  const suggestion = await storage.create("web/a", aConfigMap("a"));
  const stored = await storage.guaranteedUpdate("web/a", (entry) => withData(entry, { color: "red" }));
  const tried: (number | undefined)[] = [];
  const change = (entry: Entry | undefined): KubeObject => {
    tried.push(entry?.revision);
    if (entry?.revision === suggestion.revision) throw new Error("old");
    return withData(entry, { size: "1" });
  };
  await assert.rejects(storage.guaranteedUpdate("web/a", change, { suggestion, settles: () => true }), /old/);
  assert.deepEqual(tried.splice(0), [suggestion.revision]);
  await storage.guaranteedUpdate("web/a", change, { suggestion, settles: () => false });
  assert.deepEqual(tried, [suggestion.revision, stored.revision]);
});

test("values are stored as protobuf, without resourceVersion, under upstream's key", async (t) => {
  const { storage, client } = await openStore(t);
  await storage.create("web/a", aConfigMap("a", { color: "red" }));
  await storage.guaranteedUpdate("web/a", (e) => ({ ...e!.object(), data: { color: "blue" } }));
  const { kvs } = await client.range({ key: `${storage.prefix}web/a` });
  assert.match(storage.prefix, /^\/store-test-\d+\/configmaps\/$/);
  assert.equal(kvs[0]?.value.subarray(0, 4).toString("latin1"), "k8s\0");
  assert.equal(storage.codec.fromStored(kvs[0].value).metadata.resourceVersion ?? "", "");
});

test("objects with a ttl hang on a lease that several share", async (t) => {
  const { storage, client } = await openStore(t);
  await storage.create("web/a", aConfigMap("a"), { ttlSeconds: 3600 });
  await storage.create("web/b", aConfigMap("b"), { ttlSeconds: 3600 });
  await storage.create("web/c", aConfigMap("c"));
  const { kvs } = await client.range({ key: storage.prefix, end: `${storage.prefix.slice(0, -1)}0` });
  const [a, b, c] = kvs.map((kv) => kv.lease);
  assert.notEqual(a, 0n);
  assert.equal(a, b);
  assert.equal(c, 0n);
});

test("an object with a ttl is refused with 503 while etcd grants no lease", async (t) => {
  const etcd = await startEtcd();
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const storage = new EtcdStore({
    turns: new Turns(),
    client,
    codec: newObjectCodec(suiteResource, "application/json", unlimitedEntries()),
    leases: { forTtl: () => Promise.reject(new EtcdError("unavailable", "no leader")) },
    etcdPrefix: `/store-test-${prefixes++}`,
    clock: realClock,
    log: discardLogger,
  });
  const created = storage.create("web/a", aConfigMap("a"), { ttlSeconds: 60 });
  await assert.rejects(created, (err) => err instanceof StatusError && err.code === 503);
  assert.equal(await storage.get("web/a"), undefined);
});

test("an etcd without space refuses writes with 500 and its reason, still serves reads, and the log says it once", async (t) => {
  const etcd = await startOwnEtcd(t, ["--quota-backend-bytes", String(64 * 1024)]);
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const warnings: string[] = [];
  const log: Logger = { ...discardLogger, warn: (message) => void warnings.push(message) };
  const storage = new EtcdStore({
    turns: new Turns(),
    client,
    codec: newObjectCodec(suiteResource, "application/json", unlimitedEntries()),
    leases: newLeases({ client, clock: realClock }),
    etcdPrefix: "/full",
    clock: realClock,
    log,
  });
  const large = { text: "x".repeat(20_000) };
  let failure: unknown;
  let made = 0;
  const fill = async (): Promise<boolean> => {
    const name = `a${made++}`;
    await storage.create(`web/${name}`, aConfigMap(name, large)).catch((err: unknown) => {
      failure = err;
    });
    return failure !== undefined;
  };
  // etcd checks its size only periodically.
  await waitFor(fill, { what: "etcd to be full" });
  assert.ok(failure instanceof StatusError && failure.code === 500, String(failure));
  assert.match(failure.message, /etcdserver: mvcc: database space exceeded/);
  await assert.rejects(storage.create("web/b", aConfigMap("b")), /database space exceeded/);
  assert.deepEqual(warnings, ["etcd has no space left and refuses all writes; compact and defragment it, then disarm the alarm"]);
  assert.equal((await storage.get("web/a0"))?.object().metadata.name, "a0");
});
