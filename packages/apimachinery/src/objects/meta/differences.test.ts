import assert from "node:assert/strict";
import { test } from "node:test";
import { differencesText } from "./differences.ts";

for (const { name, stored, next, want } of [
  { name: "nothing of equal objects", stored: { a: 1 }, next: { a: 1 }, want: "" },
  { name: "nothing of what is absent here and empty there", stored: { a: [], b: null }, next: { c: {} }, want: "" },
  {
    name: "the path of a field, with both values",
    stored: { containers: [{ name: "c", image: "a" }, { name: "d" }] },
    next: { containers: [{ name: "c", image: "b" }, { name: "d" }] },
    want: '  containers[0].image: "a" -> "b"',
  },
  {
    name: "fields that only one of them has",
    stored: { args: ["a"], hostname: "x" },
    next: { args: ["a", "b"], terms: { port: 1 } },
    want: '  args[1]: unset -> "b"\n  hostname: "x" -> unset\n  terms: unset -> {"port":1}',
  },
  {
    name: "keys that are no names of fields in quotes",
    stored: { nodeSelector: { "a.b/c": "1" } },
    next: { nodeSelector: { "a.b/c": "2" } },
    want: '  nodeSelector["a.b/c"]: "1" -> "2"',
  },
  { name: "a list in place of an object", stored: { a: { b: 1 } }, next: { a: [1] }, want: '  a: {"b":1} -> [1]' },
  {
    name: "keys that every object has by birth",
    stored: { a: {}, b: 1 },
    next: JSON.parse('{"constructor":1,"b":1}'),
    want: "  constructor: unset -> 1",
  },
  { name: "integers beyond 2^53", stored: { a: 1n }, next: { a: 9_007_199_254_740_993n }, want: "  a: 1 -> 9007199254740993" },
  { name: "null as unset", stored: { a: null }, next: { a: 1 }, want: "  a: unset -> 1" },
  { name: "values that are no objects", stored: "a", next: "b", want: '  : "a" -> "b"' },
]) {
  test(`a difference: ${name}`, () => assert.equal(differencesText(stored, next), want));
}

test("long values are cut, and of many differences the first are shown", () => {
  const text = differencesText({ a: "x" }, { a: "y".repeat(1000) });
  assert.equal(text, `  a: "x" -> "${"y".repeat(119)}…`);
  assert.equal(differencesText({ a: "x" }, { a: "y".repeat(118) }), `  a: "x" -> "${"y".repeat(118)}"`);
  const many = differencesText({ list: Array(20).fill(1) }, { list: Array(20).fill(2) }).split("\n");
  assert.deepEqual([many.length, many[15], many[16]], [17, "  list[15]: 1 -> 2", "  and 4 more"]);
  const of = (count: number) => differencesText({ list: Array(count).fill(1) }, { list: [] }).split("\n");
  assert.equal(of(16).length, 16);
  assert.equal(of(17).at(-1), "  and 1 more");
  assert.equal(of(999).at(-1), "  and 983 more");
  assert.equal(of(1001).at(-1), "  and at least 984 more");
});
