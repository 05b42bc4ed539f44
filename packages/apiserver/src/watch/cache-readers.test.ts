import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { isResourceExpired } from "@coxswain/apimachinery/errors/predicates";
import { tooLargeResourceVersion } from "@coxswain/apimachinery/errors/status-error";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
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
  const readers = new CacheReaders({ store, resource: "pods", bookmarks, log: discardLogger }, memory);
  return { clock, bookmarks, memory, stored, readers };
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

test("a watch does not change over in the middle of a revision", async () => {
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

test("when the cache is over, so are watches that have not changed over to it", async () => {
  const { bookmarks, stored, readers } = setUp(change("a", 12));
  const stream = await readers.watch({ prefix: "", revision: 9, signal: new AbortController().signal });
  readers.end();
  assert.deepEqual([stream.ended, stored[0]?.ended], [true, true]);
  bookmarks.stop();
});

test("a watch from a revision that does not come is refused, and asks the store for nothing", async () => {
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
