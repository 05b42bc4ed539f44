import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { cpuMsOf } from "../../../testing/cpu-time.ts";
import fc from "../../../testing/fast-check.ts";
import {
  difference,
  emptySet,
  equal,
  type FieldSet,
  has,
  intersection,
  paths,
  readFieldsV1,
  recursiveDifference,
  setOf,
  toFieldsV1,
  union,
} from "./field-set.ts";
import { compareElements, displayPath, keyElement, type Path, readElement, sortElements, valueElement } from "./path-element.ts";

const text = (set: FieldSet): string => JSON.stringify(toFieldsV1(set));

test("FieldsV1 has the field itself first, then fields, keys and values in order", () => {
  const set = setOf(
    ["f:spec", "f:ports", 'k:{"port":8080,"protocol":"TCP"}'],
    ["f:spec", "f:ports", 'k:{"port":80,"protocol":"UDP"}'],
    ["f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:port"],
    ["f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}'],
    ["f:spec", "f:ports"],
    ["f:metadata", "f:finalizers", 'v:"b"'],
    ["f:metadata", "f:finalizers", "v:10"],
    ["f:metadata", "f:finalizers", "v:9"],
    ["f:metadata", "f:labels", "f:app"],
  );
  assert.equal(
    text(set),
    '{"f:metadata":{"f:finalizers":{"v:9":{},"v:10":{},"v:\\"b\\"":{}},"f:labels":{"f:app":{}}},' +
      '"f:spec":{"f:ports":{".":{},"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:port":{}},' +
      '"k:{\\"port\\":80,\\"protocol\\":\\"UDP\\"}":{},"k:{\\"port\\":8080,\\"protocol\\":\\"TCP\\"}":{}}}}',
  );
});

for (const { name, fields, want } of [
  { name: "an empty object is a leaf", fields: { "f:a": {} }, want: [".a"] },
  { name: "a dot is the field itself", fields: { "f:a": { ".": {}, "f:b": {} } }, want: [".a", ".a.b"] },
  { name: "without it only what is below counts", fields: { "f:a": { "f:b": {} } }, want: [".a.b"] },
  { name: "only a dot is a leaf too", fields: { "f:a": { ".": {} } }, want: [".a"] },
  { name: "unknown steps are left out", fields: { "f:a": {}, "x:b": {} }, want: [".a"] },
  { name: "keys are sorted by name", fields: { 'k:{"b":1, "a":"x"}': {} }, want: ['[a="x",b=1]'] },
  { name: "null is a leaf", fields: { "f:a": null }, want: [".a"] },
  { name: "nothing at all", fields: {}, want: [] },
  { name: "a positions", fields: { "i:007": {} }, want: ["[7]"] },
  { name: "fields of odd names", fields: { "f:__proto__": {}, "f:": {}, "f:a/b": {} }, want: [".", ".__proto__", ".a/b"] },
  { name: "escapes that mean the same", fields: { 'v:"\\u0061"': {} }, want: ['[="a"]'] },
]) {
  test(`reading FieldsV1: ${name}`, () => assert.deepEqual(paths(readFieldsV1(fields)).map(displayPath), want));
}

for (const { fields, want } of [
  { fields: { f: {} }, want: "key must be 2 characters long:" },
  { fields: { foo: {} }, want: "missing colon: foo" },
  { fields: { "k:[]": {} }, want: /expected an object/ },
  { fields: { "k:{": {} }, want: /JSON/ },
  { fields: { "i:x": {} }, want: /invalid syntax/ },
  { fields: { "f:a": 1 }, want: /expected an object of fields/ },
  { fields: { "f:a": { "f:b": 9007199254740993n } }, want: /expected an object of fields at f:b/ },
]) {
  test(`FieldsV1 that is none: ${inspect(fields)}`, () => {
    assert.throws(() => readFieldsV1(fields), { message: want });
  });
}

test("steps that hold HTML are written as Go writes them", () => {
  assert.equal(valueElement("<&>"), 'v:"\\u003c\\u0026\\u003e"');
  assert.equal(readElement('v:"<&>"'), valueElement("<&>"));
  assert.equal(keyElement([["name", "é"]]), 'k:{"name":"é"}');
});

test("removing a parent keeps its children, unless it is recursive", () => {
  const set = setOf(["f:a", "f:b"], ["f:a"], ["f:c"]);
  assert.deepEqual(paths(difference(set, setOf(["f:a"]))).map(displayPath), [".c", ".a.b"]);
  assert.deepEqual(paths(recursiveDifference(set, setOf(["f:a"]))).map(displayPath), [".c"]);
});

test("sets do not change, and what stays the same is the same object", () => {
  const a = setOf(["f:a", "f:b"], ["f:c"]);
  assert.equal(union(a, emptySet), a);
  assert.equal(union(a, setOf(["f:c"])), a);
  assert.equal(difference(a, setOf(["f:x"])), a);
  assert.equal(readFieldsV1(toFieldsV1(a)), readFieldsV1(toFieldsV1(a)));
  const before = text(a);
  difference(a, setOf(["f:a", "f:b"]));
  union(a, setOf(["f:a", "f:d"]));
  assert.equal(text(setOf(["f:a", "f:b"], ["f:c"])), before);
});

const element = fc.oneof(
  fc.constantFrom("f:a", "f:b", "f:__proto__", "f:\u{1F600}", "f:\uffee"),
  fc.constantFrom("a", "b", "a-", "a b").map((name) => keyElement([["name", name]])),
  fc.integer({ min: 0, max: 12 }).map(valueElement),
);
const path = fc.array(element, { minLength: 1, maxLength: 4 });
const somePaths = fc.array(path, { maxLength: 12 });
const model = (list: readonly Path[]): Set<string> => new Set(list.map((p) => p.join("\n")));
const members = (set: FieldSet): Set<string> => model(paths(set));

test("union, intersection and differences of field sets match the same operations on sets of paths", () => {
  fc.assert(
    fc.property(somePaths, somePaths, (left, right) => {
      const [a, b] = [setOf(...left), setOf(...right)];
      const [x, y] = [model(left), model(right)];
      assert.deepEqual(members(union(a, b)), sorted(x.union(y), union(a, b)));
      assert.deepEqual(members(intersection(a, b)), sorted(x.intersection(y), intersection(a, b)));
      assert.deepEqual(members(difference(a, b)), sorted(x.difference(y), difference(a, b)));
      const kept = [...x].filter((p) => ![...y].some((q) => p === q || p.startsWith(`${q}\n`)));
      assert.deepEqual(new Set([...members(recursiveDifference(a, b))].sort()), new Set(kept.sort()));
      for (const p of left) assert.ok(has(a, p));
      for (const p of right) assert.equal(has(a, p), x.has(p.join("\n")));
      assert.equal(equal(a, b), x.size === y.size && x.isSubsetOf(y));
    }),
  );
});

/** The members of `want` in the order of `set`. */
function sorted(want: Set<string>, set: FieldSet): Set<string> {
  assert.equal(want.size, paths(set).length);
  return new Set([...members(set)].filter((p) => want.has(p)));
}

test("a set reads back from its FieldsV1, whatever the order of its keys", () => {
  fc.assert(
    fc.property(somePaths, (list) => {
      const set = setOf(...list);
      const written = toFieldsV1(set);
      assert.ok(equal(readFieldsV1(JSON.parse(JSON.stringify(written))), set));
      assert.ok(equal(readFieldsV1(reversed(written)), set));
      assert.equal(text(setOf(...list.toReversed())), JSON.stringify(written));
    }),
  );
});

function reversed(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields)
      .reverse()
      .map(([key, value]) => [key, reversed(value as Record<string, unknown>)]),
  );
}

