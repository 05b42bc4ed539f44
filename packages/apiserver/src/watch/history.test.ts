import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { isReleased } from "@coxswain/apimachinery/testing/held-bytes";
import type { Entry } from "../storage/storage.ts";
import { Change, History, HistoryMemory } from "./history.ts";

function aClock(): Clock & { ms: number } {
  const clock = { ms: 0, monotonic: (): number => clock.ms };
  return clock as unknown as Clock & { ms: number };
}

const megabyte = 1024 * 1024;
const memory = () => new HistoryMemory(32 * megabyte);

const entry = (key: string, revision: number, sizeBytes = 10): Entry => ({ key, revision, sizeBytes }) as unknown as Entry;
const change = (key: string, revision: number, previous?: Entry): Change =>
  new Change(key, revision, previous, entry(key, revision));

test("after a revision come the later changes, before the start nothing is known", () => {
  const history = new History(aClock(), memory(), 10);
  for (const revision of [11, 12, 12, 15]) history.push(change("a", revision));
  assert.deepEqual(
    history.after(12)?.map((c) => c.revision),
    [15],
  );
  assert.deepEqual(history.after(10)?.length, 4);
  assert.deepEqual(
    history.after(13)?.map((c) => c.revision),
    [15],
  );
  assert.deepEqual(history.after(99), []);
  assert.equal(history.after(9), undefined);
});

test("states of the past are those before the first later change", () => {
  const history = new History(aClock(), memory(), 10);
  history.push(change("a", 11));
  history.push(change("a", 12, entry("a", 11)));
  history.push(change("b", 13, entry("b", 5)));
  assert.deepEqual(
    [...(history.statesAt(11) ?? [])].map(([key, e]) => [key, e?.revision]),
    [
      ["a", 11],
      ["b", 5],
    ],
  );
  assert.deepEqual(
    [...(history.statesAt(10) ?? [])].map(([key, e]) => [key, e?.revision]),
    [
      ["a", undefined],
      ["b", 5],
    ],
  );
  assert.equal(history.statesAt(9), undefined);
});

test("changes older than the retention time are dropped, except the last hundred", () => {
  const clock = aClock();
  const history = new History(clock, memory(), 0);
  for (let revision = 1; revision <= 150; revision++) history.push(change("a", revision));
  assert.equal(history.length, 150);
  clock.ms = 5 * 60_000;
  history.push(change("a", 151));
  assert.equal(history.length, 151, "those of exactly that age are kept");
  clock.ms = 6 * 60_000;
  history.push(change("a", 152));
  assert.equal(history.length, 100);
  assert.equal(history.start, 52);
  assert.equal(history.after(51), undefined);
  assert.equal(history.after(52)?.length, 100);
});

test("it stays bounded however much happens", () => {
  const history = new History(aClock(), memory(), 0);
  for (let revision = 1; revision <= 50_000; revision++) history.push(change("a", revision));
  assert.equal(history.length, 20_000);
  assert.equal(history.start, 30_000);
});

test("the history's memory counts deleted objects, not those that still exist", () => {
  const history = new History(aClock(), memory(), 0);
  for (let revision = 1; revision <= 500; revision++) {
    history.push(new Change(`a${revision}`, revision, undefined, entry(`a${revision}`, revision, megabyte)));
  }
  assert.equal(history.length, 500);
  for (let revision = 501; revision <= 1_000; revision++) {
    history.push(new Change("a", revision, entry("a", revision - 500, megabyte), undefined));
  }
  assert.equal(history.length, 100);
});

test("histories share their memory: the largest drops its oldest changes, each keeps a hundred", () => {
  const shared = new HistoryMemory(32 * megabyte);
  const [busy, idle, large] = [1, 2, 3].map(() => new History(aClock(), shared, 0)) as [History, History, History];
  const push = (history: History, count: number, bytes: number): void => {
    for (let i = 0; i < count; i++) {
      const revision = history.start + history.length + 1;
      history.push(change("a", revision, entry("a", revision - 1, bytes)));
    }
  };
  push(idle, 500, 1000);
  push(large, 1000, 30_000);
  push(busy, 200, 60_000);
  assert.ok(shared.bytes <= shared.limitBytes, String(shared.bytes));
  assert.deepEqual([busy.length, idle.length], [200, 500]);
  assert.ok(large.length < 1000 && large.length > 100, String(large.length));
  assert.equal(shared.bytes, busy.sizeBytes + idle.sizeBytes + large.sizeBytes);
  push(busy, 300, megabyte);
  assert.deepEqual(
    [busy.length, idle.length, large.length],
    [100, 100, 100],
    "what each keeps in any case is more than the limit",
  );
  for (const history of [busy, large]) history.reset(9);
  assert.equal(shared.bytes, idle.sizeBytes);
});

