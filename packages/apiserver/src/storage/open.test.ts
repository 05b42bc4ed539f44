import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { freePort, startEtcd, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { pauseProcess } from "@coxswain/apimachinery/testing/pause-process";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type EtcdClient, newEtcdClient } from "./etcd/client.ts";
import { EtcdError } from "./etcd/errors.ts";
import type { StorageMetrics } from "./metrics.ts";
import { newObjectCodec } from "./object-codec.ts";
import { openStorage, type StorageOptions, type StorageSet } from "./open.ts";
import { aConfigMap, suiteResource, unlimitedEntries } from "./testing.ts";

let prefixes = 0;

async function open(
  t: { after(fn: () => void): void },
  options: Omit<StorageOptions, "clock" | "log"> & Partial<StorageOptions>,
) {
  const prefix = `/open-test-${prefixes++}`;
  const set = await openStorage({ clock: realClock, log: discardLogger, ...options, etcd: { prefix, ...options.etcd } });
  t.after(() => set.stop());
  return { set, prefix };
}

let apart: ReturnType<typeof startOwnEtcd> | undefined;
const startEtcdApart = (): ReturnType<typeof startOwnEtcd> => {
  apart ??= startOwnEtcd();
  return apart;
};

async function keysOf(endpoint: string, prefix: string): Promise<string[]> {
  const client = newEtcdClient({ servers: [endpoint] });
  try {
    const { kvs } = await client.range({ key: `${prefix}/configmaps/`, end: `${prefix}/configmaps0` });
    return kvs.map((kv) => kv.key);
  } finally {
    client.close();
  }
}

const { group, resource } = suiteResource;
for (const { name, of, override, isOwn } of [
  { name: "a resource", of: suiteResource, override: { group, resource }, isOwn: true },
  { name: "a resource of another group", of: suiteResource, override: { group: "apps", resource }, isOwn: false },
  { name: "all of its group", of: suiteResource, override: { group, resource: "*" }, isOwn: true },
  {
    name: "the resource whose objects it shares",
    of: { ...suiteResource, group: "shares.k8s.io", hubGroup: group, storageFolder: resource },
    override: { group, resource },
    isOwn: true,
  },
]) {
  test(`--etcd-servers-overrides of ${name}: ${isOwn ? "it lives in its own etcd" : "nothing changes"}`, async (t) => {
    const [usual, own] = await Promise.all([startEtcd(), startEtcdApart()]);
    const requested: object[] = [];
    const { set, prefix } = await open(t, {
      etcd: {
        servers: [usual.endpoint],
        overrides: [
          { ...override, servers: [usual.endpoint] },
          { ...override, servers: [own.endpoint] },
        ],
      },
      transformerFor: (one) => void requested.push(one),
    });
    await set.for(of).create("web/a", aConfigMap("a"));
    const keys = [`${prefix}/configmaps/web/a`];
    assert.deepEqual(await keysOf(own.endpoint, prefix), isOwn ? keys : []);
    assert.deepEqual(await keysOf(usual.endpoint, prefix), isOwn ? [] : keys);
    assert.deepEqual(requested, [{ group, resource }]);
  });
}

test("an override of a resource wins over one of its group, whichever comes first", async (t) => {
  const [usual, own] = await Promise.all([startEtcd(), startEtcdApart()]);
  const ofGroup = { group, resource: "*", servers: [usual.endpoint] };
  const ofResource = { group, resource, servers: [own.endpoint] };
  for (const overrides of [
    [ofGroup, ofResource],
    [ofResource, ofGroup],
  ]) {
    const { set, prefix } = await open(t, { etcd: { servers: [usual.endpoint], overrides }, watchCache: false });
    await set.for(suiteResource).create("web/a", aConfigMap("a"));
    assert.deepEqual(await keysOf(own.endpoint, prefix), [`${prefix}/configmaps/web/a`]);
  }
});

