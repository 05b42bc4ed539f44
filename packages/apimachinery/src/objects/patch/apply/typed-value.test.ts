import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../../process/event-loop/steps.ts";
import fc from "../../../testing/fast-check.ts";
import { decodeJson } from "../../codec/json.ts";
import type { TypeDescriptor } from "../../schema/descriptor.ts";
import { scheme } from "../../schema/scheme.ts";
import { applyTypeOf, deducedType } from "./apply-type.ts";
import { compare, isSame } from "./compare.ts";
import { equal, type FieldSet, paths, setOf, union } from "./field-set.ts";
import { displayPath } from "./path-element.ts";
import { fieldSetOf, mergeInSteps, removeFieldsInSteps } from "./typed-value.ts";
import { validateTyped } from "./validate.ts";

const podKind = { group: "", version: "v1", kind: "Pod" };
const typeOf = (group: string, version: string, kind: string) =>
  applyTypeOf(scheme.kind({ group, version, kind }) as TypeDescriptor);
const pod = typeOf("", "v1", "Pod");
const service = typeOf("", "v1", "Service");
const configMap = typeOf("", "v1", "ConfigMap");
const shown = (set: FieldSet): string[] => paths(set).map(displayPath);
const decodedPod = (object: object) => decodeJson(JSON.stringify(object), podKind).object;

for (const { name, type, value, want } of [
  {
    name: "declared containers are owned by what is in them, free keys and items themselves too",
    type: pod,
    value: { metadata: { labels: { app: "x" } }, spec: { containers: [{ name: "c", env: [{ name: "A", value: "1" }] }] } },
    want: [
      ".metadata.labels.app",
      '.spec.containers[name="c"]',
      '.spec.containers[name="c"].name',
      '.spec.containers[name="c"].env[name="A"]',
      '.spec.containers[name="c"].env[name="A"].name',
      '.spec.containers[name="c"].env[name="A"].value',
    ],
  },
  {
    name: "keys that are not given have their default",
    type: service,
    value: { spec: { ports: [{ port: 80 }, { port: 53, protocol: "UDP" }] } },
    want: [
      '.spec.ports[port=53,protocol="UDP"]',
      '.spec.ports[port=80,protocol="TCP"]',
      '.spec.ports[port=53,protocol="UDP"].port',
      '.spec.ports[port=53,protocol="UDP"].protocol',
      '.spec.ports[port=80,protocol="TCP"].port',
    ],
  },
  {
    name: "atomic maps, structs and lists have one owner",
    type: service,
    value: { spec: { selector: { app: "x" }, clusterIPs: ["a"], externalIPs: [] } },
    want: [".spec.clusterIPs", ".spec.externalIPs", ".spec.selector"],
  },
  {
    name: "sets are owned item by item",
    type: pod,
    value: { metadata: { finalizers: ["b", "a"] } },
    want: ['.metadata.finalizers[="a"]', '.metadata.finalizers[="b"]'],
  },
  {
    name: "empty and null containers are leaves",
    type: pod,
    value: { metadata: { labels: {} }, spec: { securityContext: null, volumes: [{ name: "v", emptyDir: {} }] } },
    want: [
      ".metadata.labels",
      ".spec.securityContext",
      '.spec.volumes[name="v"]',
      '.spec.volumes[name="v"].emptyDir',
      '.spec.volumes[name="v"].name',
    ],
  },
  {
    name: "without a schema maps are granular and lists atomic",
    type: deducedType,
    value: { spec: { a: { b: 1, c: [1] }, d: {} } },
    want: [".spec", ".spec.a", ".spec.d", ".spec.a.b", ".spec.a.c"],
  },
]) {
  test(`fields of a configuration: ${name}`, () => {
    assert.deepEqual(shown(fieldSetOf(type, value)), want);
  });
}

