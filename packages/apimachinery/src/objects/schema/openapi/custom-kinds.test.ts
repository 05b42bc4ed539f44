import assert from "node:assert/strict";
import { test } from "node:test";
import { customListSchema, customObjectSchema } from "./custom-kinds.ts";

const definitions = { named: (name: string) => ({ $ref: name }) };
const more = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const own = {
  apiVersion: {
    description: `APIVersion defines the versioned schema of this representation of an object. ${more}#resources`,
    type: "string",
  },
  kind: {
    description: `Kind is a string value representing the type of this object. In CamelCase. ${more}#types-kinds`,
    type: "string",
  },
};
const ofObject = {
  ...own,
  metadata: { description: `Standard object's metadata. ${more}#metadata`, $ref: "meta/v1.ObjectMeta" },
};
const [open, embedded] = [{ "x-kubernetes-preserve-unknown-fields": true }, { "x-kubernetes-embedded-resource": true }];
const rules = [{ rule: "true" }];

const schema = {
  type: "object",
  description: "d",
  required: ["a", "b"],
  default: {},
  example: { a: 1 },
  allOf: [{ required: ["a"] }],
  anyOf: [{}],
  oneOf: [{}],
  not: { required: ["z"] },
  externalDocs: { url: "u" },
  "x-kubernetes-validations": rules,
  properties: {
    a: { type: "string", nullable: true },
    b: { type: "string", default: "x", pattern: "", nullable: false, maxLength: 0, enum: null, format: undefined },
    list: { type: "array" },
    items: { type: "array", items: { type: "object", properties: { x: { type: "string", default: "y" } } } },
    nullableItems: { type: "array", nullable: true, items: { type: "string" } },
    open: { type: "object", ...open, properties: { k: { type: "string" } } },
    openItems: { type: "array", ...open, items: { type: "string" } },
    map: { type: "object", additionalProperties: { type: "string", nullable: true }, required: ["q"] },
    plainMap: { type: "object", additionalProperties: { type: "string" }, required: ["q"] },
    any: { type: "object", additionalProperties: true },
    none: { type: "object", required: ["n"], properties: { n: { type: "string", nullable: true } } },
    template: { type: "object", ...embedded, properties: { spec: { type: "object" } }, required: ["spec", "kind"] },
    openTemplate: { type: "object", ...embedded, ...open },
  },
};
const template = {
  type: "object",
  ...embedded,
  properties: { spec: { type: "object" }, ...ofObject },
  required: ["spec", "kind", "apiVersion"],
};

test("in v2 a custom kind is published without what v2 cannot express, and with types no narrower than the kind's own", () => {
  assert.deepEqual(customObjectSchema({ schema, preserving: false }, definitions, true), {
    type: "object",
    description: "d",
    required: ["b"],
    properties: {
      a: {},
      b: { type: "string", maxLength: 0 },
      list: {},
      items: { type: "array", items: { type: "object", properties: { x: { type: "string" } } } },
      nullableItems: {},
      open,
      openItems: open,
      map: { type: "object", additionalProperties: {} },
      plainMap: { type: "object", additionalProperties: { type: "string" }, required: ["q"] },
      any: { type: "object", additionalProperties: true },
      none: { type: "object", properties: { n: {} } },
      template,
      openTemplate: { ...embedded, ...open },
      ...ofObject,
    },
  });
});

test("in v3 a custom kind is published as it is defined", () => {
  assert.deepEqual(customObjectSchema({ schema, preserving: true }, definitions, false), {
    ...schema,
    properties: {
      ...schema.properties,
      b: { type: "string", default: "x", maxLength: 0 },
      template,
      openTemplate: { type: "object", ...embedded, ...open, properties: ofObject, required: ["kind", "apiVersion"] },
      ...ofObject,
    },
  });
});

test("a custom kind without a schema, and in v2 one that preserves unknown fields, is any object", () => {
  const any = { type: "object" };
  for (const v2 of [true, false]) {
    assert.deepEqual(customObjectSchema({ schema: undefined, preserving: false }, definitions, v2), any);
  }
  assert.deepEqual(customObjectSchema({ schema, preserving: true }, definitions, true), any);
  const preserving = { schema: { ...any, ...open }, preserving: false };
  assert.deepEqual(customObjectSchema(preserving, definitions, true), any);
  assert.deepEqual(customObjectSchema(preserving, definitions, false), { ...any, ...open, properties: ofObject });
});

test("the list of a custom kind has its items, and the fields of each list", () => {
  assert.deepEqual(customListSchema("Widget", "WidgetList", "widgets", { $ref: "w" }, definitions), {
    description: "WidgetList is a list of Widget",
    type: "object",
    required: ["items"],
    properties: {
      ...own,
      items: { description: `List of widgets. ${more}`, type: "array", items: { $ref: "w" } },
      metadata: { description: `Standard list metadata. ${more}#metadata`, $ref: "meta/v1.ListMeta" },
    },
  });
});
