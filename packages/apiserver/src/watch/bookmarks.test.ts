import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newBookmarkClock } from "./bookmarks.ts";

test("readers are woken each minute, two seconds before their end, and not after they left", async () => {
  const clock = newFakeClock();
  const bookmarks = newBookmarkClock(clock);
  const woken: string[] = [];
  const readers = bookmarks.readers<{ name: string }>(({ name }) => woken.push(`${name}@${(clock.now() - start) / 1000}`));
  const start = clock.now();
  const [long, short, gone] = [{ name: "long" }, { name: "short" }, { name: "gone" }];
  readers.add(long, undefined);
  readers.add(short, start + 90_000);
  readers.add(gone, undefined);
  readers.remove(gone);
  await clock.advance(125_000);
  assert.deepEqual(woken, ["long@60", "short@60", "short@88", "long@120"]);
  bookmarks.stop();
});

test("setting the clock back or forward does not delay bookmarks", async () => {
  const fake = newFakeClock();
  let setMs = 0;
  const clock = { ...fake, now: () => fake.now() + setMs };
  const bookmarks = newBookmarkClock(clock);
  const woken: number[] = [];
  bookmarks.readers(() => woken.push(fake.monotonic() / 1000)).add({}, clock.now() + 150_000);
  setMs = -3_600_000;
  await fake.advance(65_000);
  setMs = 3_600_000;
  await fake.advance(90_000);
  assert.deepEqual(woken, [60, 120, 148]);
  bookmarks.stop();
});

test("a reader that leaves while it is woken is not woken again, nor are others kept from it", async () => {
  const clock = newFakeClock();
  const bookmarks = newBookmarkClock(clock);
  const woken: string[] = [];
  const readers = bookmarks.readers<{ name: string }>((reader) => {
    woken.push(reader.name);
    if (reader.name === "slow") readers.remove(reader);
  });
  for (const name of ["first", "slow", "last"]) readers.add({ name }, undefined);
  await clock.advance(121_000);
  assert.deepEqual(woken, ["first", "slow", "last", "first", "last"]);
  bookmarks.stop();
});

test("on a clock that has run for long a reader is woken two seconds before its end, too", async () => {
  const clock = newFakeClock();
  await clock.advance(7_200_000);
  const bookmarks = newBookmarkClock(clock);
  const woken: number[] = [];
  bookmarks.readers(() => woken.push(clock.monotonic() - start)).add({}, clock.now() + 30_000);
  const start = clock.monotonic();
  await clock.advance(50_000);
  assert.deepEqual(woken, [28_000]);
  bookmarks.stop();
});