for (const { name, type, value, want } of [
  { name: "fits", type: pod, value: { spec: { containers: [{ name: "c", ports: [{ containerPort: 80 }] }] } }, want: undefined },
  { name: "unknown field", type: pod, value: { spec: { foo: 1 } }, want: ".spec.foo: field not declared in schema" },
  {
    name: "of an object's unknown fields the first",
    type: pod,
    value: { spec: { foo: 1, bar: 1 } },
    want: ".spec.foo: field not declared in schema",
  },
  {
    name: "unknown field of an item",
    type: pod,
    value: { spec: { containers: [{ name: "c", foo: 1 }] } },
    want: '.spec.containers[name="c"].foo: field not declared in schema',
  },
  {
    name: "text for a number",
    type: pod,
    value: { spec: { priority: "high" } },
    want: ".spec.priority: expected numeric (int or float), got string",
  },
  {
    name: "number for a text",
    type: configMap,
    value: { data: { a: 1 } },
    want: ".data.a: expected string, got &value.valueUnstructured{Value:1}",
  },
  {
    name: "text for a boolean",
    type: pod,
    value: { spec: { hostNetwork: "yes" } },
    want: ".spec.hostNetwork: expected boolean, got &{yes}",
  },
  { name: "text for a map", type: pod, value: { spec: "x" }, want: ".spec: expected map, got &{x}" },
  {
    name: "map for a list",
    type: pod,
    value: { spec: { containers: {} } },
    want: ".spec.containers: expected list, got &{map[]}",
  },
  { name: "quantities may be numbers", type: pod, value: { spec: { overhead: { cpu: 1 } } }, want: undefined },
  {
    name: "map for a quantity",
    type: pod,
    value: { spec: { overhead: { cpu: { a: 1 } } } },
    want: ".spec.overhead.cpu: expected any scalar, got &{map[a:1]}",
  },
  ...[
    {
      value: [1, "x", null, true, { b: 1 }],
      got: '[]interface {}{1, "x", interface {}(nil), true, map[string]interface {}{"b":1}}',
    },
    { value: { b: "x", a: [] }, got: 'map[string]interface {}{"a":[]interface {}{}, "b":"x"}' },
    { value: false, got: "false" },
  ].map(({ value, got }) => ({
    name: `${JSON.stringify(value)} for a text`,
    type: configMap,
    value: { data: { a: value } },
    want: `.data.a: expected string, got &value.valueUnstructured{Value:${got}}`,
  })),
  ...[
    { value: true, got: "bool" },
    { value: [1], got: "[]interface {}" },
    { value: {}, got: "map[string]interface {}" },
  ].map(({ value, got }) => ({
    name: `${got} for a number`,
    type: pod,
    value: { spec: { priority: value } },
    want: `.spec.priority: expected numeric (int or float), got ${got}`,
  })),
  {
    name: "map for a boolean",
    type: pod,
    value: { spec: { hostNetwork: { b: [1, "x"], a: null } } },
    want: ".spec.hostNetwork: expected boolean, got &{map[a:<nil> b:[1 x]]}",
  },
  { name: "list for a map", type: pod, value: { spec: [1, [2]] }, want: ".spec: expected map, got &{[1 [2]]}" },
  {
    name: "text for an item",
    type: pod,
    value: { spec: { containers: [{ name: "c" }, "x"] } },
    want: ".spec.containers: element 1: associative list with keys may not have non-map elements",
  },
  ...[
    { value: null, want: "associative list without keys has an element that's an explicit null" },
    { value: ["a"], want: "not supported: associative list with lists as elements" },
    { value: { a: 1 }, want: "associative list without keys has an element that's a map type" },
  ].map(({ value, want }) => ({
    name: `${JSON.stringify(value)} in a set`,
    type: pod,
    value: { metadata: { finalizers: ["a", value] } },
    want: `.metadata.finalizers: element 1: ${want}`,
  })),
  {
    name: "item without its key",
    type: pod,
    value: { spec: { hostAliases: [{ hostnames: ["a"] }] } },
    want: '.spec.hostAliases: element 0: associative list with keys has an element that omits key field "ip" (and doesn\'t have default value)',
  },
  {
    name: "null item",
    type: pod,
    value: { spec: { containers: [null] } },
    want: ".spec.containers: element 0: associative list with keys may not have a null element",
  },
  {
    name: "the same item twice",
    type: pod,
    value: { spec: { containers: [{ name: "c", env: [{ name: "A" }, { name: "A" }] }] } },
    want: '.spec.containers[name="c"].env: duplicate entries for key [name="A"]',
  },
  {
    name: "all faults at once",
    type: pod,
    value: { metadata: { foo: 1 }, spec: { bar: 1 } },
    want: "errors:\n  .metadata.foo: field not declared in schema\n  .spec.bar: field not declared in schema",
  },
  {
    name: "the first thousand of many faults",
    type: pod,
    value: { spec: { containers: Array.from({ length: 1002 }, () => ({ name: "c" })) } },
    want: `errors:\n${'  .spec.containers: duplicate entries for key [name="c"]\n'.repeat(1000)}  and 1 more`,
  },
]) {
  test(`a configuration against its type: ${name}`, () => {
    if (want === undefined) validateTyped(type, value);
    else assert.throws(() => validateTyped(type, value), { message: want });
  });
}

const basePod = {
  metadata: { name: "p", labels: { app: "x" } },
  spec: {
    containers: [
      { name: "a", image: "1" },
      { name: "b", image: "1" },
    ],
    securityContext: {},
  },
};

