import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError, decodeShape, type ObjectShape } from "./config-shape.ts";

const shape: ObjectShape = {
  goName: "Config",
  fields: {
    text: "string",
    wait: "duration",
    port: "int",
    share: "float",
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
    inner: { on: null, off: 1, more: [{ part: 0.5, parts: 1 }, { parts: 2 }] },
    whatever: { x: [1] },
    constructor: 1,
  };
  const decoded = decodeShape(written, shape, unknown);
  assert.deepEqual(decoded, {
    text: "a",
    wait: 90_000,
    names: ["b"],
    amounts: { c: 1, ["__proto__"]: 2 },
    inner: { more: [{ part: 0.5 }, {}] },
    whatever: { x: [1] },
  });
  assert.deepEqual(unknown, ["inner.off", "inner.more[0].parts", "inner.more[1].parts", "constructor"]);
});

test("integers are taken up to the ends of their types, and other numbers with a fraction", () => {
  for (const written of [
    { port: 2 ** 31 - 1, share: 0.5 },
    { port: -(2 ** 31), share: -1e10 },
    { amounts: { a: 2 ** 31 }, inner: { more: [{ part: 1 }] } },
  ]) {
    assert.deepEqual(decodeShape(written, shape, []), written);
  }
});

for (const { written, want } of [
  { written: { text: 1 }, want: "json: cannot unmarshal number into Go struct field Config.text of type string" },
  { written: { wait: "soon" }, want: 'time: invalid duration "soon"' },
  { written: { names: "a" }, want: "json: cannot unmarshal string into Go struct field Config.names of type []string" },
  { written: { amounts: [] }, want: "json: cannot unmarshal array into Go struct field Config.amounts of type map[string]int64" },
  {
    written: { amounts: { a: 0.5 } },
    want: "json: cannot unmarshal number 0.5 into Go struct field Config.amounts of type int64",
  },
  { written: { port: 2 ** 31 }, want: "json: cannot unmarshal number 2147483648 into Go struct field Config.port of type int32" },
  {
    written: { port: -(2 ** 31) - 1 },
    want: "json: cannot unmarshal number -2147483649 into Go struct field Config.port of type int32",
  },
  { written: { port: "1" }, want: "json: cannot unmarshal string into Go struct field Config.port of type int32" },
  { written: { share: "1" }, want: "json: cannot unmarshal string into Go struct field Config.share of type float32" },
  { written: { wait: 5 }, want: "json: cannot unmarshal number into Go struct field Config.wait of type string" },
  { written: { names: ["a", {}] }, want: "json: cannot unmarshal object into Go struct field Config.names of type string" },
  {
    written: { inner: { more: [{}, { part: "x" }] } },
    want: "json: cannot unmarshal string into Go struct field More.inner.more.part of type float64",
  },
  {
    written: { inner: { more: {} } },
    want: "json: cannot unmarshal object into Go struct field Inner.inner.more of type []More",
  },
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
