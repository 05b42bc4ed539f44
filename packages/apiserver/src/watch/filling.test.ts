/**
 * The initial fill of a cache and its repetition: changes that arrive meanwhile, failures midway, and what remains of the previous
 * state.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { resourceExpired } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { encodeContinueToken } from "../storage/continue-token.ts";
import { type EntryCodec, newEntry } from "../storage/entry.ts";
import type { OwnWrite } from "../storage/own-writes.ts";
import type { Entry, WatchEvent } from "../storage/storage.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { newBookmarkClock } from "./bookmarks.ts";
import type { CacheConsumer, PastChange } from "./change-source.ts";
import { HistoryMemory } from "./history.ts";
import type { WatchMultiplexer } from "./multiplexer.ts";
import { type CachedStore, newWatchCache } from "./watch-cache.ts";

const codec = {
  fieldsOf: () => ({}),
  memory: unlimitedEntries(),
  toJson: JSON.stringify,
  fromJson: (bytes: Buffer) => JSON.parse(String(bytes)),
} as unknown as EntryCodec;

/** An object whose data is `color`. */
function anEntry(key: string, revision: number, color: string): Entry {
  const [namespace = "", name = ""] = key.split("/");
  return newEntry(codec, key, revision, { metadata: { namespace, name }, data: { color } } as never);
}

interface Read {
  readonly revision: number | undefined;
  /** Answers with a list at `at` of `key=color@revision`; keys without a color cannot be decoded. */
  answer(at: number, ...objects: string[]): Promise<void>;
  fail(err: Error): Promise<void>;
}

/** A cache over a store whose lists the test answers; values are colors, `""` cannot be decoded, `?` not yet. */
function aCache(t: TestContext, compacted = 0) {
  const clock = newFakeClock();
  const reads: Read[] = [];
  const toStore: string[] = [];
  const errors: unknown[] = [];
  const later: { resolve(): void }[] = [];
  let consumer: CacheConsumer | undefined;
  const multiplexer = {
    revision: 10,
    startRevision: 10,
    generation: 0,
    restoredAt: 0,
    attach(_: string, given: CacheConsumer) {
      consumer = given;
      return () => void toStore.push("detached");
    },
    isFresh: true,
    fresh: async () => (multiplexer.isFresh ? multiplexer.revision : undefined),
    reached: async (revision: number) => revision <= multiplexer.revision,
    storedRevision: async () => multiplexer.revision,
  };
  const store = {
    readAll(onPage, revision, onUnreadable) {
      return new Promise<number>((resolve, reject) => {
        reads.push({
          revision,
          answer(at, ...objects) {
            for (const object of objects) {
              const [, key = "", color = "", own = "1"] = /^(.*)=(.*)@(\d+)$/.exec(object) ?? [];
              if (color === "") onUnreadable?.(key);
              else onPage([anEntry(key, Number(own), color)]);
            }
            resolve(at);
            return settle();
          },
          fail(err) {
            reject(err);
            return settle();
          },
        });
      });
    },
    decode(key, value, revision) {
      const color = String(value);
      if (color === "") return undefined;
      if (!color.startsWith("?")) return anEntry(key, revision, color);
      return new Promise((resolve) => later.push({ resolve: () => resolve(anEntry(key, revision, color)) }));
    },
    async create(key, _object, { own } = {}) {
      const revision = multiplexer.revision + 5;
      const entry = anEntry(key, revision, "own");
      const write = { key, value: Buffer.from("own"), entry: () => entry, ready: () => entry } as unknown as OwnWrite;
      own?.add(write);
      own?.answered(write, revision);
      return entry;
    },
    get: async (key: string) => void toStore.push(`get ${key}`),
    async list({ limit }) {
      toStore.push(limit ? `list of ${limit}` : "list");
      return { entries: [], revision: 0 };
    },
    async watch({ signal }) {
      toStore.push("watch");
      return new WatchQueue({ signal });
    },
    async count() {
      toStore.push("count");
      return 0;
    },
    async delete(key, { suggestion } = {}) {
      toStore.push(`delete ${key}, suggested: ${suggestion && textOf(suggestion)}`);
      return suggestion as Entry;
    },
  } as Partial<CachedStore> as CachedStore;
  const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
  const bookmarks = newBookmarkClock(clock);
  t.after(() => bookmarks.stop());
  const cache = newWatchCache({
    turns: new Turns(),
    histories: new HistoryMemory(Number.POSITIVE_INFINITY),
    ...{ store, multiplexer: multiplexer as unknown as WatchMultiplexer, folder: "configmaps", resource: "configmaps" },
    ...{ bookmarks, clock, log, compacted: () => compacted },
  });
  let busy: void | Promise<void>;
  const apply = (key: string, color: string | undefined, revision: number): void => {
    const value = color === undefined ? undefined : Buffer.from(color);
    busy = consumer?.apply(key, value, revision);
    if (busy === undefined) value?.fill("x"); // the receive buffer is used again
    if (busy === undefined) multiplexer.revision = Math.max(multiplexer.revision, revision);
  };
  const applied = async (): Promise<void> => busy;
  const reset = (): void => consumer?.reset();
  const past = (after: number, changes: PastChange[]) => consumer?.past?.(after, changes);
  const shown = async (): Promise<string[]> => (await cache.list({ prefix: "", revision: 0 })).entries.map(textOf);
  const follow = async (revision?: number) => {
    const stream = await cache.watch({ prefix: "", revision, signal: new AbortController().signal });
    return { stream, take: () => stream.take().map(eventText) };
  };
  return { cache, clock, reads, toStore, errors, later, multiplexer, apply, applied, reset, past, shown, follow };
}