for (const { name, change, added = [], modified = [], removed = [] } of [
  { name: "nothing", change: {} },
  {
    name: "fields that Go omits are no change",
    change: { spec: { ...basePod.spec, hostNetwork: false, nodeSelector: {}, tolerations: [] } },
  },
  { name: "a scalar", change: { spec: { ...basePod.spec, nodeName: "n" } }, added: [".spec.nodeName"] },
  {
    name: "an item",
    change: { spec: { ...basePod.spec, containers: [{ name: "b", image: "2" }] } },
    modified: ['.spec.containers[name="b"].image'],
    removed: [
      '.spec.containers[name="a"]',
      '.spec.containers[name="a"].image',
      '.spec.containers[name="a"].name',
      '.spec.containers[name="a"].resources',
    ],
  },
  {
    name: "the order of items",
    change: { spec: { ...basePod.spec, containers: basePod.spec.containers.toReversed() } },
  },
  {
    name: "a map and its keys",
    change: { metadata: { name: "p", annotations: { a: "b" } } },
    added: [".metadata.annotations", ".metadata.annotations.a"],
    removed: [".metadata.labels", ".metadata.labels.app"],
  },
  {
    name: "inside a struct that was empty",
    change: { spec: { ...basePod.spec, securityContext: { runAsUser: 0 } } },
    added: [".spec.securityContext.runAsUser"],
  },
  {
    name: "atomic lists",
    change: { spec: { ...basePod.spec, tolerations: [{ key: "a" }] } },
    added: [".spec.tolerations"],
  },
]) {
  test(`comparison: ${name}`, () => {
    const a = decodedPod(basePod);
    const b = decodedPod({ ...basePod, ...change });
    const comparison = compare(pod, a, b);
    assert.deepEqual(
      { added: shown(comparison.added), modified: shown(comparison.modified), removed: shown(comparison.removed) },
      { added, modified, removed },
    );
  });
}

test("a struct without omitempty exists before it has fields", () => {
  const deployment = typeOf("apps", "v1", "Deployment");
  const { added } = compare(
    deployment,
    { metadata: {} },
    { metadata: {}, spec: { strategy: { type: "Recreate" }, paused: false } },
  );
  assert.deepEqual(shown(added), [".spec.strategy.type"]);
});

test("the same port twice cannot be distinguished", () => {
  const twice = { spec: { ports: [{ port: 80 }, { port: 80 }] } };
  assert.throws(() => compare(service, {}, twice), {
    message: '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
  });
});

test("keys of Object.prototype are not fields", () => {
  const weird = JSON.parse('{"data":{"__proto__":"x","constructor":"y","toString":"z"}}');
  assert.deepEqual(shown(compare(configMap, { data: { a: "b" } }, weird).added), [
    ".data.__proto__",
    ".data.constructor",
    ".data.toString",
  ]);
  const merged = atOnce(mergeInSteps(configMap, { data: { a: "b" } }, weird)) as { data: object };
  assert.deepEqual(Object.keys(merged.data), ["a", "__proto__", "constructor", "toString"]);
  assert.equal(Object.getPrototypeOf(merged.data), Object.prototype);
});

for (const { name, live, config, want } of [
  {
    name: "scalars are replaced",
    live: { spec: { nodeName: "a" } },
    config: { spec: { nodeName: "b" } },
    want: { spec: { nodeName: "b" } },
  },
  {
    name: "maps and structs are joined",
    live: { metadata: { labels: { a: "1" } } },
    config: { metadata: { labels: { b: "2" } }, spec: { nodeName: "n" } },
    want: { metadata: { labels: { a: "1", b: "2" } }, spec: { nodeName: "n" } },
  },
  {
    name: "items keep their places and new ones come after",
    live: { spec: { containers: [{ name: "a", image: "1" }, { name: "b" }] } },
    config: { spec: { containers: [{ name: "c" }, { name: "b", image: "2" }] } },
    want: { spec: { containers: [{ name: "a", image: "1" }, { name: "b", image: "2" }, { name: "c" }] } },
  },
  {
    name: "atomic lists are replaced",
    live: { spec: { tolerations: [{ key: "a" }] } },
    config: { spec: { tolerations: [{ key: "b" }] } },
    want: { spec: { tolerations: [{ key: "b" }] } },
  },
  {
    name: "null does not clear a map",
    live: { metadata: { labels: { a: "1" } } },
    config: { metadata: { labels: null } },
    want: { metadata: { labels: { a: "1" } } },
  },
  {
    name: "null does not clear a struct",
    live: { spec: { nodeName: "a" } },
    config: { spec: null },
    want: { spec: { nodeName: "a" } },
  },
  {
    name: "null makes way for a map and a struct",
    live: { metadata: { labels: null }, spec: null },
    config: { metadata: { labels: { a: "1" } }, spec: { nodeName: "a" } },
    want: { metadata: { labels: { a: "1" } }, spec: { nodeName: "a" } },
  },
  {
    name: "null takes the place of a scalar",
    live: { spec: { priority: 1 } },
    config: { spec: { priority: null } },
    want: { spec: { priority: null } },
  },
]) {
  test(`merge: ${name}`, () => {
    const before = JSON.stringify([live, config]);
    assert.deepEqual(atOnce(mergeInSteps(pod, live, config)), want);
    assert.equal(JSON.stringify([live, config]), before);
  });
}

