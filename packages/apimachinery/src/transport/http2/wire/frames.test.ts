import assert from "node:assert/strict";
import { test } from "node:test";
import { heldBytes } from "../../../testing/held-bytes.ts";
import { defaultMaxFrameBytes, frame, frameTypes, newFrameReader } from "./frames.ts";

test("frames are decoded equally wherever they are cut", () => {
  const sizes = [0, 1, 300, 5000, defaultMaxFrameBytes];
  const sent = sizes.map((size, i) => frame(frameTypes.data, i, 2 * i + 1, Buffer.alloc(size, i)));
  const bytes = Buffer.concat(sent);
  for (const step of [1, 8, 9, 10, 1023, 4097, bytes.length]) {
    const came: Buffer[] = [];
    const read = newFrameReader((type, flag, stream, payload) => came.push(frame(type, flag, stream, payload)));
    for (let at = 0; at < bytes.length; at += step) read(bytes.subarray(at, at + step));
    assert.deepEqual(came, sent, `in pieces of ${step}`);
  }
});

test("a frame that arrives octet by octet takes no more memory than one that arrives at once", () => {
  const before = heldBytes();
  const readers = Array.from({ length: 20 }, () => newFrameReader(() => assert.fail("a frame is not whole")));
  const head = frame(frameTypes.headers, 0, 1, Buffer.alloc(defaultMaxFrameBytes)).subarray(0, 9);
  for (const read of readers) {
    read(head);
    for (let i = 1; i < defaultMaxFrameBytes; i++) read(Buffer.from("x"));
  }
  const held = heldBytes() - before;
  assert.ok(held < 4 * readers.length * defaultMaxFrameBytes, `${held} bytes of ${readers.length * defaultMaxFrameBytes}`);
});
