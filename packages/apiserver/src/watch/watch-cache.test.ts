import assert from "node:assert/strict";
import { test } from "node:test";
import { resourceExpired } from "@coxswain/apimachinery/objects/errors/status-error";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import { newLeases } from "../storage/etcd/leases.ts";
import { EtcdStore } from "../storage/etcd/store.ts";
import { newObjectCodec } from "../storage/object-codec.ts";
import { openStorage } from "../storage/open.ts";
import { runStorageSuite } from "../storage/suite.ts";
import { aConfigMap, crowdedTurns, follow, shapes, suiteResource, unlimitedEntries, withData } from "../storage/testing.ts";
import { newBookmarkClock } from "./bookmarks.ts";
import type { CacheConsumer } from "./change-source.ts";
import { HistoryMemory } from "./history.ts";
import type { WatchMultiplexer } from "./multiplexer.ts";
import { type CachedStore, newWatchCache } from "./watch-cache.ts";

let prefixes = 0;

async function openCache(t: { after(fn: () => void): void }) {
  const etcd = await startEtcd();
  const prefix = `/cache-test-${prefixes++}`;
  const open = async () => {
    const set = await openStorage({
      etcd: { servers: [etcd.endpoint], prefix },
      resources: [suiteResource],
      readTimeoutMs: 300,
      clock: realClock,
      log: discardLogger,
    });
    t.after(() => set.stop());
    return set;
  };
  const set = await open();
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const behind = new EtcdStore({
    turns: new Turns(),
    client,
    codec: newObjectCodec(suiteResource, "application/vnd.kubernetes.protobuf", unlimitedEntries()),
    leases: newLeases({ client, clock: realClock }),
    etcdPrefix: prefix,
    clock: realClock,
    log: discardLogger,
  });
  const compact = async () => {
    const { revision } = await client.range({ key: "x" });
    await client.compact(revision);
    return revision;
  };
  await set.whenReady();
  return { storage: set.for(suiteResource), behind, compact, client, reopen: open };
}

runStorageSuite("watch cache", openCache);

test("writes outside of the prefix do not hold up a fresh read", async (t) => {
  const { storage, client } = await openCache(t);
  for (let i = 0; i < 5; i++) {
    await client.put("/elsewhere", Buffer.from(String(i)));
    assert.equal(await storage.get("web/a"), undefined);
  }
});

for (const { name, opensEarly } of [
  { name: "a watch from before this process began finds what it missed in memory", opensEarly: false },
  { name: "a watch from before this process began, queried before the history is read, resumes from etcd", opensEarly: true },
])
  test(name, async (t) => {
    const { storage, behind, reopen } = await openCache(t);
    const start = await storage.currentRevision();
    await behind.create("web/a", aConfigMap("a"));
    await behind.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }));
    const second = await reopen();
    if (!opensEarly) await second.whenReady();
    const restarted = second.for(suiteResource);
    const watch = await follow(restarted, { prefix: "", revision: start });
    if (!opensEarly) assert.equal((await restarted.list({ prefix: "", revision: start, match: "Exact" })).entries.length, 0);
    assert.deepEqual(shapes(await watch.next(2)), ["ADDED web/a", "MODIFIED web/a"]);
    for (let i = 0; i < 20; i++) await behind.create(`web/p${i}`, aConfigMap(`p${i}`));
    assert.deepEqual(
      shapes(await watch.next(20)),
      Array.from({ length: 20 }, (_, i) => `ADDED web/p${i}`),
    );
    watch.stop();
  });

