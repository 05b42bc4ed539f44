import assert from "node:assert/strict";
import { test } from "node:test";
import { dropManagedFields, parseWire, stringifyWire } from "./wire-json.ts";

for (const [text, want] of [
  ["9007199254740991", 9007199254740991],
  ["9007199254740992", 9007199254740992n],
  ["9007199254740993", 9007199254740993n],
  ["-9007199254740991", -9007199254740991],
  ["-9007199254740993", -9007199254740993n],
  ["9223372036854775807", 9223372036854775807n],
  ["-9223372036854775808", -9223372036854775808n],
] as const) {
  test(`the integer ${text} is read and written exactly, wherever it is`, () => {
    for (const [before, after] of [
      ['{"a":', "}"],
      ["[", "]"],
      ["[1, ", "]"],
      ['{"a":{"b":\n [0,', "]}}"],
    ] as const) {
      const parsed = parseWire(before + text + after);
      assert.equal([parsed].flatMap(leaves).at(-1), want);
      assert.equal(stringifyWire(parsed), (before + text + after).replaceAll(/\s/g, ""));
    }
  });
}

test("large numbers with a fraction or an exponent, and digits within text, stay what they are", () => {
  assert.deepEqual(parseWire('{"a":1e300,"b":1234567890123456.5,"c":"x: 9007199254740993","d":18446744073709551616.0}'), {
    a: 1e300,
    b: 1234567890123456.5,
    c: "x: 9007199254740993",
    d: 2 ** 64,
  });
});

test("what cannot be written is an error, other than integers", () => {
  const loop: unknown[] = [1n];
  loop.push(loop);
  assert.throws(() => stringifyWire(loop), TypeError);
  const failing = { toJSON: () => assert.fail("its own error") };
  assert.throws(() => stringifyWire(failing), /its own error/);
});

test("managed fields are dropped from an object and from each item of a list, nowhere else", () => {
  const of = () => ({ metadata: { name: "a", managedFields: [{}] }, spec: { metadata: { managedFields: [] } } });
  const list = { metadata: { managedFields: [] }, items: [of(), of(), null, {}] };
  dropManagedFields(list);
  const bare = { metadata: { name: "a" }, spec: { metadata: { managedFields: [] } } };
  assert.deepEqual(list, { metadata: {}, items: [bare, bare, null, {}] });
  for (const value of [null, undefined, "text", { metadata: null }]) assert.doesNotThrow(() => dropManagedFields(value));
});

function leaves(value: unknown): unknown[] {
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [value];
}
