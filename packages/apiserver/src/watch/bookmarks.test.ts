import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
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
