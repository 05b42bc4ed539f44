import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError, decodeShape, type ObjectShape } from "./config-shape.ts";

const shape: ObjectShape = {
  goName: "Config",
  fields: {
    text: "string",
    wait: "duration",
    names: ["string"],
    amounts: { mapOf: "int64" },
    inner: { goName: "Inner", fields: { on: "bool", more: [{ goName: "More", fields: { part: "float64" } }] } },
    whatever: "any",
  },
};

test("a file is decoded by its shape: durations in milliseconds, null as absent, unknown fields reported", () => {
  const unknown: string[] = [];
  const written = {
    text: "a",
    wait: "1m30s",
    names: ["b"],
    amounts: { c: 1, ["__proto__"]: 2 },
    inner: { on: null, off: 1, more: [{ part: 0.5, parts: 1 }] },
    whatever: { x: [1] },
    constructor: 1,
  };
  const decoded = decodeShape(written, shape, unknown);
  assert.deepEqual(decoded, {
    text: "a",
    wait: 90_000,
    names: ["b"],
    amounts: { c: 1, ["__proto__"]: 2 },
    inner: { more: [{ part: 0.5 }] },
    whatever: { x: [1] },
  });
  assert.deepEqual(unknown, ["inner.off", "inner.more[0].parts", "constructor"]);
});

for (const { written, want } of [
  { written: { text: 1 }, want: "json: cannot unmarshal number into Go struct field Config.text of type string" },
  { written: { wait: "soon" }, want: 'time: invalid duration "soon"' },
  { written: { names: "a" }, want: "json: cannot unmarshal string into Go struct field Config.names of type []string" },
  { written: { amounts: [] }, want: "json: cannot unmarshal array into Go struct field Config.amounts of type map[string]int64" },
  { written: { amounts: { a: 0.5 } }, want: "json: cannot unmarshal number into Go struct field Config.amounts of type int64" },
  { written: { inner: true }, want: "json: cannot unmarshal bool into Go struct field Config.inner of type Inner" },
  { written: { inner: { on: "yes" } }, want: "json: cannot unmarshal string into Go struct field Inner.inner.on of type bool" },
]) {
  test(`a value of another type: ${JSON.stringify(written)}`, () => {
    assert.throws(
      () => decodeShape(written, shape, []),
      (err) => err instanceof DecodeError && err.message === want,
    );
  });
}