const textOf = (entry: Entry): string =>
  `${entry.key}=${(entry.object() as unknown as { data: { color: string } }).data.color}@${entry.revision}`;
const eventText = (event: WatchEvent): string => ("entry" in event ? `${event.type} ${textOf(event.entry)}` : event.type);

test("changes that come while the list is read are applied behind it, in order, but for those it includes", async (t) => {
  const { cache, reads, apply, shown, follow } = aCache(t);
  apply("a/x", "stale", 11);
  apply("a/last", "of the list's own revision", 12);
  apply("a/new", "green", 13);
  apply("a/gone", undefined, 14);
  apply("a/new", "blue", 15);
  assert.deepEqual([cache.cached, cache.ready, reads[0]?.revision], [true, false, 10]);
  await reads[0]?.answer(12, "a/x=red@12", "a/gone=red@3");
  assert.deepEqual([cache.ready, await shown()], [true, ["a/new=blue@15", "a/x=red@12"]]);
  const { take } = await follow(12);
  assert.deepEqual(take(), ["ADDED a/new=green@13", "DELETED a/gone=red@14", "MODIFIED a/new=blue@15"]);
});

test("a change among those that came early may have to be waited for; the others stay behind it", async (t) => {
  const { cache, reads, later, apply, shown } = aCache(t);
  for (const [i, color] of ["green", "?slow", "blue"].entries()) apply("a/x", color, 11 + i);
  await reads[0]?.answer(10);
  assert.equal(cache.ready, false);
  apply("a/y", "red", 14);
  later[0]?.resolve();
  await settle();
  assert.deepEqual([cache.ready, await shown()], [true, ["a/x=blue@13", "a/y=red@14"]]);
});

test("a list that fails is tried again later, one that was compacted at once and in silence; both then at the present", async (t) => {
  const { cache, reads, clock, errors, apply, shown } = aCache(t);
  await reads[0]?.fail(resourceExpired("compacted"));
  assert.deepEqual([reads.length, reads[1]?.revision, errors], [2, 0, []]);
  apply("a/early", "green", 20);
  const failure = new Error("no key");
  await reads[1]?.fail(failure);
  assert.deepEqual([reads.length, errors], [2, [failure]]);
  await clock.advance(499);
  assert.equal(reads.length, 2);
  await clock.advance(1);
  await settle();
  assert.deepEqual([reads.length, reads[2]?.revision, cache.ready], [3, 0, false]);
  await reads[2]?.answer(15, "a/x=red@12");
  assert.deepEqual([cache.ready, await shown()], [true, ["a/early=green@20", "a/x=red@12"]]);
});

