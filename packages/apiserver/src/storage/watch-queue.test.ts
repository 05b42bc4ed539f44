import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { isReleased } from "@coxswain/apimachinery/testing/held-bytes";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Entry, WatchEvent } from "./storage.ts";
import { WatchPace, WatchQueue } from "./watch-queue.ts";

const entry = (key: string): Entry => ({ key }) as Entry;
const added = (key: string): WatchEvent => ({ type: "ADDED", entry: entry(key) });
const keysOf = (events: readonly WatchEvent[]): string[] =>
  events.map((event) => (event.type === "ADDED" ? event.entry.key : event.type));
const never = new AbortController().signal;

test("the current objects come first, then later events", async () => {
  const queue = new WatchQueue({ initial: [entry("a"), entry("b")], signal: never });
  queue.push(added("c"));
  assert.deepEqual(keysOf(queue.take()), ["a", "b"]);
  assert.deepEqual(keysOf(queue.take()), ["c"]);
  assert.deepEqual(queue.take(), []);
});

test("one wake-up brings all that came in one turn", async () => {
  const queue = new WatchQueue({ signal: never });
  const ready = queue.ready();
  queue.push(added("a"));
  queue.push(added("b"));
  assert.equal(await ready, true);
  assert.deepEqual(keysOf(queue.take()), ["a", "b"]);
});

test("a list that readers share is not changed by later events of one of them", () => {
  const shared = [added("a")];
  const [one, other] = [new WatchQueue({ signal: never }), new WatchQueue({ signal: never })];
  for (const queue of [one, other]) queue.push(shared[0] as WatchEvent, shared);
  one.push(added("b"));
  one.push(added("c"));
  one.fail(new Error("gone"));
  assert.deepEqual([keysOf(one.take()), keysOf(other.take()), keysOf(shared)], [["a", "b", "c", "ERROR"], ["a"], ["a"]]);
});

test("beyond its limit the initial entries are dropped as well", () => {
  const queue = new WatchQueue({ initial: [entry("a")], limit: 1, signal: never });
  assert.deepEqual([queue.push(added("b")), queue.push(added("c"))], [true, false]);
  assert.deepEqual([queue.overflowed, queue.take()], [true, []]);
});

test("beyond its limit it ends instead of dropping single events", async () => {
  let stopped = 0;
  const queue = new WatchQueue({ limit: 2, signal: never, onStop: () => stopped++ });
  assert.deepEqual(
    ["a", "b", "c", "d"].map((key) => queue.push(added(key))),
    [true, true, false, false],
  );
  assert.deepEqual([queue.take(), await queue.ready(), queue.overflowed, stopped], [[], false, true, 1]);
});

test("an error is the last event", async () => {
  const queue = new WatchQueue({ signal: never });
  queue.push(added("a"));
  queue.fail(new Error("gone"));
  assert.equal(queue.push(added("b")), false);
  assert.equal(await queue.ready(), true);
  assert.deepEqual(keysOf(queue.take()), ["a", "ERROR"]);
  assert.equal(await queue.ready(), false);
});

test("an abort ends it and wakes its reader", async () => {
  const controller = new AbortController();
  let stopped = 0;
  const queue = new WatchQueue({ signal: controller.signal, onStop: () => stopped++ });
  const ready = queue.ready();
  controller.abort();
  queue.stop();
  assert.deepEqual([await ready, stopped], [false, 1]);
});

test("leaving the loop over it stops it", async () => {
  let stopped = 0;
  const queue = new WatchQueue({ signal: never, onStop: () => stopped++ });
  queue.push(added("a"));
  for await (const _ of queue) break;
  assert.equal(stopped, 1);
});

test("a reader is woken once, at the end of the turn, and at once when something is there already", async () => {
  const queue = new WatchQueue({ signal: never });
  const woken: string[][] = [];
  const wake = (): void => void woken.push(keysOf(queue.take()));
  queue.whenReady(wake);
  queue.push(added("a"));
  queue.push(added("b"));
  assert.deepEqual(woken, []);
  await Promise.resolve();
  queue.push(added("c"));
  await Promise.resolve();
  assert.deepEqual(woken, [["a", "b"]]);
  queue.whenReady(wake);
  await Promise.resolve();
  assert.deepEqual(woken, [["a", "b"], ["c"]]);
  queue.whenReady(wake);
  queue.end();
  await Promise.resolve();
  assert.deepEqual([woken.length, queue.ended], [3, true]);
});

test("many events are returned in parts, in order", () => {
  const queue = new WatchQueue({ signal: never });
  const keys = Array.from({ length: 1200 }, (_, i) => `k${i}`);
  for (const key of keys) queue.push(added(key));
  const parts = [queue.take(), queue.take(), queue.take(), queue.take()].map(keysOf);
  assert.deepEqual(
    parts.map((part) => part.length),
    [500, 500, 200, 0],
  );
  assert.deepEqual(parts.flat(), keys);
});

test("missed events do not count against the limit, later ones do", () => {
  const queue = new WatchQueue({ limit: 2, signal: never });
  queue.catchUp(["a", "b", "c"].map(added));
  assert.deepEqual(
    ["d", "e", "f"].map((key) => queue.push(added(key))),
    [true, true, false],
  );
  assert.equal(queue.overflowed, true);
});