test("a deletion counts twice, because its event has an encoding of its own", () => {
  assert.equal(new Change("a", 3, entry("a", 2, megabyte), undefined).weightBytes, 256 + 2 * megabyte);
  assert.equal(change("a", 3, entry("a", 2, megabyte)).weightBytes, 256 + megabyte);
});

test("the past can be put in front", () => {
  const history = new History(aClock(), memory(), 10);
  history.push(change("a", 11, entry("a", 8)));
  history.prepend(5, [change("b", 7), change("a", 8)]);
  assert.deepEqual(
    history.after(6)?.map((c) => c.revision),
    [7, 8, 11],
  );
  assert.equal(history.after(4), undefined);
  assert.equal(history.start, 5);
});

test("the past can be put in front of what is left when others were dropped", () => {
  const clock = aClock();
  const history = new History(clock, memory(), 1000);
  for (let revision = 1001; revision <= 1250; revision++) history.push(change("a", revision));
  clock.ms = 10 * 60_000;
  history.push(change("a", 1251));
  assert.deepEqual([history.length, history.start], [100, 1151]);
  history.prepend(1149, [change("b", 1150), change("b", 1151)]);
  const revisions = history.after(1149)?.map((c) => c.revision);
  assert.deepEqual([revisions?.length, revisions?.slice(0, 3), history.length], [102, [1150, 1151, 1152], 102]);
});

test("its capacity doubles when it is full, halves when it is three quarters empty, and both are reported", () => {
  const clock = aClock();
  const resized: string[] = [];
  const history = new History(clock, memory(), 0, (capacity, before) => resized.push(`${before} to ${capacity}`));
  let revision = 0;
  for (let i = 0; i < 401; i++) history.push(change("a", ++revision));
  assert.deepEqual([resized, history.capacity], [["0 to 100", "100 to 200", "200 to 400", "400 to 800"], 800]);
  clock.ms = 6 * 60_000;
  history.push(change("a", ++revision));
  assert.deepEqual([resized.slice(4), history.length], [["800 to 400", "400 to 200"], 100]);
  for (let i = 0; i < 100; i++) history.push(change("a", ++revision));
  assert.equal(history.capacity, 200);
});

test("ages stay with their changes when thousands have been dropped", () => {
  const clock = aClock();
  const history = new History(clock, memory(), 0);
  let revision = 0;
  const push = (count: number): void => {
    for (let i = 0; i < count; i++) history.push(change("a", ++revision));
  };
  push(3_000);
  clock.ms = 6 * 60_000;
  push(501);
  assert.deepEqual([history.length, history.start], [501, 3_000], "of the old ones none is left, of the new ones all");
});

test("prepended changes count towards the shared limit; when another history evicts them, the capacity shrinks", () => {
  const shared = new HistoryMemory(megabyte);
  const resized: string[] = [];
  const history = new History(aClock(), shared, 1_000, (capacity, before) => resized.push(`${before} to ${capacity}`));
  history.prepend(
    0,
    Array.from({ length: 401 }, (_, i) => change("a", i + 1, entry("a", i, 1_000))),
  );
  assert.deepEqual([history.sizeBytes, shared.bytes], [401 * 1_256, 401 * 1_256]);
  assert.equal(history.capacity, 800);
  const other = new History(aClock(), shared, 0);
  for (let i = 1; i <= 100; i++) other.push(change("b", i, entry("b", i, 10_000)));
  assert.deepEqual([history.length, history.capacity, resized.at(-1)], [100, 200, "400 to 200"]);
});

test("dropped changes, and an empty history, are released", async () => {
  const shared = memory();
  const clock = aClock();
  const history = new History(clock, shared, 0);
  const first = new WeakRef(change("a", 1));
  history.push(first.deref() as Change);
  const gone = (() => {
    const other = new History(clock, shared, 0);
    other.push(change("b", 1));
    other.reset(5);
    return new WeakRef(other);
  })();
  clock.ms = 6 * 60_000;
  for (let revision = 2; revision <= 150; revision++) history.push(change("a", revision));
  assert.deepEqual([await isReleased(first), await isReleased(gone)], [true, true]);
});

test("after a reset it begins anew, whatever it has dropped before", () => {
  const clock = aClock();
  const history = new History(clock, memory(), 0);
  for (let revision = 1; revision <= 300; revision++) history.push(change("a", revision));
  clock.ms = 10 * 60_000;
  history.push(change("a", 301));
  assert.ok(history.start > 0, "some were dropped");
  history.reset(400);
  history.push(change("b", 401));
  assert.deepEqual([history.length, history.after(400)?.map(({ key }) => key), history.after(399)], [1, ["b"], undefined]);
});
