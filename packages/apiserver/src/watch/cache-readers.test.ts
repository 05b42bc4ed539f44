import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { isResourceExpired } from "@coxswain/apimachinery/objects/errors/predicates";
import { tooLargeResourceVersion } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { isReleased } from "@coxswain/apimachinery/testing/held-bytes";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { StorageMetrics } from "../storage/metrics.ts";
import type { Entry, WatchEvent, WatchRequest } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { newBookmarkClock } from "./bookmarks.ts";
import { CacheReaders } from "./cache-readers.ts";
import { Change } from "./history.ts";

const change = (name: string, revision: number) =>
  new Change(`web/${name}`, revision, undefined, { key: `web/${name}`, revision } as Entry);
const added = (...args: Parameters<typeof change>) => change(...args).event(false, true) as WatchEvent;

/** Watchers of a cache whose history starts before `known`, over a store whose watches emit only what the test sends. */
function setUp(...known: Change[]) {
  const clock = newFakeClock();
  const bookmarks = newBookmarkClock(clock);
  const start = (known[0] as Change).revision - 1;
  const memory = {
    ready: false,
    now: (known.at(-1) as Change).revision,
    isReady: () => memory.ready,
    restoredAt: 0,
    async reachedExisting(revision: number) {
      if (revision > memory.now) throw tooLargeResourceVersion(revision, memory.now, 1);
      return memory.ready;
    },
    historyStart: () => memory.restoredAt,
    readyInTime: async () => memory.ready,
    upToDate: async () => memory.ready,
    revision: () => memory.now,
    present: () => [],
    changesAfter: (after: number) => (after < start ? undefined : known.filter(({ revision }) => revision > after)),
  };
  const stored: WatchQueue[] = [];
  const store = {
    async watch({ signal }: WatchRequest) {
      const queue = new WatchQueue({ signal });
      stored.push(queue);
      return queue;
    },
  };
  const slow: string[] = [];
  const metrics = { terminatedWatcher: (resource: string) => void slow.push(resource) } as StorageMetrics;
  const warnings: unknown[] = [];
  const log = { ...discardLogger, warn: (...said: unknown[]) => void warnings.push(said) };
  const readers = new CacheReaders({ store, resource: "pods", bookmarks, log, metrics }, memory);
  return { clock, bookmarks, memory, store, stored, slow, warnings, readers };
}

const shapes = (events: readonly WatchEvent[]): string[] =>
  events.map((event) =>
    event.type === "ERROR"
      ? event.type
      : event.type === "BOOKMARK"
        ? `to ${event.revision}`
        : `${event.entry.key} ${event.entry.revision}`,
  );

test("a watch that begins while the cache is filled changes over to it, and has bookmarks from then on", async () => {
  const { clock, bookmarks, memory, stored, readers } = setUp(change("a", 12));
  const stream = await readers.watch({ prefix: "", revision: 9, bookmarks: true, signal: new AbortController().signal });
  memory.ready = true;
  stored[0]?.push(added("a", 11));
  stored[0]?.push(added("a", 12));
  await settle();
  memory.now = 13;
  readers.dispatch(change("a", 13));
  await clock.advance(61_000);
  assert.deepEqual(shapes(stream.take()), ["web/a 11", "web/a 12", "web/a 13", "to 13"]);
  assert.equal(stored[0]?.ended, true, "etcd is not watched any more");
  stream.stop();
  bookmarks.stop();
});

test("a watch does not switch from etcd to the cache in the middle of a revision", async () => {
  const many = Array.from({ length: 600 }, (_, i) => change(`p${i}`, 12));
  const { bookmarks, memory, stored, readers } = setUp(...many);
  memory.ready = true;
  const stream = await readers.watch({ prefix: "", revision: 9, signal: new AbortController().signal });
  for (const { key, revision } of many) stored[0]?.push(added(key.slice(4), revision));
  await settle();
  const seen: string[] = [];
  for (let events = stream.take(); events.length > 0; events = stream.take()) seen.push(...shapes(events));
  assert.deepEqual([seen.length, new Set(seen).size], [600, 600]);
  stream.stop();
  bookmarks.stop();
});

test("closing a cache ends watches that have not switched from etcd to it yet", async () => {
  const { bookmarks, stored, readers } = setUp(change("a", 12));
  const stream = await readers.watch({ prefix: "", revision: 9, signal: new AbortController().signal });
  readers.end();
  assert.deepEqual([stream.ended, stored[0]?.ended], [true, true]);
  bookmarks.stop();
});

test("a watch from a revision that does not exist is refused without a request to the store", async () => {
  const { readers, memory, stored } = setUp(change("a", 11), change("b", 12));
  memory.ready = true;
  const request = { prefix: "", revision: 13, signal: new AbortController().signal };
  await assert.rejects(readers.watch(request), /Too large resource version: 13, current: 12/);
  assert.equal(stored.length, 0);
});

