import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { testRefusals } from "../testing/refusals.ts";
import { isStructural, validatingStructural } from "./structural.ts";

const object = { type: "object" };
const text = { type: "string" };
const integerOrString = [{ type: "integer" }, text];
const embedded = { ...object, "x-kubernetes-embedded-resource": true };
const withField = (field: object): object => ({ ...object, properties: { spec: field } });
const spec = "s.properties[spec]";
/** `depth` nested operators with a type in the innermost one. */
const nested = (operator: string, depth: number): object => ({ [operator]: [depth === 0 ? text : nested(operator, depth - 1)] });
const metaText = "must not specify anything other than name and generateName, but metadata is implicitly specified";

testRefusals<object>(
  (schema) => atOnce(validatingStructural(schema as never, "s")),
  [
    ...(["allOf", "anyOf", "oneOf"] as const).map((operator) => ({
      name: `nothing behind the last level of ${operator}`,
      input: withField({ ...text, ...nested(operator, 210) }),
      want: [],
    })),
    {
      name: "items and maps without a type, nested",
      input: withField({
        type: "array",
        items: { ...object, properties: { a: { ...object, additionalProperties: {} }, b: { type: "array", items: {} } } },
      }),
      want: [
        `${spec}.items.properties[a].additionalProperties.type: Required value: must not be empty for specified object fields`,
        `${spec}.items.properties[b].items.type: Required value: must not be empty for specified array items`,
      ],
    },
    {
      name: "a text at the root",
      input: text,
      want: ['s.type: Invalid value: "string": must be object at the root'],
    },
    { name: "nothing at the root", input: {}, want: ["s.type: Required value: must not be empty at the root"] },
    {
      name: "an integer or string that is an object too",
      input: withField({
        ...embedded,
        "x-kubernetes-int-or-string": true,
        "x-kubernetes-preserve-unknown-fields": true,
      }),
      want: [
        `${spec}.x-kubernetes-embedded-resource: Invalid value: true: must be false if x-kubernetes-int-or-string is true`,
        `${spec}.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true`,
      ],
    },
    {
      name: "an embedded resource without a type, and one that is a map, of nothing",
      input: {
        ...object,
        properties: {
          a: { "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
          b: { ...embedded, additionalProperties: true },
        },
      },
      want: [
        "s.properties[a].type: Required value: must be object if x-kubernetes-embedded-resource is true",
        "s.properties[b].additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set",
        "s.properties[b].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
      ],
    },
    {
      name: "fields of an embedded resource in other types",
      input: withField({ ...embedded, properties: { apiVersion: object, kind: object, metadata: text } }),
      want: [
        `${spec}.properties[apiVersion].type: Invalid value: "object": must be string`,
        `${spec}.properties[kind].type: Invalid value: "object": must be string`,
        `${spec}.properties[metadata].type: Invalid value: "string": must be object`,
      ],
    },
    ...[
      { additionalProperties: false },
      { not: {} },
      { items: {} },
      { description: "x" },
      { properties: { name: text, labels: object } },
    ].map((more) => ({
      name: `metadata with ${JSON.stringify(more)}`,
      input: { ...object, properties: { metadata: { ...object, ...more } } },
      want: expect(more),
    })),
    {
      name: "metadata of names, with what is checked elsewhere",
      input: {
        ...object,
        properties: {
          metadata: { ...object, default: {}, example: 1, externalDocs: {}, properties: { name: text, generateName: text } },
        },
      },
      want: [],
    },
    {
      name: "every word of structure in an operator",
      input: withField({
        ...object,
        allOf: [
          {
            type: "object",
            additionalProperties: true,
            default: 1,
            title: "x",
            description: "x",
            nullable: true,
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-int-or-string": true,
            "x-kubernetes-list-map-keys": ["a"],
            "x-kubernetes-list-type": "map",
            "x-kubernetes-map-type": "atomic",
            "x-kubernetes-validations": [{ rule: "true" }],
          },
        ],
      }),
      want: [
        "additionalProperties: Forbidden: must be undefined to be structural",
        "default: Forbidden: must be undefined to be structural",
        "description: Forbidden: must be empty to be structural",
        "nullable: Forbidden: must be false to be structural",
        "title: Forbidden: must be empty to be structural",
        "type: Forbidden: must be empty to be structural",
        "x-kubernetes-embedded-resource: Forbidden: must be false to be structural",
        "x-kubernetes-int-or-string: Forbidden: must be false to be structural",
        "x-kubernetes-list-map-keys: Forbidden: must be empty to be structural",
        "x-kubernetes-list-type: Forbidden: must be undefined to be structural",
        "x-kubernetes-map-type: Forbidden: must be undefined to be structural",
        "x-kubernetes-preserve-unknown-fields: Forbidden: must be false to be structural",
        "x-kubernetes-validations: Forbidden: must be empty to be structural",
      ].map((each) => `${spec}.allOf[0].${each}`),
    },
    {
      name: "types below each operator and what they nest",
      input: withField({
        type: "array",
        items: { ...object, properties: { a: text } },
        anyOf: [{ type: "array" }],
        oneOf: [{ items: { properties: { a: { type: "string" } } } }],
        not: { allOf: [{ pattern: "(" }] },
      }),
      want: [
        `${spec}.anyOf[0].type: Forbidden: must be empty to be structural`,
        `${spec}.not.allOf[0].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): \`(\``,
        `${spec}.oneOf[0].items.properties[a].type: Forbidden: must be empty to be structural`,
      ],
    },
    {
      name: "a map at the root and an embedded resource, neither of which may have fields",
      input: {
        ...object,
        additionalProperties: false,
        properties: { a: { ...embedded, "x-kubernetes-preserve-unknown-fields": true, additionalProperties: false } },
      },
      want: [
        "s.additionalProperties: Forbidden: must not be used at the root",
        "s.properties[a].additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set",
      ],
    },
    {
      name: "a pattern of items in an operator, and items that are described there alone",
      input: { ...withField(object), oneOf: [{}, { properties: { spec: { items: { pattern: "(" } } } }] },
      want: [
        's.oneOf[1].properties[spec].items.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
        `${spec}.items: Required value: because it is defined in s.oneOf[1].properties[spec].items`,
      ],
    },
    {
      name: "an integer or string, said in allOf",
      input: withField({ "x-kubernetes-int-or-string": true, allOf: [{ anyOf: integerOrString }, { pattern: "a" }] }),
      want: [],
    },
    {
      name: "an integer or string, said where nothing is said of types",
      input: withField({
        "x-kubernetes-int-or-string": true,
        allOf: [{ pattern: "a" }, { anyOf: integerOrString }, { allOf: [{ anyOf: integerOrString }] }],
      }),
      want: ["allOf[1].anyOf[0]", "allOf[1].anyOf[1]", "allOf[2].allOf[0].anyOf[0]", "allOf[2].allOf[0].anyOf[1]"].map(
        (where) => `${spec}.${where}.type: Forbidden: must be empty to be structural`,
      ),
    },
    {
      name: "an integer or string, said in two of allOf",
      input: withField({ "x-kubernetes-int-or-string": true, allOf: [{ anyOf: integerOrString }, { anyOf: integerOrString }] }),
      want: ["allOf[1].anyOf[0]", "allOf[1].anyOf[1]"].map(
        (where) => `${spec}.${where}.type: Forbidden: must be empty to be structural`,
      ),
    },
    {
      name: "metadata in an operator of any depth",
      input: {
        ...object,
        properties: { metadata: object, spec: { ...object, properties: { metadata: object } } },
        allOf: [{ properties: { metadata: {}, spec: { properties: { metadata: {} } } } }],
        not: { anyOf: [{ oneOf: [{ properties: { metadata: {} } }] }] },
      },
      want: ["allOf[0]", "allOf[0].properties[spec]", "not.anyOf[0].oneOf[0]"].map(
        (where) => `s.${where}.properties[metadata]: Forbidden: must not be specified in a nested context`,
      ),
    },
    {
      name: "fields of logical operators without a structural property, at the root",
      input: {
        ...object,
        properties: { a: { type: "array", items: object }, b: { type: "array", items: object } },
        anyOf: [{ properties: { a: { items: { properties: { c: { minimum: 1 } } } } } }],
        oneOf: [{ not: { properties: { d: {} } } }],
        allOf: [{ properties: { a: { items: { anyOf: [{ properties: { e: {} } }] } } } }],
      },
      want: [
        "s.properties[a].items.properties[c]: Required value: because it is defined in s.anyOf[0].properties[a].items.properties[c]",
        "s.properties[a].items.properties[e]: Required value: because it is defined in s.allOf[0].properties[a].items.anyOf[0].properties[e]",
        "s.properties[d]: Required value: because it is defined in s.oneOf[0].not.properties[d]",
      ],
    },
  ],
);

for (const [what, word, isKept] of [
  ["an id", { id: "a" }, false],
  ["another draft", { $schema: "a" }, false],
  ["a reference", { $ref: "#/a" }, false],
  ["properties by pattern", { patternProperties: { a: text } }, false],
  ["dependencies", { dependencies: { a: ["b"] } }, false],
  ["items behind a list's own", { additionalItems: false }, false],
  ["definitions", { definitions: { a: text } }, false],
  ["a schema for each item", { items: [text] }, false],
  ["unknown fields that are not kept", { "x-kubernetes-preserve-unknown-fields": false }, false],
  ["none of these", { id: "", patternProperties: {}, dependencies: {}, additionalItems: null, definitions: {}, items: [] }, true],
] as const) {
  test(`a field with ${what} is ${isKept ? "" : "not "}structural`, () => {
    assert.equal(atOnce(isStructural(withField({ ...text, ...word }) as never)), isKept);
  });
}

for (const [shape, leaf] of Object.entries({ plain: text, nested: withField(text) })) {
  test(`a schema of many ${shape} properties is checked in steps, to the last`, () => {
    for (const last of [leaf, {}]) {
      const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`p${at}`, at === 9_999 ? last : leaf]));
      const steps = isStructural(withField({ ...object, properties }) as never);
      let yields = 0;
      let step = steps.next();
      for (; !step.done; step = steps.next()) yields++;
      assert.equal(step.value, last === leaf);
      assert.ok(yields > 9, `${yields} yields`);
    }
  });
}

for (const [word, wrap] of Object.entries({
  not: (inner: object) => ({ not: inner }),
  ...Object.fromEntries(["allOf", "anyOf", "oneOf"].map((operator) => [operator, (inner: object) => ({ [operator]: [inner] })])),
  items: (inner: object) => ({ items: inner }),
  properties: (inner: object) => ({ properties: { a: inner } }),
  additionalProperties: (inner: object) => ({ additionalProperties: inner }),
})) {
  test(`a schema of a hundred thousand levels of ${word} is checked to a limited depth`, () => {
    let schema: object = text;
    for (let level = 0; level < 100_000; level++) schema = wrap(schema);
    for (const whole of [withField({ ...text, ...schema }), withField({ ...text, allOf: [schema] })])
      assert.doesNotThrow(() => atOnce(validatingStructural(whole as never, "s")));
  });
}

/** Errors for a metadata schema with these keywords. */
function expect(more: object): string[] {
  const items =
    "items" in more ? ["s.properties[metadata].items.type: Required value: must not be empty for specified array items"] : [];
  return [...items, `s.properties[metadata]: Forbidden: ${metaText}`].sort();
}
