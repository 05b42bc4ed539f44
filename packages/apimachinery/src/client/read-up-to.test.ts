import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { readUpTo } from "./read-up-to.ts";

const tooLong = (): Error => new Error("too long");

test("an answer of the longest size is read as a whole", async () => {
  const answer = Readable.from([Buffer.from("ab"), Buffer.from("cd")]);
  assert.equal(String(await readUpTo(answer, 4, tooLong)), "abcd");
});

test("a longer answer is not read to its end, and its stream is destroyed", async () => {
  let read = 0;
  const endless = Readable.from(
    (function* () {
      for (;;) {
        read++;
        yield Buffer.from("ab");
      }
    })(),
  );
  await assert.rejects(readUpTo(endless, 5, tooLong), /^Error: too long$/);
  assert.ok(endless.destroyed);
  assert.ok(read < 100);
});
