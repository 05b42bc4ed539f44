import assert from "node:assert/strict";
import { test } from "node:test";
import { frame } from "@coxswain/apimachinery/transport/http2/wire/frames";
import { type Frame, newFrameReader, statusOf } from "./frames.ts";

for (const { name, octets, want } of [
  { name: "an indexed one", octets: [0x88, 0x5c, 1, 0x30], want: 200 },
  { name: "a literal one", octets: [0x08, 3, 0x32, 0x30, 0x31, 0x5c, 1, 0x30], want: 201 },
  { name: "a literal one in Huffman's code", octets: [0x48, 0x82, 0x10, 0x03, 0x5c, 1, 0x30], want: 201 },
  { name: "one behind the size of a memory", octets: [0x20, 0x8d, 0x5c, 1, 0x30], want: 404 },
]) {
  test(`finds the status of an answer: ${name}`, () => {
    assert.equal(statusOf({ type: 1, flags: 4, stream: 1, payload: Buffer.from(octets) }), want);
  });
}

test("frames are returned complete and data in pieces, wherever the bytes are divided", () => {
  const bytes = Buffer.concat([
    frame(0, 1, 3, Buffer.from("hello")),
    frame(4, 0, 0, Buffer.alloc(0)),
    frame(6, 0, 0, Buffer.from("12345678")),
    frame(0, 0, 5, Buffer.alloc(700, 7)),
  ]);
  for (const step of [1, 7, bytes.length]) {
    const frames: [number, number, string][] = [];
    const data: Record<number, number> = {};
    const read = newFrameReader(
      ({ type, stream, payload }: Frame) => frames.push([type, stream, payload.toString()]),
      (stream, piece) => {
        data[stream] = (data[stream] ?? 0) + piece.length;
      },
    );
    for (let at = 0; at < bytes.length; at += step) read(bytes.subarray(at, at + step));
    assert.deepEqual(frames, [
      [0, 3, ""], // END_STREAM
      [4, 0, ""],
      [6, 0, "12345678"],
    ]);
    assert.deepEqual(data, { 3: 5, 5: 700 });
  }
});
