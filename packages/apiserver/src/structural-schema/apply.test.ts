import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { applySchema, applySchemaToStoredInSteps } from "./apply.ts";
import { dropNulls, fillDefaults } from "./defaults.ts";
import { repeatedItems } from "./list-items.ts";
import { embeddedResourceFaults } from "./metadata.ts";
import { prune, unknownFields } from "./prune.ts";

const text = { type: "string" };

for (const { name, schema, value, want } of [
  {
    name: "a field that is missing takes its default, and so does what is below",
    schema: { properties: { a: { default: {}, properties: { b: { default: 1 } } } } },
    value: {},
    want: { a: { b: 1 } },
  },
  { name: "a value stays", schema: { properties: { a: { default: 1 } } }, value: { a: 0 }, want: { a: 0 } },
  {
    name: "a null that may not be one is as good as nothing",
    schema: { properties: { a: { default: 1 } } },
    value: { a: null },
    want: { a: 1 },
  },
  {
    name: "a null that may be one stays",
    schema: { properties: { a: { default: 1, nullable: true } } },
    value: { a: null },
    want: { a: null },
  },
  {
    name: "items have defaults",
    schema: { items: { properties: { a: { default: 1 } } } },
    value: [{}, { a: 2 }],
    want: [{ a: 1 }, { a: 2 }],
  },
  {
    name: "values of a map have defaults",
    schema: { additionalProperties: { properties: { a: { default: 1 } } } },
    value: { x: {}, y: { a: 3 } },
    want: { x: { a: 1 }, y: { a: 3 } },
  },
  {
    name: "values of maps in a list have defaults",
    schema: { items: { additionalProperties: { properties: { a: { default: 1 } } } } },
    value: [{ x: {} }],
    want: [{ x: { a: 1 } }],
  },
  {
    name: "nulls in a list and in a map are replaced where they may not be, and what is below has defaults too",
    schema: {
      properties: {
        list: { items: { default: { b: 1 }, properties: { a: { default: 2 } } } },
        scalars: { items: { default: 3 } },
        map: { additionalProperties: { default: {}, properties: { a: { default: 4 } } } },
        nullable: { additionalProperties: { default: 5, nullable: true } },
      },
    },
    value: { list: [null, {}], scalars: [null, 0], map: { x: null }, nullable: { x: null } },
    want: {
      ...{ list: [{ b: 1, a: 2 }, { a: 2 }], scalars: [3, 0] },
      ...{ map: { x: { a: 4 } }, nullable: { x: null } },
    },
  },
  {
    name: "a default of null is none, and a field named __proto__ is one like others",
    schema: { properties: { a: { default: null }, ["__proto__"]: { default: 1 } } },
    value: {},
    want: JSON.parse('{"__proto__":1}'),
  },
]) {
  test(`defaults: ${name}`, () => {
    fillDefaults(value, schema, "refuse");
    assert.deepEqual(value, want);
  });
}

test("each value has its own copy of a default", () => {
  const schema = { items: { properties: { a: { default: { list: [1] } } } } };
  const values: { a?: { list: number[] } }[] = [{}, {}];
  fillDefaults(values, schema, "refuse");
  values[0]?.a?.list.push(2);
  assert.deepEqual(values[1], { a: { list: [1] } });
  assert.deepEqual(schema.items.properties.a.default, { list: [1] });
});

test("defaults of more than 3 MiB are refused for an object that is written, and left out of one that is read", () => {
  const half = { properties: { a: { default: "x".repeat(1.5 * 1024 * 1024 - 2) } } }; // in quotes
  const [two, three] = [2, 3].map((count) => Array.from({ length: count }, () => ({})));
  fillDefaults(two, { items: half }, "refuse");
  assert.ok(two?.every((item) => "a" in item));
  assert.throws(() => fillDefaults(structuredClone(three), { items: half }, "refuse"), { code: 413 });
  fillDefaults(three, { items: half }, "stop");
  assert.deepEqual(
    three?.map((item) => "a" in item),
    [true, true, false],
  );
});

test("a null is removed where the schema neither allows it nor has a default", () => {
  const value = { a: null, b: null, c: null, list: [{ a: null }], unknown: null };
  const part = { properties: { a: text } };
  const schema = { properties: { a: text, b: { ...text, nullable: true }, c: { ...text, default: "x" }, list: { items: part } } };
  dropNulls(value, schema);
  assert.deepEqual(value, { b: null, c: null, list: [{}], unknown: null });
  const map = { x: null, y: { a: null } };
  dropNulls(map, { additionalProperties: part });
  assert.deepEqual(map, { y: {} });
});