test("a watch from before the restore of the store is refused as too old, one from there on is not", async () => {
  const { readers, memory, stored } = setUp(change("a", 11), change("b", 12));
  memory.ready = true;
  memory.restoredAt = 11;
  const { signal } = new AbortController();
  await assert.rejects(readers.watch({ prefix: "", revision: 10, signal }), isResourceExpired);
  const stream = await readers.watch({ prefix: "", revision: 11, signal });
  assert.deepEqual(shapes(stream.take()), ["web/b 12"]);
  assert.equal(stored.length, 0);
});

test("a cache that is not filled is not read for watches: what it misses would be missing for ever", async () => {
  const { memory, stored, readers } = setUp(change("a", 11), change("b", 12));
  const { signal } = new AbortController();
  const streams = [await readers.watch({ prefix: "", revision: 11, signal }), await readers.watch({ prefix: "", signal })];
  for (const queue of stored) queue.push(added("c", 12));
  await settle();
  memory.ready = true;
  memory.upToDate = async () => false; // the watch is behind: what was written before must be in the initial events
  streams.push(await readers.watch({ prefix: "", signal }));
  assert.equal(stored.length, 3);
  assert.deepEqual(
    streams.slice(0, 2).map((stream) => shapes(stream.take())),
    [["web/c 12"], ["web/c 12"]],
  );
});

test("events begin behind the requested revision, bookmarks at it", async () => {
  const { clock, bookmarks, memory, readers } = setUp(change("a", 11), change("b", 12));
  memory.ready = true;
  memory.changesAfter = () => [change("a", 11), change("b", 12)];
  const stream = await readers.watch({ prefix: "", revision: 11, bookmarks: true, signal: new AbortController().signal });
  assert.deepEqual(shapes(stream.take()), ["web/b 12"]);
  memory.now = 10;
  await clock.advance(61_000);
  assert.deepEqual(shapes(stream.take()), [], "an earlier one would lead back");
  memory.now = 11;
  await clock.advance(60_000);
  assert.deepEqual(shapes(stream.take()), ["to 11"]);
  memory.ready = false; // it is filled again: changes up to its revision may be missing
  await clock.advance(60_000);
  assert.deepEqual(shapes(stream.take()), []);
  bookmarks.stop();
});

test("a watch that did not ask for bookmarks gets none, neither from the cache nor after it changed over to it", async () => {
  const { clock, bookmarks, memory, stored, readers } = setUp(change("a", 12));
  const { signal } = new AbortController();
  const resumed = await readers.watch({ prefix: "", revision: 9, bookmarks: false, signal });
  memory.ready = true;
  stored[0]?.push(added("a", 12));
  await settle();
  const cached = await readers.watch({ prefix: "", revision: 12, signal });
  const asked = await readers.watch({ prefix: "", revision: 12, bookmarks: true, signal });
  await clock.advance(61_000);
  assert.deepEqual(
    [resumed, cached, asked].map((stream) => shapes(stream.take())),
    [["web/a 12"], [], ["to 12"]],
  );
  bookmarks.stop();
});

test("a reader that is too slow is counted and logged, once", async () => {
  const { readers, memory, slow, warnings } = setUp(change("a", 11));
  memory.ready = true;
  const stream = await readers.watch({ prefix: "", signal: new AbortController().signal });
  for (let revision = 12; revision < 2_070; revision++) readers.dispatch(change("a", revision));
  assert.deepEqual([stream.ended, slow], [true, ["pods"]]);
  assert.deepEqual(warnings, [["a watch was closed: its reader is too slow", { resource: "pods" }]]);
});

test("a store that cannot be watched gives its error, and leaves nothing at the request", async () => {
  const { readers, store } = setUp(change("a", 11));
  store.watch = () => Promise.reject(new Error("etcd is away"));
  const { signal } = new AbortController();
  await assert.rejects(readers.watch({ prefix: "", revision: 9, signal }), /etcd is away/);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a request that has ended meanwhile is not watched for", async () => {
  const { readers, memory, stored } = setUp(change("a", 11));
  const signal = AbortSignal.abort();
  assert.equal((await readers.watch({ prefix: "", revision: 9, signal })).ended, true);
  assert.equal(stored.length, 0);
  memory.ready = true;
  await readers.watch({ prefix: "", bookmarks: true, signal });
});

for (const how of ["from the cache", "from the store", "changed over", "already ended"]) {
  test(`a watch that has ended is released (${how})`, async () => {
    const { bookmarks, clock, memory, readers, stored } = setUp(change("a", 12));
    memory.ready = how !== "from the store";
    const ended = await (async () => {
      const revision = how === "from the store" || how === "changed over" ? 9 : 12;
      const ending = new AbortController();
      if (how === "already ended") ending.abort();
      const stream = await readers.watch({ prefix: "", revision, bookmarks: true, signal: ending.signal });
      if (how === "changed over") for (const revision of [11, 12]) stored[0]?.push(added("a", revision));
      await settle();
      if (how === "changed over") assert.equal(stored[0]?.ended, true);
      ending.abort();
      await settle();
      stored.length = 0;
      return new WeakRef(stream);
    })();
    assert.equal(await isReleased(ended), true);
    readers.dispatch(change("a", 13));
    await clock.advance(61_000);
    bookmarks.stop();
  });
}