test("removing fields turns emptied containers into null and removes items", () => {
  const value = { metadata: { name: "p", labels: { a: "1" } }, spec: { containers: [{ name: "a" }, { name: "b", image: "1" }] } };
  const set = setOf(
    ["f:metadata", "f:labels", "f:a"],
    ["f:spec", "f:containers", 'k:{"name":"a"}'],
    ["f:spec", "f:containers", 'k:{"name":"b"}', "f:image"],
  );
  assert.deepEqual(atOnce(removeFieldsInSteps(pod, value, set)), {
    metadata: { name: "p", labels: null },
    spec: { containers: [{ name: "b" }] },
  });
});

const scalar = fc.constantFrom("", "1", "2");
const container = fc.record(
  {
    name: fc.constantFrom("a", "b", "c"),
    image: scalar,
    args: fc.array(scalar, { maxLength: 2 }),
    env: fc.uniqueArray(fc.record({ name: fc.constantFrom("A", "B"), value: scalar }), { selector: (e) => e.name, maxLength: 2 }),
    resources: fc.record(
      { limits: fc.dictionary(fc.constantFrom("cpu", "memory"), fc.constantFrom("1", "2")) },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ["name"] },
);
const somePod = fc.record(
  {
    metadata: fc.record(
      {
        labels: fc.dictionary(fc.constantFrom("a", "b", "__proto__"), scalar),
        finalizers: fc.uniqueArray(fc.constantFrom("x", "y")),
      },
      { requiredKeys: [] },
    ),
    spec: fc.record(
      { containers: fc.uniqueArray(container, { selector: (c) => c.name }), nodeName: scalar, hostNetwork: fc.boolean() },
      { requiredKeys: ["containers"] },
    ),
  },
  { requiredKeys: ["spec"] },
);

test("a comparison is empty for equal objects, and its mirror image the other way round", () => {
  fc.assert(
    fc.property(somePod, somePod, (x, y) => {
      const [a, b] = [decodedPod(x), decodedPod(y)];
      assert.ok(isSame(compare(pod, a, decodedPod(x))));
      const there = compare(pod, a, b);
      const back = compare(pod, b, a);
      assert.ok(equal(there.added, back.removed));
      assert.ok(equal(there.removed, back.added));
      assert.ok(equal(there.modified, back.modified));
    }),
  );
});

test("a merged object has every field of its parts, and merging again changes nothing", () => {
  fc.assert(
    fc.property(somePod.map(withoutEmpty), somePod.map(withoutEmpty), (live, config) => {
      const merged = atOnce(mergeInSteps(pod, live, config));
      validateTyped(pod, merged);
      assert.equal(JSON.stringify(atOnce(mergeInSteps(pod, merged, config))), JSON.stringify(merged));
      const both = union(fieldSetOf(pod, live), fieldSetOf(pod, config));
      assert.deepEqual(shown(fieldSetOf(pod, merged)), shown(both));
    }),
  );
});

/** Removes empty containers, which are members only while they are empty. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, held]): [string, unknown] => [key, withoutEmpty(held)]);
  return Object.fromEntries(
    entries.filter(([, held]) => typeof held !== "object" || held === null || Object.keys(held).length > 0),
  );
}

for (const { name, from, to, want } of [
  { name: "a map that becomes a value", from: { k: { a: 1 } }, to: { k: "x" }, want: [[], [".k"], [".k.a"]] },
  { name: "a value that becomes a map", from: { k: "x" }, to: { k: { a: 1 } }, want: [[".k.a"], [".k"], []] },
]) {
  test(`without a schema, ${name} differs with the fields of the map`, () => {
    const { added, modified, removed } = compare(deducedType, from, to);
    assert.deepEqual([added, modified, removed].map(shown), want);
  });
}

test("without a schema, fields are removed from maps only, and not from those that are one value", () => {
  const fields = setOf(["f:a"]);
  const without = (value: unknown, atomic = false): unknown =>
    atOnce(removeFieldsInSteps({ kind: "any", atomic }, value, fields));
  assert.deepEqual(
    [without({ a: 1, b: 2 }), without({ a: 1, b: 2 }, true), without([1]), without("x")],
    [{ b: 2 }, null, null, "x"],
  );
});