const keeping = { "x-kubernetes-preserve-unknown-fields": true };
const embedded = { "x-kubernetes-embedded-resource": true };

for (const { name, schema, value, want } of [
  {
    name: "fields before and behind an unknown one stay",
    schema: { a: text, c: text },
    value: { a: 1, b: 2, c: 3 },
    want: { a: 1, c: 3 },
  },
  {
    name: "the second item of a list loses its own",
    schema: { l: { items: { properties: { a: text } } } },
    value: { l: [{ a: 1 }, { a: 1, b: 2 }] },
    want: { l: [{ a: 1 }, { a: 1 }] },
  },
  {
    name: "what a resource has stays in an embedded one and goes elsewhere",
    schema: { r: embedded, o: {} },
    value: { r: { kind: "A", apiVersion: "v1", metadata: { x: 1 }, b: 2 }, o: { kind: "A" } },
    want: { r: { kind: "A", apiVersion: "v1", metadata: { x: 1 } }, o: {} },
  },
  {
    name: "all stays where unknown fields are kept, in nested lists too",
    schema: { k: keeping },
    value: { k: [[{ a: { b: 1 } }]] },
    want: { k: [[{ a: { b: 1 } }]] },
  },
  {
    name: "items keep unknown fields where their list does, in nested lists too, but not the known fields' own",
    schema: { k: { ...keeping, items: { items: { properties: { a: { properties: {} } } } } } },
    value: { k: [[{ a: { c: 1 }, b: { c: 1 } }]] },
    want: { k: [[{ a: {}, b: { c: 1 } }]] },
  },
  {
    name: "items keep unknown fields where they say so",
    schema: { k: { items: keeping } },
    value: { k: [{ a: { b: 1 } }] },
    want: { k: [{ a: { b: 1 } }] },
  },
  {
    name: "fields have their own schema where unknown fields are kept",
    schema: { k: { ...keeping, properties: { f: { properties: {} } } } },
    value: { k: { f: { b: 2 }, g: { b: 2 } } },
    want: { k: { f: {}, g: { b: 2 } } },
  },
  {
    name: "a map of anything keeps names alone",
    schema: { m: { additionalProperties: true } },
    value: { m: { a: { b: 1 }, c: 1 } },
    want: { m: { a: {}, c: 1 } },
  },
  {
    name: "a map of nothing keeps names, which validation refuses",
    schema: { m: { additionalProperties: false } },
    value: { m: { a: 1, b: { c: 1 } } },
    want: { m: { a: 1, b: {} } },
  },
  {
    name: "what is in a list without a schema of its items loses all fields",
    schema: { l: {} },
    value: { l: [1, { a: 1 }] },
    want: { l: [1, {}] },
  },
  {
    name: "a map's values lose their own",
    schema: { m: { additionalProperties: { properties: { a: text } } } },
    value: { m: { x: { a: 1, b: 2 } } },
    want: { m: { x: { a: 1 } } },
  },
  { name: "an inherited name is unknown", schema: { o: { properties: {} } }, value: { o: { constructor: 1 } }, want: { o: {} } },
] as { name: string; schema: object; value: object; want: object }[]) {
  test(`pruning: ${name}`, () => {
    const before = structuredClone(value);
    assert.deepEqual(prune(value, { properties: schema } as never), want);
    assert.deepEqual(value, before, "the value itself is not changed");
    assert.equal(prune(want, { properties: schema } as never), want, "what has no unknown fields is not copied");
    const lost = unknownFields(value, { properties: schema } as never);
    assert.equal(lost.length > 0, JSON.stringify(want) !== JSON.stringify(before), "what is removed is reported");
  });
}

test("what a version does not prune keeps its nulls and unknown fields, with defaults", () => {
  const schema = { type: "object", properties: { a: text, b: { ...text, default: "x" } } } as never;
  const object = { kind: "X", apiVersion: "example.com/v1", metadata: {}, a: null, unknown: 1 };
  applySchema(object as never, { schema, prunes: false });
  assert.deepEqual([object.a, object.unknown, (object as { b?: string }).b], [null, 1, "x"]);
  applySchema(object as never, { schema, prunes: true });
  assert.deepEqual(Object.keys(object), ["kind", "apiVersion", "metadata", "b"]);
});