test("a resource that was released ends its watches, and is opened anew", async (t) => {
  const etcd = await startEtcd();
  const { set } = await open(t, { etcd: { servers: [etcd.endpoint] } });
  const former = set.for(suiteResource);
  await former.create("web/a", aConfigMap("a"));
  const watch = await former.watch({ prefix: "", signal: new AbortController().signal });
  set.release(suiteResource);
  assert.equal(watch.ended, true);
  const anew = set.for(suiteResource);
  assert.notEqual(anew, former);
  assert.equal((await anew.get("web/a"))?.key, "web/a");
  assert.equal(set.for(suiteResource), anew);
});

/** A client without a connection, which etcd's absence makes fail. */
function aClient(isThere: boolean, closed: () => void): EtcdClient {
  const absent = new EtcdError("unsent", "connection refused");
  const answer = async <T>(value: T): Promise<T> => {
    if (!isThere) throw absent;
    return value;
  };
  const client: Partial<EtcdClient> = {
    servers: [],
    put: () => answer(1),
    range: () => answer({ revision: 1, kvs: [], more: false, count: 0 }),
    openWatch: () => ({ server: 0, write() {}, cancel() {} }),
    close: closed,
  };
  return client as EtcdClient;
}

for (const { name, reachable, isOpened } of [
  { name: "all clusters are reached", reachable: [true, true], isOpened: true },
  { name: "the second cluster cannot be reached", reachable: [true, false], isOpened: false },
]) {
  test(`when ${name} the opening leaves ${isOpened ? "the connections" : "no connection"}, and no listener at its signal`, async () => {
    const waiting = [...reachable];
    let closed = 0;
    const client = (): EtcdClient => aClient(waiting.shift() === true, () => closed++);
    const clock = newFakeClock();
    const { signal } = new AbortController();
    const overrides = [{ group: "", resource: "events", servers: ["http://192.0.2.2:2379"] }];
    const etcd = { servers: ["http://192.0.2.1:2379"], overrides, client };
    const opening = openStorage({ clock, log: discardLogger, etcd, signal, watchCache: false });
    if (isOpened) {
      const set = await opening;
      assert.equal(closed, 0);
      set.stop();
    } else await assert.rejects(opening, /connection refused/);
    assert.deepEqual([closed, getEventListeners(signal, "abort").length, clock.waiting], [2, 0, 0]);
  });
}

test("without the history of before the start a storage is ready all the same, and the log says so", async () => {
  const clock = newFakeClock();
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  const etcd = { servers: ["http://192.0.2.1:2379"], client: () => aClient(true, () => {}) };
  const set = await openStorage({ clock, log, etcd, resources: [suiteResource] });
  const ready = set.whenReady(); // etcd does not send the changes of the past
  await settle();
  await clock.advance(3_000);
  await ready;
  assert.deepEqual([warnings, set.ready()], [["cannot load the recent history from etcd"], true]);
  set.stop();
});

test("a size of a watch cache other than 0 is ignored, and the log names its resource", async () => {
  const warned: unknown[] = [];
  const log = { ...discardLogger, warn: (message: string, values?: object) => void warned.push(message, values) };
  const etcd = { servers: ["http://192.0.2.1:2379"], client: () => aClient(true, () => {}) };
  const watchCacheSizes = new Map([["configmaps", 500]]);
  const set = await openStorage({ clock: newFakeClock(), log, etcd, watchCacheSizes });
  set.for(suiteResource);
  set.for({ ...suiteResource, resource: "others" });
  set.stop();
  assert.deepEqual(warned, ["ignoring the size of a watch cache, which is dynamic", { resource: "configmaps", size: 500 }]);
});

test("a resource opened after the start contains what was written in between", async (t) => {
  const etcd = await startEtcd();
  const { set, prefix } = await open(t, { etcd: { servers: [etcd.endpoint] } });
  const { set: other } = await open(t, { etcd: { servers: [etcd.endpoint], prefix }, watchCache: false });
  await other.for(suiteResource).create("web/a", aConfigMap("a"));
  const early = set.for({ ...suiteResource, resource: "others" });
  assert.equal(await early.get("web/a"), undefined); // a consistent read: the watch has delivered the write
  assert.equal((await set.for(suiteResource).get("web/a"))?.key, "web/a");
});

