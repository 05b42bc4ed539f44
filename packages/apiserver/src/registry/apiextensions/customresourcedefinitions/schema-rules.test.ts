import assert from "node:assert/strict";
import { test } from "node:test";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { schemaFaults } from "../../../structural-schema/values.ts";
import { testRefusals } from "../../../testing/refusals.ts";
import { strict } from "./options.ts";
import { validateVersionSchema } from "./version-schema.ts";

const object = { type: "object" };
const text = { type: "string" };
const withField = (field: object): object => ({ ...object, properties: { spec: field } });
const at = "schema.openAPIV3Schema";
const spec = `${at}.properties[spec]`;
const types = '"array", "boolean", "integer", "number", "object", "string"';
const levels = (depth: number): object => (depth === 0 ? object : { ...object, properties: { a: levels(depth - 1) } });

testRefusals<object>(
  (schema) => validateVersionSchema({ openAPIV3Schema: schema }, false, "schema", strict),
  [
    {
      name: "a schema deeper than any object",
      input: levels(202),
      want: [`${at}${".properties[a]".repeat(201)}: Invalid value: "": schemas cannot be nested deeper than 200 levels`],
    },
    {
      name: "null at the root",
      input: { ...object, nullable: true },
      want: [`${at}.nullable: Forbidden: nullable cannot be true at the root`],
    },
    {
      name: "a schema of another draft",
      input: withField({ ...object, $schema: "http://json-schema.org/draft-07/schema" }),
      want: [`${at}: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`],
    },
    {
      name: "null as a type",
      input: withField({ type: "null" }),
      want: [
        `${spec}.type: Unsupported value: "null": supported values: ${types}`,
        `${spec}.type: Forbidden: type cannot be set to null, use nullable as an alternative`,
      ],
    },
    {
      name: "words that custom resources do not have",
      input: withField({
        ...object,
        id: "x",
        additionalItems: true,
        patternProperties: { a: object },
        dependencies: { a: ["b"], c: { type: "odd" } },
      }),
      want: [
        `${spec}.id: Forbidden: id is not supported`,
        `${spec}.additionalItems: Forbidden: additionalItems is not supported`,
        `${spec}.patternProperties: Forbidden: patternProperties is not supported`,
        `${spec}.dependencies: Forbidden: dependencies is not supported`,
        `${spec}.dependencies[c].type: Unsupported value: "odd": supported values: ${types}`,
      ],
    },
    {
      name: "a schema for each item of a list",
      input: withField({ type: "array", items: [{ type: "odd" }] }),
      want: [
        `${spec}.items: Forbidden: items must be a schema object and not an array`,
        `${spec}.items[0].type: Unsupported value: "odd": supported values: ${types}`,
      ],
    },
    {
      name: "a resource within the metadata of another one",
      input: withField({
        ...object,
        "x-kubernetes-embedded-resource": true,
        properties: {
          metadata: {
            ...object,
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
          },
        },
      }),
      want: [`${spec}.properties[metadata].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta`],
    },
    {
      name: "a default in a map within metadata",
      input: withField({
        ...object,
        "x-kubernetes-embedded-resource": true,
        properties: {
          metadata: {
            ...object,
            properties: { labels: { ...object, additionalProperties: { ...text, default: "x" } } },
          },
        },
      }),
      want: [
        `${spec}.properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not be set inside additionalProperties applying to object metadata`,
      ],
    },
    {
      name: "unknown fields that are expressly not kept",
      input: withField({ ...object, "x-kubernetes-preserve-unknown-fields": false }),
      want: [`${spec}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`],
    },
    {
      name: "a kind of map that is none, of a text",
      input: withField({ ...text, "x-kubernetes-map-type": "set" }),
      want: [
        `${spec}.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified`,
        `${spec}.x-kubernetes-map-type: Unsupported value: "set": supported values: "atomic", "granular"`,
      ],
    },
    {
      name: "kinds of map and list without a type",
      input: withField({ "x-kubernetes-map-type": "atomic", "x-kubernetes-list-type": "atomic" }),
      want: [
        `${spec}.type: Required value: must be object if x-kubernetes-map-type is specified`,
        `${spec}.type: Required value: must be array if x-kubernetes-list-type is specified`,
        `${spec}.type: Required value: must not be empty for specified object fields`,
      ],
    },
    {
      name: "a kind of list that is none, of an object, with keys",
      input: withField({ ...object, "x-kubernetes-list-type": "bag", "x-kubernetes-list-map-keys": ["a"] }),
      want: [
        `${spec}.type: Invalid value: "object": must be array if x-kubernetes-list-type is specified`,
        `${spec}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"`,
        `${spec}.x-kubernetes-list-type: Invalid value: "bag": must be map if x-kubernetes-list-map-keys is non-empty`,
      ],
    },
    {
      name: "a list that is a map of objects, and atomic lists of any",
      input: withField({
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        items: {
          type: "object",
          required: ["a"],
          properties: { a: { type: "string" }, b: { type: "array", "x-kubernetes-list-type": "atomic", items: object } },
        },
      }),
      want: [],
    },
    {
      name: "a set of atomic objects that call themselves sets",
      input: withField({
        type: "array",
        "x-kubernetes-list-type": "set",
        items: { ...object, "x-kubernetes-map-type": "atomic", "x-kubernetes-list-type": "set" },
      }),
      want: [`${spec}.items.type: Invalid value: "object": must be array if x-kubernetes-list-type is specified`],
    },
    {
      name: "an object that is a map of nothing",
      input: withField({ ...object, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"] }),
      want: [
        `${spec}.type: Invalid value: "object": must be array if x-kubernetes-list-type is specified`,
        `${spec}.items: Required value: must have a schema if x-kubernetes-list-type is map`,
      ],
    },
    {
      name: "a list that is a map of nothing",
      input: withField({ type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"] }),
      want: [
        `${spec}.items: Required value: must have a schema if x-kubernetes-list-type is map`,
        `${spec}.items: Required value: must be specified`,
      ],
    },
    {
      name: "a list that is a map of several schemas",
      input: withField({
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        items: [object],
      }),
      want: [
        `${spec}.items: Forbidden: items must be a schema object and not an array`,
        `${spec}.items: Invalid value: apiextensions.JSONSchemaPropsOrArray{Schema:(*apiextensions.JSONSchemaProps)(nil), JSONSchemas:[]apiextensions.JSONSchemaProps{${goStruct("apiextensions/v1.JSONSchemaProps", object).text}}}: must only have a single schema if x-kubernetes-list-type is map`,
      ],
    },
    {
      name: "a list that is a map of texts",
      input: withField({
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        items: text,
      }),
      want: [`${spec}.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map`],
    },
    {
      name: "a set that may hold null",
      input: withField({ type: "array", "x-kubernetes-list-type": "set", items: { ...text, nullable: true } }),
      want: [`${spec}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set`],
    },
    {
      name: "wrong types wherever a schema may stand",
      input: withField({
        ...object,
        additionalProperties: { type: "odd" },
        not: { type: "odd" },
        allOf: [{ type: "odd" }],
        oneOf: [{ type: "odd" }],
        anyOf: [{ type: "odd" }],
        definitions: { a: { type: "odd" } },
      }),
      want: [
        `${spec}.definitions: Forbidden: definitions is not supported`,
        ...["additionalProperties", "not", "allOf[0]", "oneOf[0]", "anyOf[0]", "definitions[a]"].map(
          (where) => `${spec}.${where}.type: Unsupported value: "odd": supported values: ${types}`,
        ),
      ],
    },
  ],
);

const many = Array.from({ length: 150_000 }, (_, i) => `f${i}`);

for (const [name, schema] of [
  ["rules", { ...object, "x-kubernetes-validations": many.map(() => ({})) }],
  ["properties", { ...object, properties: Object.fromEntries(many.map((field) => [field, {}])) }],
] as const) {
  test(`a definition may have more faults than a call takes arguments: ${name}`, () => {
    const validation = { openAPIV3Schema: withField(schema) as never };
    assert.equal(validateVersionSchema(validation, false, "schema", strict).length, many.length);
  });
}

test("an object may lack more fields than a call takes arguments, of which the first 10,000 are reported once each", () => {
  const faults = schemaFaults({}, { ...object, required: ["f0", ...many] }, "");
  assert.deepEqual(
    faults.map(({ field }) => field),
    many.slice(0, 10_000),
  );
});