test("a cache that is opened after the watch has moved on is filled at the present", async (t) => {
  const { multiplexer, reads, reset } = aCache(t);
  multiplexer.revision = 11;
  reset();
  assert.deepEqual(
    reads.map(({ revision }) => revision),
    [10, 0],
  );
});

test("a fill that was overtaken by another one leaves nothing, nor what came early for it", async (t) => {
  const { cache, reads, apply, reset, shown } = aCache(t);
  apply("a/early", "green", 11);
  reset();
  apply("a/later", "blue", 22);
  await reads[1]?.answer(20, "a/x=red@20");
  await reads[0]?.answer(10, "a/old=red@9");
  assert.deepEqual([cache.ready, await shown()], [true, ["a/later=blue@22", "a/x=red@20"]]);
  reset();
  assert.equal(cache.ready, false);
  await reads[2]?.answer(30, "a/y=red@25");
  assert.deepEqual([cache.ready, await shown()], [true, ["a/y=red@25"]]);
});

test("a reset drops changes that arrived early: after a restore their revisions belong to another history", async (t) => {
  const { cache, reads, apply, reset, shown } = aCache(t);
  apply("a/lost", "green", 30);
  reset();
  await reads[1]?.answer(20, "a/x=red@15");
  assert.deepEqual([cache.ready, await shown()], [true, ["a/x=red@15"]]);
});

test("a reset while an early change is decrypted leaves the later ones to the fill that follows", async (t) => {
  const { cache, reads, later, apply, reset, shown } = aCache(t);
  apply("a/x", "?slow", 11);
  await reads[0]?.answer(10);
  reset();
  apply("a/y", "blue", 21);
  later[0]?.resolve();
  await settle();
  assert.equal(cache.ready, false);
  await reads[1]?.answer(20, "a/x=red@15");
  assert.deepEqual([cache.ready, await shown()], [true, ["a/x=red@15", "a/y=blue@21"]]);
});

test("a reset ends the watches, whose revision the new history does not reach; new ones see the new state", async (t) => {
  const { reads, apply, reset, follow } = aCache(t);
  await reads[0]?.answer(10, "a/x=red@9");
  const before = await follow();
  assert.deepEqual(before.take(), ["ADDED a/x=red@9"]);
  apply("a/x", "green", 11);
  reset();
  await reads[1]?.answer(20, "a/x=blue@15");
  apply("a/x", "black", 21);
  assert.deepEqual([before.take(), before.stream.ended], [["MODIFIED a/x=green@11"], true]);
  const again = await follow();
  assert.deepEqual(again.take(), ["ADDED a/x=black@21"]);
});

test("a written object waits for its event, but not beyond a reset: the revision may then be another write's", async (t) => {
  const { cache, multiplexer, reads, apply, reset, shown } = aCache(t);
  await reads[0]?.answer(10);
  const mine = await cache.create("a/x", {} as never);
  assert.equal(mine.revision, 15);
  apply("a/x", "as stored", 15);
  assert.equal((await cache.list({ prefix: "", revision: 0 })).entries[0], mine);
  await cache.create("a/y", {} as never); // at 20
  reset();
  multiplexer.revision = 12;
  await reads[1]?.answer(12);
  apply("a/y", "another's", 20);
  assert.deepEqual(await shown(), ["a/y=another's@20"]);
});