test("the initial entries are released once they are taken, and the listener on the request's signal at the end", async () => {
  const { signal } = new AbortController();
  const queue = new WatchQueue({ initial: [entry("a")], signal });
  const initial = new WeakRef((queue.take()[0] as { entry: Entry }).entry);
  assert.deepEqual([await isReleased(initial), getEventListeners(signal, "abort").length], [true, 1]);
  queue.end();
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

for (const how of ["stop", "end", "fail"] as const) {
  test(`who waits for a queue after its ${how} is woken at once`, async () => {
    const queue = new WatchQueue({ signal: new AbortController().signal });
    queue[how](new Error("lost"));
    let woken = 0;
    queue.whenReady(() => woken++);
    await settle();
    assert.equal(woken, 1);
  });
}

/** A reader that takes what there is each time it is woken, like a watch's delivery. */
function aPacedReader(pace: WatchPace) {
  const queue = new WatchQueue({ signal: new AbortController().signal, pace });
  const taken: number[] = [];
  const read = (): void => {
    for (let events = queue.take(); events.length > 0; events = queue.take()) taken.push(events.length);
    if (!queue.ended) queue.whenReady(read);
  };
  read();
  return { queue, taken };
}
const change: WatchEvent = { type: "BOOKMARK", revision: 1 };
const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

async function pushInTurns(queue: WatchQueue, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    queue.push(change);
    await turn();
  }
}

test("a watch with many events gets 20 at once and then those of 20 ms together", async () => {
  const clock = newFakeClock(0);
  const { queue, taken } = aPacedReader(new WatchPace(clock));
  await pushInTurns(queue, 25);
  assert.deepEqual(taken, Array(20).fill(1));
  await clock.advance(19);
  assert.equal(taken.length, 20);
  await clock.advance(1);
  assert.deepEqual(taken.slice(20), [5]);
});

test("a watch of a hundred events a second never waits, also after it had waited", async () => {
  const clock = newFakeClock(0);
  const { queue, taken } = aPacedReader(new WatchPace(clock));
  await pushInTurns(queue, 21);
  await clock.advance(1_000);
  taken.length = 0;
  for (let i = 0; i < 200; i++) {
    await pushInTurns(queue, 1);
    assert.equal(taken.length, i + 1);
    await clock.advance(10);
  }
});

test("a watch of 500 events a second is read once in each tick", async () => {
  const clock = newFakeClock(0);
  const { queue, taken } = aPacedReader(new WatchPace(clock));
  await pushInTurns(queue, 20);
  taken.length = 0;
  for (let ms = 0; ms < 1_000; ms += 2) {
    await pushInTurns(queue, 1);
    await clock.advance(2);
  }
  assert.ok(taken.length >= 45 && taken.length <= 51, `${taken.length} reads`);
});

test("events that come together cost as little as four: those after them are delivered at once", async () => {
  const clock = newFakeClock(0);
  const { queue, taken } = aPacedReader(new WatchPace(clock));
  for (let i = 0; i < 400; i++) queue.push(change);
  await turn();
  taken.length = 0;
  await pushInTurns(queue, 17);
  assert.equal(taken.length, 16);
});

test("after many single events, one is delivered at once after a pause of 42 ms", async () => {
  const clock = newFakeClock(0);
  const { queue, taken } = aPacedReader(new WatchPace(clock));
  for (let ms = 0; ms < 400; ms += 2) {
    await pushInTurns(queue, 1);
    await clock.advance(2);
  }
  await clock.advance(20 + 42);
  taken.length = 0;
  await pushInTurns(queue, 1);
  assert.deepEqual(taken, [1]);
});

test("a pause gives back at most the first burst", async () => {
  const clock = newFakeClock(0);
  const { queue, taken } = aPacedReader(new WatchPace(clock));
  await clock.advance(60_000);
  await pushInTurns(queue, 21);
  assert.equal(taken.length, 20);
});

test("watches that wait are woken by one timer, in the same turn, so that they share what they encode", async () => {
  const clock = newFakeClock(0);
  const pace = new WatchPace(clock);
  const readers = [aPacedReader(pace), aPacedReader(pace)];
  for (const { queue } of readers) await pushInTurns(queue, 21);
  assert.equal(clock.waiting, 1);
  await clock.advance(20);
  assert.deepEqual(
    readers.map(({ taken }) => taken.length),
    [21, 21],
  );
  for (const { queue } of readers) await pushInTurns(queue, 3);
  assert.equal(clock.waiting, 1, "the next tick has a timer of its own");
  await clock.advance(20);
  assert.deepEqual(
    readers.map(({ taken }) => taken.reduce((sum, count) => sum + count, 0)),
    [24, 24],
  );
});

for (const { what, happens, want } of [
  { what: "the end of the stream", happens: (queue: WatchQueue) => queue.end(), want: 1 },
  { what: "an error", happens: (queue: WatchQueue) => queue.fail(new Error("expired")), want: 2 },
  {
    what: "256 pending events",
    happens: (queue: WatchQueue) => {
      for (let i = 0; i < 255; i++) queue.push(change);
    },
    want: 256,
  },
])
  test(`${what} wakes a waiting watch at once`, async () => {
    const clock = newFakeClock(0);
    const { queue, taken } = aPacedReader(new WatchPace(clock));
    await pushInTurns(queue, 21);
    happens(queue);
    await turn();
    assert.deepEqual(taken.slice(20), [want]);
    await clock.advance(20);
    assert.equal(taken.length, 21, "the tick finds nothing to do");
  });

test("a watch that is stopped while it waits is not read again", async () => {
  const clock = newFakeClock(0);
  const { queue, taken } = aPacedReader(new WatchPace(clock));
  await pushInTurns(queue, 21);
  queue.stop();
  await clock.advance(20);
  assert.equal(taken.length, 20);
});

test("without a limit of its own a queue has 2,048 pending events", () => {
  const queue = new WatchQueue({ signal: never });
  for (let i = 0; i < 2_048; i++) assert.equal(queue.push(change), true);
  assert.deepEqual([queue.push(change), queue.overflowed], [false, true]);
});