test("metadata of every embedded resource is decoded, in lists and maps", () => {
  const resources = {
    list: { items: embedded },
    map: { additionalProperties: embedded },
    nested: { items: { items: embedded } },
  };
  const resource = () => ({ apiVersion: "v1", kind: "A", metadata: { name: "a", other: 1 } });
  const object = { ...resource(), list: [resource(), resource()], map: { x: resource() }, nested: [[], [resource()]] };
  const schema = { type: "object", properties: resources } as never;
  applySchema(object as never, { schema, prunes: true });
  const bare = { apiVersion: "v1", kind: "A", metadata: { name: "a" } };
  hasFields(object, { list: [bare, bare], map: { x: bare }, nested: [[], [bare]] });
  assert.ok(![object, ...object.list, object.map.x, object.nested[1]?.[0]].some((one) => one && "other" in one.metadata));
  const wrong = { ...bare, metadata: { name: "a" }, list: [bare, { ...bare, metadata: { labels: 1 } }] };
  assert.throws(() => applySchema(wrong as never, { schema, prunes: true }), { code: 400 });
});

test("a stored object keeps the metadata that can be read, and has a generation", () => {
  const application = { schema: { type: "object", properties: { r: embedded } } as never, prunes: true };
  const object = {
    metadata: { name: "a", labels: { a: 1 }, annotations: { b: "c" } },
    r: { metadata: ["none"], kind: "A" },
    unknown: 1,
  };
  atOnce(applySchemaToStoredInSteps(object as never, application));
  assert.deepEqual(object, {
    metadata: { name: "a", annotations: { b: "c" }, generation: 1 },
    r: { metadata: {}, kind: "A" },
  } as never);
  const newer = { metadata: { name: "a", generation: 3 } };
  atOnce(applySchemaToStoredInSteps(newer as never, application));
  assert.equal(newer.metadata.generation, 3);
});

for (const { name, value, want } of [
  {
    name: "of a type that cannot be read hide all others",
    value: { r: { kind: 1, apiVersion: null }, s: { metadata: 1 } },
    want: ["r.apiVersion"],
  },
  { name: "are those of each resource", value: { r: { apiVersion: "v1" }, s: { kind: "A" } }, want: ["r.kind", "s.apiVersion"] },
  { name: "are those of versions of three parts", value: { r: { apiVersion: "a/b/c", kind: "A" } }, want: ["r.apiVersion"] },
  { name: "are those of kinds that are no names", value: { r: { apiVersion: "a/v1", kind: "A_b" } }, want: ["r.kind"] },
  {
    name: "are none of resources of any group and case, with a name, a beginning of one, or neither",
    value: {
      r: { apiVersion: "a.b/v1", kind: "AbC", metadata: { name: "x.y", namespace: "z" } },
      s: { apiVersion: "v1", kind: "a", metadata: { generateName: "x-" } },
      list: [{ apiVersion: "v1", kind: "a", metadata: { name: "" } }],
    },
    want: [],
  },
  {
    name: "are those of names and labels",
    value: {
      r: { apiVersion: "v1", kind: "A", metadata: { name: "a/b", labels: { "-": "" } } },
      s: { apiVersion: "v1", kind: "A" },
    },
    want: ["r.metadata.name", "r.metadata.labels"],
  },
  {
    name: "are those behind plain values and null",
    value: { other: 1, s: null, list: [1, { apiVersion: "v1" }], r: { apiVersion: "v1" } },
    want: ["list[1].kind", "r.kind"],
  },
  { name: "are none without resources", value: { other: { kind: 1 } }, want: [] },
]) {
  test(`errors of embedded resources ${name}`, () => {
    const list = { type: "array", items: embedded };
    const schema = { properties: { other: { type: "object" }, r: embedded, s: embedded, list } } as never;
    const errors = embeddedResourceFaults(value, schema, "", false);
    assert.deepEqual(
      errors.map(({ field }) => field),
      want,
    );
  });
}

test("unknown fields are reported by their paths", () => {
  const part = { properties: { a: text } };
  const schema = {
    properties: {
      list: { items: part },
      open: { "x-kubernetes-preserve-unknown-fields": true },
      embedded: { "x-kubernetes-embedded-resource": true, properties: { spec: {} } },
    },
  };
  const value = {
    kind: "X",
    metadata: {},
    list: [{ a: "x", b: "y" }],
    open: { any: 1 },
    embedded: { kind: "Y", metadata: {}, other: 1 },
    other: 2,
  };
  assert.deepEqual(unknownFields(value, schema as never), ["list[0].b", "embedded.other", "other"]);
});

