import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeJson } from "./json.ts";
import { encodeProtobuf } from "./protobuf.ts";
import { frameWatchEvent, WatchEventDecoder } from "./stream.ts";

const protobuf = "application/vnd.kubernetes.protobuf";
const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { k: "\n" } };

test("frames JSON events as lines", () => {
  const frame = frameWatchEvent("ADDED", Buffer.from("{}"), "application/json");
  assert.equal(frame.toString(), '{"type":"ADDED","object":{}}\n');
});

test("frames protobuf events behind their length, the object in its envelope", () => {
  const frame = frameWatchEvent("ADDED", Buffer.from("xyz"), protobuf);
  assert.equal(frame.toString("hex"), "0000000e" + "0a054144444544" + "1205" + "0a0378797a");
});

for (const mediaType of ["application/json", protobuf]) {
  test(`reads ${mediaType} events however they are cut`, () => {
    const bytes = mediaType === protobuf ? encodeProtobuf(object) : encodeJson(object);
    const frames = Buffer.concat(["ADDED", "MODIFIED"].map((type) => frameWatchEvent(type, bytes, mediaType)));
    for (const size of [1, 7, frames.length]) {
      const decoder = new WatchEventDecoder(mediaType);
      const events = [];
      for (let at = 0; at < frames.length; at += size) events.push(...decoder.push(frames.subarray(at, at + size)));
      assert.deepEqual(events, [
        { type: "ADDED", object },
        { type: "MODIFIED", object },
      ]);
      assert.equal(decoder.pendingBytes, 0);
    }
  });
}

test("empty lines between events are none", () => {
  const line = frameWatchEvent("ADDED", encodeJson(object), "application/json");
  const events = new WatchEventDecoder("application/json").push(
    Buffer.concat([Buffer.from("\n"), line, Buffer.from("\n\n"), line]),
  );
  assert.equal(events.length, 2);
});

test("refuses a frame that is not an event", () => {
  assert.throws(() => new WatchEventDecoder("application/json").push(Buffer.from("[]\n")), { code: 400 });
  assert.throws(() => new WatchEventDecoder(protobuf).push(Buffer.from("ffffffff", "hex")), { code: 400 });
  assert.throws(() => new WatchEventDecoder(protobuf).push(Buffer.from("0000000108", "hex")), { code: 400 });
});

test("refuses an object that is longer than its event", () => {
  const frame = frameWatchEvent("ADDED", encodeProtobuf(object), protobuf);
  const lengthAt = 4 + 2 + "ADDED".length + 1;
  assert.equal(frame[lengthAt], frame.length - lengthAt - 1);
  frame.writeUInt8(frame.readUInt8(lengthAt) + 1, lengthAt);
  assert.throws(() => new WatchEventDecoder(protobuf).push(frame), { code: 400 });
});
