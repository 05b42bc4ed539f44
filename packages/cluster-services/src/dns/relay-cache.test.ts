import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newRelayCache, type Relayed } from "./relay-cache.ts";

/** A failure, which is kept for 5 s, in a part of a larger buffer. */
const anAnswer = (fill: number): Relayed => ({ message: Buffer.alloc(300, fill).subarray(0, 60), records: [], rcode: 2 });

test("a cached answer is a copy of the received buffer", () => {
  const cache = newRelayCache(newFakeClock());
  cache.put("a", anAnswer(1));
  const { message } = cache.get("a") as Relayed;
  assert.deepEqual([message.length, message.buffer.byteLength, message[59]], [60, 60, 1]);
});

test("unused answers are evicted after 30 s, when a new one is cached", async () => {
  const clock = newFakeClock();
  const cache = newRelayCache(clock);
  for (let second = 0; second < 120; second++) {
    for (let i = 0; i < 10; i++) cache.put(`${second} ${i}`, anAnswer(i));
    await clock.advance(1_000);
    assert.ok(cache.size <= 350, `${cache.size} in second ${second}`);
  }
  assert.equal(cache.get("119 3")?.message[0], 3, "those of the last 5 s are still there");
  assert.equal(cache.get("110 3"), undefined);
});

test("no more are kept than fit", () => {
  const cache = newRelayCache(newFakeClock());
  for (let i = 0; i < 12_000; i++) cache.put(`${i}`, anAnswer(1));
  assert.equal(cache.size, 9_984);
  const large = (): Relayed => ({ ...anAnswer(1), message: Buffer.alloc(60_000) });
  for (let i = 0; i < 400; i++) cache.put(`large ${i}`, large());
  assert.ok(cache.size < 280, `${cache.size} of 60 kB in 16 MiB`);
});