test("the order of steps is a total order", () => {
  fc.assert(
    fc.property(element, element, element, (a, b, c) => {
      assert.equal(Math.sign(compareElements(a, b)), -Math.sign(compareElements(b, a)) + 0);
      if (compareElements(a, b) <= 0 && compareElements(b, c) <= 0) assert.ok(compareElements(a, c) <= 0);
    }),
  );
});

test("steps are ordered by their kind, then by value: numbers, texts, booleans, lists, maps, null", () => {
  const values = '-1 2 10 "a" "b" false true [] [1] [1,2] [2] {} {"a":1} {"a":2} {"a":2,"b":0} {"b":0} null'.split(" ");
  const keys = ['{"a":1}', '{"a":1,"b":2}', '{"a":2}', '{"a":"1"}', '{"b":0}', '{"b":[1]}', '{"b":{"x":1}}', '{"b":null}'];
  const steps = [
    ...["f:", "f:a", "f:a0", "f:b", "f:\uffff", "f:\u{1f600}"],
    ...keys.map((key) => `k:${key}`),
    ...values.map((value) => `v:${value}`),
    ...["i:0", "i:2", "i:10"],
  ];
  for (const step of steps) assert.equal(readElement(step), step, "it is canonical");
  const mixed = steps.map((step, i) => [(i * 13) % 31, step] as const).sort(([a], [b]) => a - b);
  const shuffled = mixed.map(([, step]) => step);
  assert.deepEqual(shuffled.toSorted(compareElements), steps);
  assert.deepEqual(sortElements([...shuffled]), steps);
});

test("steps are put in this order, however many and of whatever kind", () => {
  fc.assert(
    fc.property(fc.array(element), (steps) => {
      assert.deepEqual(sortElements([...steps]), steps.toSorted(compareElements));
    }),
  );
  const many = Array.from({ length: 100_000 }, (_, i) => `k:{"port":${(i * 7919) % 100_000}}`);
  // Parsing two elements for each comparison takes seconds.
  const tookMs = cpuMsOf(() => sortElements(many));
  assert.ok(tookMs < 1500, `${tookMs} ms`);
  assert.deepEqual(many.slice(0, 2), ['k:{"port":0}', 'k:{"port":1}']);
});