test("an own write is not matched with another object's event of the same revision", async (t) => {
  const { cache, reads, apply, shown } = aCache(t);
  await reads[0]?.answer(10);
  await cache.create("a/x", {} as never);
  apply("a/y", "green", 15);
  apply("a/x", "as stored", 15);
  assert.deepEqual(await shown(), ["a/x=as stored@15", "a/y=green@15"]);
});

test("a value that is decrypted after a reset is not put over the newer state", async (t) => {
  const { reads, later, apply, applied, reset, shown } = aCache(t);
  await reads[0]?.answer(10);
  apply("a/x", "?slow", 11);
  reset();
  await reads[1]?.answer(20, "a/x=new@15");
  later[0]?.resolve();
  await applied();
  assert.deepEqual(await shown(), ["a/x=new@15"]);
});

test("an object that cannot be decoded is deleted for watches; its reads, and lists that would contain it, go to etcd", async (t) => {
  const { cache, reads, toStore, apply, shown, follow, reset } = aCache(t);
  await reads[0]?.answer(10, "a/x=red@9", "b/bad=@8");
  const { take } = await follow();
  take();
  await cache.get("b/bad");
  await cache.get("a/x");
  await cache.list({ prefix: "a/" });
  assert.deepEqual(toStore.splice(0), ["get b/bad"]);
  await cache.list({ prefix: "b/" });
  await cache.list({ prefix: "" });
  assert.deepEqual(toStore.splice(0), ["list", "list"]);
  apply("a/x", "", 11);
  assert.deepEqual([take(), await shown()], [["DELETED a/x=red@11"], []]);
  await cache.get("a/x");
  assert.deepEqual(toStore.splice(0), ["get a/x"]);
  apply("a/x", "green", 12);
  apply("b/bad", undefined, 13);
  assert.deepEqual(take(), ["ADDED a/x=green@12"]);
  await cache.get("a/x");
  await cache.list({ prefix: "" });
  apply("b/bad", "", 14);
  reset();
  await reads[1]?.answer(20, "b/bad=red@15");
  await cache.list({ prefix: "" });
  assert.deepEqual(toStore, []);
});

test("the changes before the list are history for watches from there on, as long as the list is the watch's start", async (t) => {
  const value = (color: string) => Buffer.from(color);
  const changes: PastChange[] = [
    { key: "a/x", value: value("one"), revision: 6, previous: undefined },
    { key: "a/x", value: value("two"), revision: 7, previous: { value: value("one"), revision: 6 } },
    { key: "a/y", value: undefined, revision: 8, previous: { value: value("old"), revision: 3 } },
    { key: "a/z", value: undefined, revision: 9, previous: undefined },
  ];
  const wanted = ["ADDED a/x=one@6", "MODIFIED a/x=two@7", "DELETED a/y=old@8", "MODIFIED a/x=three@11"];
  for (const { after, events } of [
    { after: 5, events: wanted },
    { after: 6, events: wanted.slice(1) },
    { after: 8, events: wanted.slice(3) },
  ]) {
    const { reads, past, apply, follow } = aCache(t);
    await reads[0]?.answer(10, "a/x=two@7");
    await past(5, changes);
    apply("a/x", "three", 11);
    const { take } = await follow(after);
    assert.deepEqual(take(), events);
  }
  const moved = aCache(t);
  await moved.reads[0]?.answer(12, "a/x=two@7");
  await moved.past(5, changes);
  const { stream } = await moved.follow(6);
  assert.deepEqual(moved.toStore, ["watch"], "it would lack the changes between the watch's start and the list");
  stream.stop();
});

test("a list at 0 ignores the limit, while the cache is filled, too: reflectors depend on it", async (t) => {
  const { cache, reads, clock, toStore } = aCache(t);
  const filling = cache.list({ prefix: "", revision: 0, limit: 1 });
  await clock.advance(3_000);
  await filling;
  assert.deepEqual(toStore, ["list"]);
  await reads[0]?.answer(10, "a/x=red@8", "a/y=red@9");
  const { entries, continueToken } = await cache.list({ prefix: "", revision: 0, limit: 1 });
  assert.deepEqual([entries.length, continueToken], [2, undefined]);
});

