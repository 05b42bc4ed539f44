import assert from "node:assert/strict";
import { test } from "node:test";
import { deepClone, deepEqual, semanticEqual, semanticEqualInSteps } from "./deep-equal.ts";
import { goQuote } from "./go-quote.ts";
import { scaledValue } from "./int-or-string.ts";
import { generateName, safeEncode } from "./names.ts";
import { adoptPatch, controllerOf, isControlledBy, newControllerRef, releasePatch } from "./owner-references.ts";
import { parseResourceVersion } from "./resource-version.ts";

test("generates names of at most 63 characters from an alphabet without vowels", () => {
  assert.match(generateName("web-"), /^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  assert.equal(generateName("x".repeat(100)).length, 63);
  assert.notEqual(generateName("a"), generateName("a"));
});

test("finds the controlling owner among others", () => {
  const owner = { metadata: { name: "rs", uid: "1" } };
  const reference = newControllerRef(owner, { group: "apps", version: "v1", kind: "ReplicaSet" });
  const pod = { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "X", name: "x", uid: "2" }, reference] } };
  assert.deepEqual(controllerOf(pod), { ...reference, apiVersion: "apps/v1", controller: true, blockOwnerDeletion: true });
  assert.equal(isControlledBy(pod, owner), true);
  assert.equal(isControlledBy({ metadata: {} }, owner), false);
  assert.deepEqual(adoptPatch(reference, "9"), { metadata: { ownerReferences: [reference], uid: "9" } });
  assert.deepEqual(releasePatch(["1"], "9"), { metadata: { uid: "9", ownerReferences: [{ $patch: "delete", uid: "1" }] } });
});

test("reads resource versions and refuses others with Go's texts", () => {
  assert.deepEqual(["", "0", "42", "007"].map(parseResourceVersion), [0, 0, 42, 7]);
  const text = 'resourceVersion: Invalid value: "a": strconv.ParseUint: parsing "a": invalid syntax';
  assert.throws(() => parseResourceVersion("a"), { message: text });
  assert.throws(() => parseResourceVersion("-1"), /invalid syntax/);
  assert.throws(() => parseResourceVersion("99999999999999999999"), /value out of range/);
});

test("a percentage is scaled to the total and rounded as requested", () => {
  assert.equal(scaledValue(3, 10, true), 3);
  assert.equal(scaledValue("25%", 10, true), 3);
  assert.equal(scaledValue("25%", 10, false), 2);
  assert.throws(() => scaledValue("25", 10, true), {
    message: "invalid value for IntOrString: invalid type: string is not a percentage",
  });
});

for (const { name, a, b, deep, semantic } of [
  { name: "nested and equal", a: { x: [1, { y: "z" }] }, b: { x: [1, { y: "z" }] }, deep: true, semantic: true },
  { name: "undefined is absent", a: { x: undefined }, b: {}, deep: true, semantic: true },
  { name: "null is not absent, but semantically", a: { x: null }, b: {}, deep: false, semantic: true },
  { name: "an empty list", a: { x: [] }, b: {}, deep: false, semantic: true },
  { name: "an empty map for null", a: { x: {} }, b: { x: null }, deep: false, semantic: true },
  { name: "order of a list", a: [1, 2], b: [2, 1], deep: false, semantic: false },
  { name: "one key more", a: { x: 1 }, b: { x: 1, y: 2 }, deep: false, semantic: false },
  { name: "a prototype's name as key", a: {}, b: { constructor: "x" }, deep: false, semantic: false },
  { name: "zero and absent", a: { x: 0 }, b: {}, deep: false, semantic: false },
  { name: "list and map", a: [1], b: { 0: 1 }, deep: false, semantic: false },
]) {
  test(`compares: ${name}`, () => {
    assert.deepEqual([deepEqual(a, b), deepEqual(b, a)], [deep, deep]);
    assert.deepEqual([semanticEqual(a, b), semanticEqual(b, a)], [semantic, semantic]);
  });
}

test("clones without sharing, and without letting a key change a prototype", () => {
  const original = JSON.parse('{"a":[{"b":1}],"__proto__":{"polluted":true},"n":null}');
  original.big = 10n;
  const copy = deepClone(original);
  assert.ok(deepEqual(copy, original));
  assert.notEqual(copy.a[0], original.a[0]);
  assert.equal(copy.polluted, undefined);
  assert.ok(Object.hasOwn(copy, "__proto__"));
});

for (const [text, want] of [
  ['a"b\\', '"a\\"b\\\\"'],
  ["tab\there\u0001", '"tab\\there\\x01"'],
  ["grüße 😀", '"grüße 😀"'],
  ["\u200b\u{e0001}", '"\\u200b\\U000e0001"'],
] as const) {
  test(`quotes ${JSON.stringify(text)} as Go does`, () => assert.equal(goQuote(text), want));
}

test("a checksum is written with letters and digits that spell no words", () => {
  assert.equal(safeEncode("0123456789"), "456789bcdf");
});

test("deepClone copies objects of many keys with their order, and __proto__ as a plain key", () => {
  const original = JSON.parse(
    `{"b":1,${Array.from({ length: 1000 }, (_, i) => `"k${i}":{"n":[${i}]}`).join()},"__proto__":{"a":1}}`,
  );
  const copy = deepClone(original);
  assert.equal(JSON.stringify(copy), JSON.stringify(original));
  assert.ok(Object.hasOwn(copy, "__proto__"));
  assert.equal(Object.getPrototypeOf(copy), Object.prototype);
  copy.k7.n.push(1);
  assert.deepEqual(original.k7.n, [7]);
});

test("large values are compared semantically in steps as at once", () => {
  const many = (value: (at: number) => unknown): Record<string, unknown> =>
    Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`k${at}`, value(at)]));
  const values = [
    many(() => "v"),
    many((at) => (at === 9_999 ? "w" : "v")),
    many((at) => ({ list: at === 5 ? [] : [at, { a: null }] })),
    many((at) => ({ list: at === 5 ? undefined : [at, { a: {} }] })),
    many((at) => ({ list: at === 5 ? null : [at, {}], more: [] })),
    many((at) => [at]),
    many((at) => ({ 0: at, length: 1 })),
    Object.values(many((at) => at)),
    Object.values(many((at) => at)).slice(1),
  ];
  for (const a of values) {
    for (const b of values) {
      const steps = semanticEqualInSteps(a, b);
      let count = 0;
      let step = steps.next();
      for (; !step.done; step = steps.next()) count++;
      assert.equal(step.value, semanticEqual(a, b));
      assert.ok(a === b || count > 0);
    }
  }
});