test("metadata that is not an object is refused, and unknown fields in it are dropped", () => {
  const application = { schema: { type: "object" } as never, prunes: true };
  const object = { kind: "X", apiVersion: "example.com/v1", metadata: { name: "a", other: 1 } };
  applySchema(object, application);
  assert.equal("other" in object.metadata, false);
  assert.throws(() => applySchema({ ...object, metadata: { labels: { a: 1 } } } as never, application), { code: 400 });
});

test("metadata that is absent stays absent", () => {
  const object = { kind: "X" };
  applySchema(object as never, { schema: { type: "object" } as never, prunes: true });
  assert.deepEqual(object, { kind: "X" });
});

test("no more unknown fields are named than a response has room for", () => {
  const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`f${at}`, 1]));
  const schema = { type: "object", properties: { list: { type: "array", items: { type: "object", properties: {} } } } };
  assert.equal(unknownFields({ list: [fields, fields], ...fields }, schema as never).length, 100);
});

for (const { name, schema, value, want } of [
  { name: "a set of scalars", schema: { "x-kubernetes-list-type": "set" }, value: ["a", "b", "a", "a"], want: ["l[2]"] },
  { name: "a set of objects", schema: { "x-kubernetes-list-type": "set" }, value: [{ a: 1 }, { a: 1 }], want: ["l[1]"] },
  {
    name: "a map by one key",
    schema: { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] },
    value: [{ k: 1, v: 1 }, { k: 2 }, { k: 1, v: 2 }],
    want: ["l[2]"],
  },
  {
    name: "a map by two keys",
    schema: { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"] },
    value: [{ k: 1, l: 1 }, { k: 1, l: 2 }, { k: 1 }, { k: 1 }],
    want: ["l[3]"],
  },
  { name: "an atomic list", schema: {}, value: ["a", "a"], want: [] },
]) {
  test(`a duplicate in ${name} is reported at its second occurrence, unless the list is atomic`, () => {
    const errors = atOnce(repeatedItems({ l: value }, { properties: { l: schema } }));
    assert.deepEqual(
      errors.map(({ field }) => field),
      want,
    );
  });
}

const unique = { "x-kubernetes-list-type": "set", items: {} };
const byKey = { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] };

for (const { name, schema, value, want } of [
  {
    name: "in lists of lists, of maps and of objects",
    schema: {
      lists: { items: unique },
      map: { additionalProperties: unique },
      objects: { items: { properties: { l: unique } } },
    },
    value: { lists: [["a"], ["b", "b"]], map: { "x.y": [1, 1] }, objects: [{ l: [] }, { l: [2, 2] }] },
    want: ["lists[1][1]", "map[x.y][1]", "objects[1].l[1]"],
  },
  {
    name: "in fields after others that have none",
    schema: { count: { type: "integer" }, none: {}, l: unique },
    value: { count: 1, none: null, l: [1, 1] },
    want: ["l[1]"],
  },
  { name: "that are no objects in a list by keys", schema: { l: byKey }, value: { l: ["a", "a"] }, want: ["l[0]"] },
  {
    name: "that are null in a list by keys, which lack the key",
    schema: { l: byKey },
    value: { l: [null, { k: 1 }, null] },
    want: ["l[2]"],
  },
  {
    name: "behind the first kilobyte of items, each once",
    schema: { l: unique },
    value: { l: [...Array(1500).keys(), 0, 1499, 0] },
    want: ["l[1500]", "l[1501]"],
  },
  {
    name: "with keys in another order",
    schema: { l: unique },
    value: {
      l: [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    },
    want: ["l[1]"],
  },
] as { name: string; schema: object; value: object; want: string[] }[]) {
  test(`items are refused ${name}`, () => {
    const errors = atOnce(repeatedItems(value, { properties: schema } as never));
    assert.deepEqual(
      errors.map(({ field }) => field),
      want,
    );
  });
}

test("a field named metadata contains embedded resources like any other, unless it is a resource's own", () => {
  const schema = { properties: { holder: { properties: { metadata: { properties: { r: { ...embedded, ...keeping } } } } } } };
  const object = { metadata: {}, holder: { metadata: { r: { metadata: { name: 1 } } } } };
  assert.throws(() => applySchema(object, { schema, prunes: true }), /name/);
});
