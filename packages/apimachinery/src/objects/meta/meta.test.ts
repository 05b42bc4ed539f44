import assert from "node:assert/strict";
import { test } from "node:test";
import { isContained } from "./contained.ts";
import { byCreation, createdAt } from "./creation.ts";
import { deepClone, deepEqual, semanticEqual, semanticEqualInSteps } from "./deep-equal.ts";
import { goQuote } from "./go-quote.ts";
import {
  compareKubeVersions,
  formatGroupResource,
  formatGroupVersion,
  groupVersionPath,
  parseGroupVersion,
  resourcePath,
  setKind,
} from "./group-version.ts";
import { parsePercent, scaledValue } from "./int-or-string.ts";
import { isJsonObject, jsonWord } from "./json-value.ts";
import { generateName, safeEncode } from "./names.ts";
import { keyOf, splitKey, toKey } from "./object-key.ts";
import { adoptPatch, controllerOf, isControlledBy, newControllerRef, releasePatch } from "./owner-references.ts";
import { parseResourceVersion, uint64Fault } from "./resource-version.ts";
import { withoutStars } from "./without-stars.ts";

test("generates names of at most 63 characters from an alphabet without vowels", () => {
  assert.match(generateName("web-"), /^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  assert.equal(generateName("x".repeat(100)).length, 63);
  assert.match(generateName(`${"x".repeat(57)}-`), /^x{57}-[a-z0-9]{5}$/);
  assert.match(generateName(`${"x".repeat(58)}-`), /^x{58}[a-z0-9]{5}$/);
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

test("an owner of another uid, and one that does not control, is no controller", () => {
  const of = (uid: string, controller?: boolean) => ({
    apiVersion: "v1",
    kind: "X",
    name: "rs",
    uid,
    ...(controller !== undefined && { controller }),
  });
  const pod = { metadata: { ownerReferences: [of("1"), of("2", false), of("3", true), of("4", true)] } };
  assert.equal(controllerOf(pod)?.uid, "3");
  assert.deepEqual(
    ["1", "2", "3", "4"].map((uid) => isControlledBy(pod, { metadata: { name: "rs", uid } })),
    [false, false, true, false],
  );
  assert.equal(isControlledBy({ metadata: {} }, { metadata: {} }), false);
});

test("adopting adds finalizers, releasing removes them and all references", () => {
  const reference = newControllerRef({ metadata: {} }, { group: "", version: "v1", kind: "X" });
  assert.deepEqual([reference.apiVersion, reference.name, reference.uid], ["v1", "", ""]);
  assert.deepEqual(adoptPatch(reference, "9", ["f"]), {
    metadata: { ownerReferences: [reference], uid: "9", finalizers: ["f"] },
  });
  assert.deepEqual(releasePatch(["1", "2"], "9", ["f", "g"]), {
    metadata: {
      uid: "9",
      ownerReferences: [
        { $patch: "delete", uid: "1" },
        { $patch: "delete", uid: "2" },
      ],
      "$deleteFromPrimitiveList/finalizers": ["f", "g"],
    },
  });
});

test("versions are ordered by stability, then by number, then come others by name", () => {
  const sorted = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v1gamma1"];
  assert.deepEqual(sorted.toReversed().sort(compareKubeVersions), sorted);
  assert.deepEqual(["v1beta1", "v1beta2"].sort(compareKubeVersions), ["v1beta2", "v1beta1"]);
  assert.equal(compareKubeVersions("v1", "v1"), 0);
});

test("groups and versions are written and read as in an apiVersion", () => {
  const core = { group: "", version: "v1" };
  const apps = { group: "apps", version: "v1" };
  for (const [gv, text, path] of [
    [core, "v1", "/api/v1"],
    [apps, "apps/v1", "/apis/apps/v1"],
  ] as const) {
    assert.equal(formatGroupVersion(gv), text);
    assert.deepEqual(parseGroupVersion(text), gv);
    assert.equal(groupVersionPath(gv), path);
    assert.deepEqual(setKind({}, { ...gv, kind: "X" }), { kind: "X", apiVersion: text });
  }
  assert.deepEqual(["", "a/b/c"].map(parseGroupVersion), [undefined, undefined]);
  assert.deepEqual(parseGroupVersion("a/"), { group: "a", version: "" });
  assert.equal(formatGroupResource({ group: "", resource: "pods" }), "pods");
  assert.equal(formatGroupResource({ group: "apps", resource: "deployments" }), "deployments.apps");
});

test("the path of a resource leaves out what it is not given, and escapes names", () => {
  const ref = { group: "apps", version: "v1", resource: "deployments" };
  for (const [target, want] of [
    [undefined, "/deployments"],
    [{ namespace: "web" }, "/namespaces/web/deployments"],
    [{ namespace: "", name: "", subresource: "" }, "/deployments"],
    [{ name: "a" }, "/deployments/a"],
    [{ namespace: "a/b", name: "c d", subresource: "scale" }, "/namespaces/a%2Fb/deployments/c%20d/scale"],
  ] as const) {
    assert.equal(resourcePath(ref, target), `/apis/apps/v1${want}`);
  }
});

test("a key names the namespace only when there is one", () => {
  assert.deepEqual([toKey("ns", "a"), toKey("", "a"), toKey(undefined, "a")], ["ns/a", "a", "a"]);
  assert.deepEqual([keyOf({ metadata: { namespace: "ns" } }), keyOf({ metadata: { name: "n" } })], ["ns/", "n"]);
  assert.deepEqual(splitKey("ns/a"), { namespace: "ns", name: "a" });
  assert.deepEqual(splitKey("a"), { namespace: "", name: "a" });
});

test("objects are sorted by their moment of creation, in whatever form it is written, then by name", () => {
  const of = (name: string, creationTimestamp?: string) => ({
    metadata: { name, ...(creationTimestamp !== undefined && { creationTimestamp }) },
  });
  const sorted = [
    of("z"),
    of("y", "2026-01-01T00:00:00Z"),
    of("a", "2026-01-01T00:00:01Z"),
    of("b", "2026-01-01T01:00:01+01:00"),
    of("c", "2026-01-01T00:00:01Z"),
    of("b", "2026-01-01T00:00:01.5Z"),
    of("a", "2026-01-01T00:00:02Z"),
  ];
  assert.deepEqual(sorted.toReversed().sort(byCreation), sorted);
  // An unset time is the epoch: of the same moment, the name decides.
  const epoch = "1970-01-01T00:00:00.000Z";
  const equals = [of("a"), of("b", epoch), of("c"), of("d", epoch), of("e", "never"), of("f", epoch)];
  assert.deepEqual(equals.toReversed().sort(byCreation), equals);
  assert.equal(createdAt(of("a", "1970-01-01T00:00:02Z")), 2000);
  assert.deepEqual([createdAt(of("a")), createdAt(of("a", ""))], [undefined, undefined]);
});

for (const { name, wanted, stored, want } of [
  { name: "fewer fields", wanted: { a: { b: 1 } }, stored: { a: { b: 1, c: 2 }, d: 3 }, want: true },
  { name: "another value deep within", wanted: { a: { b: 1, c: 1 } }, stored: { a: { b: 1, c: 2 } }, want: false },
  { name: "a field that is missing", wanted: { a: 1, b: 1 }, stored: { a: 1 }, want: false },
  { name: "an empty list for a missing one", wanted: { a: [] }, stored: {}, want: true },
  { name: "a shorter list", wanted: { a: [1] }, stored: { a: [1, 2] }, want: false },
  { name: "list items with fewer fields", wanted: { a: [{ b: 1 }] }, stored: { a: [{ b: 1, c: 2 }] }, want: false },
  { name: "a map where there is text", wanted: { a: { b: 1 } }, stored: { a: "b" }, want: false },
  { name: "a map where there is nothing", wanted: { a: {} }, stored: {}, want: false },
]) {
  test(`an object with ${name} is ${want ? "" : "not "}contained`, () => assert.equal(isContained(wanted, stored), want));
}

test("values are called as in Go's decoding errors; objects are neither null nor lists", () => {
  assert.deepEqual([[], true, "a", 1, 2n, {}].map(jsonWord), ["array", "bool", "string", "number", "number", "object"]);
  assert.deepEqual([{}, [], null, "a", undefined].map(isJsonObject), [true, false, false, false, false]);
});

test("only stars at the end are removed", () => {
  assert.deepEqual(["a*b**", "***", "a", "", "*a"].map(withoutStars), ["a*b", "", "a", "", "*a"]);
});

test("reads resource versions and refuses others with Go's texts", () => {
  assert.deepEqual(["", "0", "42", "007"].map(parseResourceVersion), [0, 0, 42, 7]);
  const text = 'resourceVersion: Invalid value: "a": strconv.ParseUint: parsing "a": invalid syntax';
  assert.throws(() => parseResourceVersion("a"), { message: text });
  assert.throws(() => parseResourceVersion("-1"), /invalid syntax/);
  assert.throws(() => parseResourceVersion("99999999999999999999"), /value out of range/);
  assert.equal(parseResourceVersion("9007199254740991"), Number.MAX_SAFE_INTEGER);
  assert.throws(() => parseResourceVersion("9007199254740992"), {
    message:
      'resourceVersion: Invalid value: "9007199254740992": strconv.ParseUint: parsing "9007199254740992": value out of range',
  });
  assert.equal(parseResourceVersion(`${"0".repeat(30)}9007199254740991`), Number.MAX_SAFE_INTEGER);
});

test("an unsigned integer has up to 64 bits", () => {
  for (const [text, why] of [
    ["18446744073709551615", undefined],
    [`${"0".repeat(30)}18446744073709551615`, undefined],
    ["18446744073709551616", "value out of range"],
    ["1".repeat(21), "value out of range"],
    ["", "invalid syntax"],
    ["1e3", "invalid syntax"],
    ["+1", "invalid syntax"],
  ] as const) {
    assert.equal(uint64Fault(text), why === undefined ? undefined : `strconv.ParseUint: parsing "${text}": ${why}`);
  }
});

test("a percentage is scaled to the total and rounded as requested", () => {
  assert.equal(scaledValue(3, 10, true), 3);
  assert.equal(scaledValue("25%", 10, true), 3);
  assert.equal(scaledValue("25%", 10, false), 2);
  assert.throws(() => scaledValue("25", 10, true), {
    message: "invalid value for IntOrString: invalid type: string is not a percentage",
  });
  assert.throws(() => scaledValue("a%%", 10, true), {
    message: 'invalid value for IntOrString: invalid value "a%%": strconv.Atoi: parsing "a%": invalid syntax',
  });
  assert.deepEqual([scaledValue("30%", 10, true), scaledValue("-25%", 10, true), scaledValue("-25%", 10, false)], [3, -2, -3]);
  assert.deepEqual([scaledValue("1%", 1, true), scaledValue("99%", 1, false), scaledValue("150%", 10, false)], [1, 0, 15]);
});

test("a percentage is a whole number with one percent sign", () => {
  for (const [text, want] of [
    ["0%", 0],
    ["25%", 25],
    ["+25%", 25],
    ["-1%", -1],
    ["1000%", 1000],
    ["2.5%", undefined],
    ["25", undefined],
    ["%", undefined],
    ["25%%", undefined],
    ["25 %", undefined],
    [" 25%", undefined],
    ["", undefined],
  ] as const) {
    assert.equal(parsePercent(text), want, text);
  }
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
  ["\x07\b\f\n\r\v\x7f", '"\\a\\b\\f\\n\\r\\v\\x7f"'],
  ["\u0080\u00a0", '"\\u0080\\u00a0"'],
  ["a\ud800b", '"a\ufffdb"'],
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
