import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Entry, WatchEvent } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { deliver, type Sink } from "./watch-delivery.ts";
import type { Batch, Framer } from "./watch-framer.ts";

const never = new AbortController().signal;
const added = (key: string): WatchEvent => ({ type: "ADDED", entry: { key } as Entry });
const keys: Framer = (events) => {
  const frames = events.map((event) => Buffer.from(event.type === "ADDED" ? event.entry.key : event.type));
  return { frames, bytes: Buffer.concat(frames) };
};

/** A client that reads when the test allows it. */
function aSink() {
  const written: string[] = [];
  let drain: PromiseWithResolvers<void> | undefined;
  const sink = {
    written,
    full: false,
    write({ bytes }: Batch) {
      written.push(bytes.toString());
      return !sink.full;
    },
    drained() {
      drain = Promise.withResolvers();
      return drain.promise;
    },
    end() {},
    read() {
      sink.full = false;
      drain?.resolve();
    },
    leave: () => drain?.reject(new Error("gone")),
  };
  return sink satisfies Sink & Record<string, unknown>;
}

function aDelivery() {
  const clock = newFakeClock(0);
  const sink = aSink();
  const stream = new WatchQueue({ signal: never });
  const done = deliver({ turns: new Turns(), stream, sink, framer: keys, timers: clock });
  return { clock, sink, stream, done };
}

test("events of one event-loop turn are written in one chunk, and the end of the stream is reported", async () => {
  const { sink, stream, done } = aDelivery();
  for (const key of ["a", "b"]) stream.push(added(key));
  await Promise.resolve();
  stream.push(added("c"));
  stream.end();
  assert.equal(await done, true);
  assert.deepEqual(sink.written, ["ab", "c"]);
});

test("events that the framer leaves over are written in order, before later ones", async () => {
  const sink = aSink();
  const stream = new WatchQueue({ signal: never });
  const oneByOne: Framer = (events) => keys(events.slice(0, 1));
  for (const key of ["a", "b", "c"]) stream.push(added(key));
  const done = deliver({ turns: new Turns(), stream, sink, framer: oneByOne, timers: newFakeClock(0) });
  await new Promise(setImmediate);
  for (const key of ["d", "e"]) stream.push(added(key));
  stream.end();
  assert.equal(await done, true);
  assert.deepEqual(sink.written, ["a", "b", "c", "d", "e"]);
});

test("nothing is written to a full connection, and everything when it is read again", async () => {
  const { clock, sink, stream, done } = aDelivery();
  sink.full = true;
  stream.push(added("a"));
  await Promise.resolve();
  for (const key of ["b", "c"]) stream.push(added(key));
  await clock.advance(59_999);
  assert.deepEqual([sink.written, clock.waiting], [["a"], 1]);
  sink.read();
  await clock.advance(0);
  assert.deepEqual([sink.written, clock.waiting], [["a", "bc"], 0]);
  stream.end();
  assert.equal(await done, true);
});

for (const { name, happens } of [
  { name: "stays full for a minute", happens: ({ clock }: ReturnType<typeof aDelivery>) => clock.advance(60_000) },
  { name: "breaks", happens: async ({ sink }: ReturnType<typeof aDelivery>) => sink.leave() },
]) {
  test(`a connection that ${name} is given up, and its stream stopped`, async () => {
    const delivery = aDelivery();
    delivery.sink.full = true;
    delivery.stream.push(added("a"));
    await Promise.resolve();
    await happens(delivery);
    assert.equal(await delivery.done, false);
    assert.deepEqual([delivery.stream.ended, delivery.clock.waiting], [true, 0]);
  });
}

test("an error of the framer rejects the delivery and ends the stream", async () => {
  const stream = new WatchQueue({ signal: never });
  const framer = (): Batch => {
    throw new Error("no such form");
  };
  const done = deliver({ turns: new Turns(), stream, sink: aSink(), framer, timers: newFakeClock(0) });
  stream.push(added("a"));
  await assert.rejects(done, /no such form/);
  assert.equal(stream.ended, true);
});

test("that the initial events are written is reported once", async () => {
  const stream = new WatchQueue({ signal: never });
  let count = 0;
  const done = deliver({
    ...{ turns: new Turns(), stream, sink: aSink(), framer: keys, timers: newFakeClock(0) },
    started: () => void count++,
  });
  for (const key of ["a", "b"]) {
    stream.push(added(key));
    await new Promise(setImmediate);
  }
  stream.end();
  await done;
  assert.equal(count, 1);
});

test("events that the framer left over are kept while the connection is full and written when it drains", async () => {
  const sink = aSink();
  const stream = new WatchQueue({ signal: never });
  const oneByOne: Framer = (events) => keys(events.slice(0, 1));
  sink.full = true;
  for (const key of ["a", "b", "c"]) stream.push(added(key));
  const done = deliver({ turns: new Turns(), stream, sink, framer: oneByOne, timers: newFakeClock(0) });
  assert.deepEqual(sink.written, ["a"]);
  sink.read();
  stream.end();
  assert.equal(await done, true);
  assert.deepEqual(sink.written, ["a", "b", "c"]);
});
