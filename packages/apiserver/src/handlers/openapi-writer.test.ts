import assert from "node:assert/strict";
import { test } from "node:test";
import protobuf from "protobufjs";
import { flag, text, texts, type Writer, writeExtensions } from "./openapi-writer.ts";

const written = (write: (writer: Writer) => void): string => {
  const writer = protobuf.Writer.create();
  write(writer);
  return Buffer.from(writer.finish()).toString("latin1");
};

test("absent and empty values are not written, those of a list are", () => {
  assert.equal(
    written((writer) => text(writer, 1, "a")),
    "\n\u0001a",
  );
  assert.equal(
    written((writer) => text(writer, 1, "")),
    "",
  );
  assert.equal(
    written((writer) => text(writer, 1, undefined)),
    "",
  );
  assert.equal(
    written((writer) => texts(writer, 1, ["", "b"])),
    "\n\u0000\n\u0001b",
  );
  assert.deepEqual(
    [true, false, undefined].map((value) => written((writer) => flag(writer, 2, value))),
    ["\u0010\u0001", "", ""],
  );
});

test("extensions are those fields that begin with x-, as YAML", () => {
  const found = written((writer) => writeExtensions(writer, 3, { type: "object", "x-other": [1], "x-kubernetes-a": true }));
  assert.match(found, /x-other.*- 1.*x-kubernetes-a.*true/s);
  assert.doesNotMatch(found, /object/);
});

test("encoded values are kept until there are a thousand of them", () => {
  let reads = 0;
  const value = {
    get often() {
      reads++;
      return "used";
    },
  };
  const readsOf = (write: () => void): number => {
    reads = 0;
    write();
    return reads;
  };
  const write = (one: unknown) => written((writer) => writeExtensions(writer, 1, { "x-a": one }));
  const kept = Math.min(...[1, 2].map(() => readsOf(() => write(value))));
  /** After how many other values it had to be encoded again. */
  const again: number[] = [];
  for (let i = 0; i < 3_000; i++) {
    write(`other ${i}`);
    if (readsOf(() => write(value)) > kept) again.push(i);
  }
  // The value that exceeds the limit and this one are the first of the next thousand.
  assert.deepEqual([again[1]! - again[0]!, again[2]! - again[1]!], [999, 999]);
});