test("a deletion suggests what its caller has read, else what the cache holds", async (t) => {
  const { cache, reads, toStore } = aCache(t);
  await reads[0]?.answer(10, "a/x=red@9");
  await cache.delete("a/x", { suggestion: anEntry("a/x", 8, "read") });
  await cache.delete("a/x");
  assert.deepEqual(toStore, ["delete a/x, suggested: a/x=read@8", "delete a/x, suggested: a/x=red@9"]);
});

test("reads of any state wait for the list that is being read, but not for ever: the store answers them then", async (t) => {
  const { cache, clock, reads, toStore, reset } = aCache(t);
  const read = () =>
    Promise.all([cache.list({ prefix: "", revision: 0 }), cache.get("a/x", { minimumRevision: 0 })]).then(
      ([{ entries }, entry]) => [...entries.map(textOf), entry && textOf(entry)],
    );
  const early = read();
  await settle();
  assert.deepEqual(toStore, []);
  await reads[0]?.answer(10, "a/x=red@9");
  assert.deepEqual([await early, toStore], [["a/x=red@9", "a/x=red@9"], []]);
  reset();
  const late = read();
  await clock.advance(2_999);
  assert.deepEqual(toStore, []);
  await clock.advance(1);
  assert.deepEqual([await late, toStore.toSorted()], [[undefined], ["get a/x", "list"]]);
});

test("a list that continues at the latest revision is read from the store while the watch is behind", async (t) => {
  const { cache, multiplexer, reads, toStore } = aCache(t);
  await reads[0]?.answer(10, "a/x=red@9", "a/y=red@9");
  const next = { prefix: "a/", continueToken: encodeContinueToken({ start: "y\0", revision: -1 }) };
  await cache.list(next);
  assert.deepEqual(toStore, []);
  multiplexer.isFresh = false;
  await cache.list(next);
  assert.deepEqual(toStore, ["list"]);
});

test("the past that is decrypted while the cache is filled again is no history of the new list", async (t) => {
  const { reads, later, past, reset, toStore, follow } = aCache(t);
  await reads[0]?.answer(10);
  const replayed = past(5, [{ key: "a/x", value: Buffer.from("?slow"), revision: 7, previous: undefined }]);
  await settle();
  reset();
  await reads[1]?.answer(20, "a/x=blue@15");
  later[0]?.resolve();
  await replayed;
  const { stream } = await follow(6);
  assert.deepEqual(toStore, ["watch"]);
  stream.stop();
});

test("a stopped cache serves nothing from memory, and its initial list is aborted", async (t) => {
  const { cache, reads, toStore, clock, follow } = aCache(t);
  await reads[0]?.answer(10, "a/x=red@9");
  const { stream } = await follow();
  cache.stop();
  assert.equal(stream.ended, true);
  await cache.count();
  await cache.list({ prefix: "", revision: 0 });
  assert.deepEqual(toStore, ["detached", "count", "list"]);
  const filling = aCache(t);
  filling.cache.stop();
  await filling.reads[0]?.fail(new Error("closed"));
  await filling.clock.advance(1000);
  assert.deepEqual([filling.reads.length, filling.cache.ready], [1, false]);
  assert.equal(clock.waiting, 1, "the timer of the bookmarks");
});

test("a list at exactly the revision that etcd was compacted at comes from memory, one of an earlier revision from the store", async (t) => {
  const { cache, reads, apply, toStore } = aCache(t, 12);
  await reads[0]?.answer(11, "a/x=red@11");
  for (const revision of [12, 13]) apply("a/x", `color-${revision}`, revision);
  const listed = async (revision: number) => (await cache.list({ prefix: "", revision, match: "Exact" })).entries.map(textOf);
  assert.deepEqual([await listed(12), toStore], [["a/x=color-12@12"], []]);
  assert.deepEqual([await listed(11), toStore], [[], ["list"]]);
});
