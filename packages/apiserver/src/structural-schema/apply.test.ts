import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { applySchema, unknownFields } from "./apply.ts";
import { dropNulls, fillDefaults } from "./defaults.ts";
import { repeatedItems } from "./list-items.ts";

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
]) {
  test(`defaults: ${name}`, () => {
    fillDefaults(value, schema, "refuse");
    assert.deepEqual(value, want);
  });
}

test("a null is removed where the schema neither allows it nor has a default", () => {
  const value = { a: null, b: null, c: null, list: [{ a: null }], unknown: null };
  const part = { properties: { a: text } };
  const schema = { properties: { a: text, b: { ...text, nullable: true }, c: { ...text, default: "x" }, list: { items: part } } };
  dropNulls(value, schema);
  assert.deepEqual(value, { b: null, c: null, list: [{}], unknown: null });
});

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