/** An empty cache whose fill completes when the test releases it. */
function aCache(t: { after(fn: () => void): void }, log: Logger = discardLogger, turns = new Turns()) {
  const lists = [Promise.withResolvers<number>(), Promise.withResolvers<number>()] as const;
  const requested: (number | undefined)[] = [];
  const decoded: string[] = [];
  const store = {
    decode(key: string) {
      decoded.push(key);
    },
    readAll(_onPage: unknown, revision: number | undefined) {
      requested.push(revision);
      return lists[requested.length - 1]?.promise;
    },
  } as unknown as CachedStore;
  let consumer: CacheConsumer | undefined;
  const multiplexer = {
    revision: 5,
    startRevision: 5,
    attach(_folder: string, given: CacheConsumer) {
      consumer = given;
      return () => undefined;
    },
  } as unknown as WatchMultiplexer;
  const clock = newFakeClock();
  const bookmarks = newBookmarkClock(clock);
  const cache = newWatchCache({
    turns,
    histories: new HistoryMemory(Number.POSITIVE_INFINITY),
    store,
    multiplexer,
    bookmarks,
    folder: "pods",
    resource: "pods",
    clock,
    log,
    compacted: () => 0,
  });
  t.after(() => {
    cache.stop();
    bookmarks.stop();
  });
  const change = (key: string, value: Buffer, revision: number) => void consumer?.apply(key, value, revision);
  return { cache, lists, requested, decoded, change, reset: () => consumer?.reset() };
}

test("a large value of the watch is decoded before other long work that waits", async (t) => {
  const { turns, servedBefore } = crowdedTurns(10);
  const { cache, lists, decoded, change } = aCache(t, discardLogger, turns);
  lists[0].resolve(5);
  await cache.whenReady();
  change("web/a", Buffer.alloc(100_000), 6);
  assert.deepEqual(decoded, [], "not in this turn");
  assert.ok((await servedBefore(() => decoded.length > 0)) <= 1, "it waits for no more than the rest of its slice");
});

test("a waiter for the first list gets the one that comes in its place when history was lost meanwhile", async (t) => {
  const { cache, lists, requested, reset } = aCache(t);
  const reported = cache.whenReady();
  reset();
  assert.deepEqual(requested, [5, 0], "the second one is of the present: what was lost is not sent again");
  lists[0].resolve(7);
  await settle();
  assert.equal(cache.ready, false, "it may have a hole");
  lists[1].resolve(9);
  await reported;
  assert.equal(cache.ready, true);
});

test("a cache opened after the server's first revision was compacted is filled with the present state, at once and without an error", async (t) => {
  const errors: string[] = [];
  const { cache, lists, requested } = aCache(t, { ...discardLogger, error: (message) => void errors.push(message) });
  lists[0].reject(resourceExpired("too old"));
  lists[1].resolve(90);
  await settle();
  assert.deepEqual([cache.ready, requested, errors], [true, [5, 0], []]);
});

test("a watch from before history and compaction gets 410", async (t) => {
  const { storage, behind, compact, reopen } = await openCache(t);
  const start = await storage.currentRevision();
  await behind.create("web/a", aConfigMap("a"));
  await behind.create("web/b", aConfigMap("b"));
  const compacted = await compact();
  const second = await reopen();
  await second.whenReady();
  const watch = await follow(second.for(suiteResource), { prefix: "", revision: start });
  assert.deepEqual(shapes(await watch.next(1)), [`ERROR too old resource version: ${start} (${compacted})`]);
});

test("a reader that is too slow is closed, and nothing is left out before", async (t) => {
  const { storage, behind } = await openCache(t);
  const revision = await storage.currentRevision();
  const stream = await storage.watch({ prefix: "", revision, signal: AbortSignal.timeout(60_000) });
  await behind.create("web/a", aConfigMap("a", { n: "-1" }));
  // More than the queue's limit, in batches so that etcd is not the bottleneck.
  for (let i = 0; i < 2_500; i += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, j) => behind.create(`web/p${i + j}`, aConfigMap(`p${i + j}`))));
  }
  await storage.get("web/a");
  assert.deepEqual([stream.take(), await stream.ready()], [[], false]);
});

test("a watcher that resumes with more events than its queue holds gets all of them", async (t) => {
  const { storage, behind } = await openCache(t);
  const revision = await storage.currentRevision();
  for (let i = 0; i < 2_500; i += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, j) => behind.create(`web/p${i + j}`, aConfigMap(`p${i + j}`))));
  }
  await storage.get("web/p0");
  const watch = await follow(storage, { prefix: "", revision });
  await behind.create("web/last", aConfigMap("last"));
  const seen = shapes(await watch.next(2_501));
  assert.deepEqual([new Set(seen).size, seen.at(-1)], [2_501, "ADDED web/last"]);
  watch.stop();
});