test("an opening that cannot reach etcd ends with its signal", { timeout: 300_000 }, async () => {
  const servers = [`http://127.0.0.1:${await freePort()}`];
  const client = (): EtcdClient => newEtcdClient({ servers, deadlineMs: 3_600_000 });
  const ending = new AbortController();
  const opening = openStorage({ clock: realClock, log: discardLogger, etcd: { servers, client }, signal: ending.signal });
  ending.abort(new Error("the server has stopped"));
  await assert.rejects(opening);
});

test("objects are counted and the database is measured at the periods of their flags", async (t) => {
  const etcd = await startEtcd();
  const clock = newFakeClock();
  const counts: [string, number][] = [];
  const sizes: [string, number][] = [];
  const metrics = {
    etcdRequest() {},
    objects: (resource: string, count: number) => counts.push([resource, count]),
    databaseSize: (endpoint: string, bytes: number) => sizes.push([endpoint, bytes]),
    storageList() {},
  } as unknown as StorageMetrics;
  const { set } = await open(t, {
    etcd: { servers: [etcd.endpoint] },
    watchCache: false,
    clock,
    metrics,
    countPollMs: 60_000,
    databaseSizePollMs: 30_000,
  });
  await set.for(suiteResource).create("web/a", aConfigMap("a"));
  await set.for(suiteResource).create("web/b", aConfigMap("b"));
  await clock.advance(30_000);
  await waitFor(() => sizes.length === 1, { what: "the size" });
  assert.equal(counts.length, 0);
  assert.ok(sizes[0]?.[0] === etcd.endpoint && sizes[0][1] > 10_000, String(sizes));
  await clock.advance(30_000);
  await waitFor(() => counts.length === 1, { what: "the count" });
  assert.deepEqual(counts, [["configmaps", 2]]);
  set.stop();
  assert.equal(clock.waiting, 0);
});

test("the database of each server of each cluster is measured, also beside one that does not answer", async () => {
  const sizes: string[] = [];
  const metrics = {
    etcdRequest() {},
    databaseSize: (endpoint: string, bytes: number) => void sizes.push(`${endpoint} ${bytes}`),
  } as unknown as StorageMetrics;
  const clock = newFakeClock();
  const usualServers = ["http://192.0.2.1:2379", "http://192.0.2.2:2379", "http://192.0.2.4:2379"];
  const ofEvents = ["http://192.0.2.3:2379"];
  const opened = [usualServers, ofEvents];
  const client = (): EtcdClient => ({
    ...aClient(true, () => {}),
    servers: opened.shift() ?? [],
    status: async (index = 0) => {
      if (index === 2) throw new EtcdError("unavailable", "no leader");
      return { dbSizeBytes: 10 + index } as Awaited<ReturnType<EtcdClient["status"]>>;
    },
  });
  const overrides = [{ group: "", resource: "events", servers: ofEvents }];
  const etcd = { servers: usualServers, overrides, client };
  const set = await openStorage({ clock, log: discardLogger, etcd, metrics, watchCache: false, databaseSizePollMs: 30_000 });
  await clock.advance(30_000);
  await waitFor(() => sizes.length === 3, { what: "the sizes" });
  set.stop();
  assert.deepEqual(sizes.toSorted(), [`${usualServers[0]} 10`, `${usualServers[1]} 11`, `${ofEvents[0]} 10`]);
});

