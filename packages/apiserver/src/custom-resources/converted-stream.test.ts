import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Entry, WatchEvent } from "../storage/storage.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { ConvertedStream } from "./converted-stream.ts";

const entry = (key: string): Entry => ({ key }) as Entry;
const added = (key: string): WatchEvent => ({ type: "ADDED", entry: entry(key) });
const keysOf = (events: readonly WatchEvent[]): string[] =>
  events.map((event) => ("entry" in event ? event.entry.key : event.type));
const never = new AbortController().signal;
const seen = (entries: readonly Entry[]): Entry[] => entries.map(({ key }) => entry(`seen ${key}`));
const seenLater = async (entries: readonly Entry[]): Promise<Entry[]> => seen(entries);

test("events are seen through a conversion, in their order, whether it answers at once or later", async () => {
  for (const see of [seen, seenLater]) {
    const source = new WatchQueue({ signal: never });
    const stream = new ConvertedStream(source, see, never);
    for (const key of ["a", "b"]) source.push(added(key));
    const keys: string[] = [];
    for await (const event of stream) {
      keys.push(...keysOf([event]));
      if (keys.length === 2) source.push(added("c"));
      if (keys.length === 3) break;
    }
    assert.deepEqual(keys, ["seen a", "seen b", "seen c"]);
  }
});

test("a reader that leaves stops the source", async () => {
  for (const see of [seen, seenLater]) {
    const source = new WatchQueue({ signal: never });
    source.push(added("a"));
    for await (const _ of new ConvertedStream(source, see, never)) break;
    assert.equal(source.ended, true);
  }
});

test("a conversion that fails ends the watch with its failure, and stops the source", async () => {
  const source = new WatchQueue({ signal: never });
  const stream = new ConvertedStream(source, () => Promise.reject(new Error("no answer")), never);
  source.push(added("a"));
  assert.deepEqual(stream.take(), []);
  assert.equal(await stream.ready(), true);
  const [event] = stream.take();
  assert.equal(event?.type, "ERROR");
  assert.equal(source.ended, true);
});

for (const { name, see } of [
  { name: "answers", see: seenLater },
  { name: "fails", see: () => Promise.reject(new Error("no answer")) },
]) {
  test(`a conversion that ${name} after its request has ended stops the source`, async () => {
    const source = new WatchQueue({ signal: never });
    const request = new AbortController();
    const stream = new ConvertedStream(source, see, request.signal);
    for (const key of ["a", "b"]) source.push(added(key));
    request.abort();
    assert.deepEqual(stream.take(), []);
    source.push(added("c"));
    await settle();
    assert.deepEqual([source.ended, stream.ended, stream.take()], [true, true, []]);
  });
}

test("the end of the source is the end of the watch, behind what was still to be seen", async () => {
  const source = new WatchQueue({ signal: never });
  const stream = new ConvertedStream(source, seenLater, never);
  source.push(added("a"));
  assert.deepEqual(stream.take(), []);
  source.end();
  assert.equal(await stream.ready(), true);
  assert.deepEqual(keysOf(stream.take()), ["seen a"]);
  assert.equal(await stream.ready(), false);
  assert.equal(stream.ended, true);
});
