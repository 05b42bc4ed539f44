import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../testing/fast-check.ts";
import { framedMessage, newMessageReader, statusMessage } from "./call.ts";

function read(bytes: Buffer, cuts: readonly number[], mostBytes?: number): string[] {
  const got: string[] = [];
  const take = newMessageReader((message) => got.push(message.toString("hex")), mostBytes);
  let at = 0;
  for (const length of cuts) {
    take(bytes.subarray(at, at + length));
    at += length;
  }
  take(bytes.subarray(at));
  return got;
}

test("messages are the same after a round trip, wherever the stream is cut", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.array(fc.nat(12)), (messages, cuts) => {
      const got = read(Buffer.concat(messages.map(framedMessage)), cuts);
      assert.deepEqual(
        got,
        messages.map((message) => Buffer.from(message).toString("hex")),
      );
    }),
  );
});

test("a message that is too long is refused by its length prefix", () => {
  const frame = framedMessage(Buffer.alloc(11));
  assert.deepEqual(read(frame, [], 11), ["00".repeat(11)]);
  assert.throws(() => read(frame.subarray(0, 5), [], 10), { message: "received message larger than max (11 vs. 10)" });
});

test("a status message is percent-decoded, or kept when it is malformed", () => {
  assert.equal(statusMessage("no m%C3%BCsli: 5%25"), "no müsli: 5%");
  assert.equal(statusMessage("5% left"), "5% left");
});