test("a resource that cannot be counted is reported as unknown, and the others are counted", async (t) => {
  const etcd = await startEtcd();
  const clock = newFakeClock();
  const counts: Record<string, number> = {};
  const metrics = {
    etcdRequest() {},
    objects: (resource: string, count: number) => {
      counts[resource] = count;
    },
  } as unknown as StorageMetrics;
  const around = (inner: EtcdClient): EtcdClient => ({
    ...inner,
    range: (request) =>
      request.countOnly && request.key.includes("/broken/")
        ? Promise.reject(new EtcdError("unavailable", "no leader"))
        : inner.range(request),
  });
  await open(t, {
    etcd: { servers: [etcd.endpoint], around },
    resources: [{ ...suiteResource, resource: "broken" }, suiteResource],
    watchCache: false,
    clock,
    metrics,
    countPollMs: 60_000,
  });
  await clock.advance(60_000);
  await waitFor(() => counts["configmaps"] !== undefined, { what: "the count" });
  assert.deepEqual(counts, { broken: -1, configmaps: 0 });
});

test("the health check fails after --etcd-healthcheck-timeout and holds again when etcd answers", async (t) => {
  const etcd = await startOwnEtcd(t);
  const { set } = await open(t, { etcd: { servers: [etcd.endpoint], healthTimeoutMs: 1_500 } });
  const health = (): ReturnType<StorageSet["health"]> => set.health();
  await waitFor(
    () =>
      health().then(
        () => true,
        () => false,
      ),
    { what: "etcd to be healthy" },
  );
  await pauseProcess(etcd.pid);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let failure = "";
  const requested = health().catch((err: Error) => {
    failure = err.message;
  });
  t.mock.timers.tick(1_499);
  await settle();
  assert.equal(failure, "");
  t.mock.timers.tick(1);
  await requested;
  assert.equal(failure, "context deadline exceeded");
  t.mock.timers.reset();
  process.kill(etcd.pid, "SIGCONT");
  await waitFor(
    () =>
      health().then(
        () => true,
        () => false,
      ),
    { what: "etcd to be healthy again" },
  );
});

test("a cache of 10,000 objects is filled in pages of one revision, and meanwhile the others answer", async (t) => {
  const etcd = await startEtcd();
  const prefix = `/open-test-${prefixes++}`;
  const big = { ...suiteResource, resource: "bigmaps" };
  const codec = newObjectCodec(big, "application/json", unlimitedEntries());
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  for (let first = 0; first < 10_000; first += 100) {
    const names = Array.from({ length: 100 }, (_, i) => `item-${first + i}`);
    const success = names.map((name) => {
      const value = codec.toStored(aConfigMap(name));
      return { type: "put" as const, key: `${prefix}/bigmaps/web/${name}`, value };
    });
    await client.txn({ compare: [], success, failure: [] });
  }
  await client.put(`${prefix}/configmaps/web/small`, codec.toStored(aConfigMap("small")));

  const pages: { limit: number | undefined; revision: number | undefined }[] = [];
  const held = Promise.withResolvers<void>();
  const around = (inner: EtcdClient): EtcdClient => ({
    ...inner,
    async range(request) {
      if (request.key.includes("/bigmaps/") && request.end !== undefined) {
        pages.push({ limit: request.limit, revision: request.revision });
        if (pages.length === 3) await held.promise;
      }
      return inner.range(request);
    },
  });
  const { set } = await open(t, {
    etcd: { servers: [etcd.endpoint], prefix, around },
    resources: [big, suiteResource],
  });
  await waitFor(() => pages.length === 3, { what: "the third page" });
  // Written while the pages are read: not in the pages, and not lost.
  await client.put(`${prefix}/bigmaps/web/item-0`, codec.toStored(aConfigMap("item-0", { color: "late" })));
  const small = await set.for(suiteResource).list({ prefix: "" });
  assert.deepEqual([small.entries.length, set.ready()], [1, false]);

  held.resolve();
  await set.whenReady();
  const { entries } = await set.for(big).list({ prefix: "" });
  assert.equal(entries.length, 10_000);
  assert.equal(entries[0]?.fields["data.color"], "late");
  assert.equal(pages.length, 10);
  assert.ok(pages.every(({ limit }) => limit === 1_000));
  assert.equal(new Set(pages.map(({ revision }) => revision)).size, 1, "one revision");
});
