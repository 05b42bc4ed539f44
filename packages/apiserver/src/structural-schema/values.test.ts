import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Schema } from "./schema.ts";
import { schemaFaults } from "./values.ts";

const faultsOf = (value: unknown, schema: Schema): string[] => schemaFaults(value, schema, "").map(formatFieldError);
const isValid = (value: unknown, schema: Schema): boolean => faultsOf(value, schema).length === 0;

for (const { schema, valid, wrong } of [
  { schema: { type: "string" }, valid: ["a", ""], wrong: [1, 1.5, true, 5n] },
  { schema: { type: "integer" }, valid: [1, 0, -3, 5n], wrong: ["1", 1.5, false] },
  { schema: { type: "number" }, valid: [1, 1.5, 5n], wrong: ["1", true] },
  { schema: { type: "boolean" }, valid: [true, false], wrong: ["true", 1, 0] },
  { schema: { "x-kubernetes-int-or-string": true }, valid: [1, "1"], wrong: [1.5, true] },
  { schema: { type: "string", format: "date" }, valid: ["2024-02-29"], wrong: ["2023-02-29", true] },
  { schema: { type: "string", format: "int64" }, valid: ["a", 1], wrong: [1.5] },
  { schema: { type: "integer", format: "int32" }, valid: [1], wrong: ["1"] },
  { schema: {}, valid: [1, "a", true, 1.5], wrong: [] },
] as { schema: Schema; valid: unknown[]; wrong: unknown[] }[]) {
  test(`values of each type are checked by one schema ${JSON.stringify(schema)}, one after the other and again`, () => {
    for (let round = 0; round < 2; round++) {
      for (const value of valid) assert.equal(isValid(value, schema), true, String(value));
      for (const value of wrong) assert.equal(isValid(value, schema), false, String(value));
    }
    for (const value of valid) assert.equal(isValid([value], { type: "array", items: schema }), true, String(value));
    for (const value of wrong) {
      assert.equal(isValid([...valid, value], { type: "array", items: schema }), false, String(value));
      const map = { type: "object", additionalProperties: schema } as Schema;
      assert.equal(isValid({ first: valid[0], second: value }, map), false, String(value));
    }
  });
}

for (const { what, schema, inside, outside } of [
  { what: "a maximum", schema: { type: "integer", maximum: 3 }, inside: [3], outside: [4] },
  { what: "an exclusive maximum", schema: { type: "integer", maximum: 3, exclusiveMaximum: true }, inside: [2], outside: [3] },
  { what: "a minimum", schema: { type: "integer", minimum: 3 }, inside: [3], outside: [2] },
  { what: "an exclusive minimum", schema: { type: "integer", minimum: 3, exclusiveMinimum: true }, inside: [4], outside: [3] },
  { what: "a factor", schema: { type: "number", multipleOf: 0.1 }, inside: [0.3, 0, -0.7], outside: [0.35] },
  { what: "lengths", schema: { type: "string", minLength: 2, maxLength: 3 }, inside: ["ab", "a😁c"], outside: ["a", "abcd"] },
  {
    what: "numbers of items",
    schema: { type: "array", items: {}, minItems: 1, maxItems: 2 },
    inside: [[1], [1, 2]],
    outside: [[], [1, 2, 3]],
  },
  {
    what: "numbers of properties",
    schema: { type: "object", additionalProperties: {}, minProperties: 1, maxProperties: 2 },
    inside: [{ a: 1 }, { a: 1, b: 2 }],
    outside: [{}, { a: 1, b: 2, c: 3 }],
  },
  { what: "an enumeration", schema: { enum: ["a", 2, { b: 1 }] }, inside: ["a", 2, { b: 1 }], outside: ["b", 3, { b: 2 }] },
  { what: "null where it may be", schema: { type: "string", nullable: true }, inside: [null, "a"], outside: [1] },
  { what: "null where no type is given", schema: { minimum: 1 }, inside: [null], outside: [0] },
  {
    what: "null among allowed values",
    schema: { type: "string", nullable: true, enum: ["a", null] },
    inside: ["a"],
    outside: [null],
  },
  { what: "a minimum with a fraction, of an integer", schema: { type: "integer", minimum: 1.5 }, inside: [1, 2], outside: [0] },
  { what: "a negative maximum with a fraction", schema: { type: "integer", maximum: -1.5 }, inside: [-1, -2], outside: [0] },
  {
    what: "a minimum with a fraction, of a fraction",
    schema: { type: "number", minimum: 1.5 },
    inside: [1.5, 1, 2],
    outside: [1.4],
  },
  { what: "a maximum with a fraction", schema: { type: "number", maximum: 1.5 }, inside: [1, 1.5], outside: [1.6, 2] },
  { what: "a factor of 0, which is none", schema: { type: "integer", multipleOf: 0 }, inside: [0, 3], outside: ["a"] },
  {
    what: "a required field that is null",
    schema: { type: "object", properties: { a: { type: "string", nullable: true } }, required: ["a"] },
    inside: [{ a: null }, { a: "" }],
    outside: [{}],
  },
  { what: "null where it may not be", schema: { type: "string" }, inside: ["a"], outside: [null] },
  {
    what: "required fields",
    schema: { type: "object", properties: { a: {}, b: {} }, required: ["a", "b"] },
    inside: [{ a: 1, b: 1 }],
    outside: [{ a: 1 }, { b: 1 }, {}],
  },
  {
    what: "exactly one alternative",
    schema: { oneOf: [{ minimum: 2 }, { maximum: 4 }] },
    inside: [1, 5],
    outside: [2, 3, 4],
  },
  { what: "any alternative", schema: { anyOf: [{ minimum: 4 }, { maximum: 2 }] }, inside: [1, 5], outside: [3] },
  { what: "all of several", schema: { allOf: [{ minimum: 2 }, { maximum: 4 }] }, inside: [2, 4], outside: [1, 5] },
  { what: "what must not be", schema: { not: { minimum: 2 } }, inside: [1], outside: [2] },
] as { what: string; schema: Schema; inside: unknown[]; outside: unknown[] }[]) {
  test(`${what}: the last value inside and the first outside`, () => {
    for (const value of inside) assert.deepEqual(faultsOf(value, schema), [], JSON.stringify(value));
    for (const value of outside) assert.notDeepEqual(faultsOf(value, schema), [], JSON.stringify(value));
  });
}

test("a value that is in no enumeration is refused with all that is allowed", () => {
  const [fault, ...others] = schemaFaults("c", { enum: ["a", 1, null, { b: 2 }] } as Schema, "v");
  assert.deepEqual(others, []);
  assert.match(fault?.detail ?? "", /^supported values: "a", "1", "null", "\{\\"b\\":2\}"$/);
});

for (const { name, schema, want } of [
  {
    name: "none of several alternatives, with the reason of the first that fits best",
    schema: { oneOf: [{ minimum: 7 }, { minimum: 6 }] },
    want: ['"" must validate one and only one schema (oneOf). Found none valid', "should be greater than or equal to 7"],
  },
  {
    name: "several alternatives, of which one is wanted",
    schema: { oneOf: [{ minimum: 1 }, { maximum: 9 }, { minimum: 6 }] },
    want: ['"" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
  },
  {
    name: "one of several that all are needed",
    schema: { allOf: [{ minimum: 1 }, { minimum: 6 }] },
    want: ["should be greater than or equal to 6", '"" must validate all the schemas (allOf)'],
  },
  {
    name: "all of several that all are needed",
    schema: { allOf: [{ minimum: 7 }, { minimum: 6 }] },
    want: [
      "should be greater than or equal to 7",
      "should be greater than or equal to 6",
      '"" must validate all the schemas (allOf). None validated',
    ],
  },
  {
    name: "any of several alternatives, with the reason of the first that fits best",
    schema: { anyOf: [{ minimum: 6 }, { minimum: 7 }] },
    want: ['"" must validate at least one schema (anyOf)', "should be greater than or equal to 6"],
  },
  { name: "what it must not be", schema: { not: { minimum: 1 } }, want: ['"" must not validate the schema (not)'] },
] as { name: string; schema: Schema; want: string[] }[]) {
  test(`a value that is ${name.startsWith("what") ? name : `wrong in ${name}`}`, () => {
    const details = schemaFaults(5, schema, "v").map(({ detail }) => detail.replace(/^ in body /, ""));
    assert.deepEqual(details, want);
  });
}

test("a fault that two parts of a schema find is reported once, different ones each", () => {
  const low = { type: "object", properties: { a: { type: "integer", maximum: 1 } } };
  const faults = faultsOf({ a: 5 }, { ...low, allOf: [low, { properties: { a: { maximum: 3 } } }] } as Schema);
  assert.deepEqual(faults.filter((fault) => fault.includes("less than or equal to 1")).length, 1);
  assert.deepEqual(faults.filter((fault) => fault.includes("less than or equal to 3")).length, 1);
});

for (const { name, value, schema, want } of [
  {
    name: "are in the order of the schema, in an object with fewer fields than it",
    value: { c: 1, a: 1 },
    schema: { properties: { a: { type: "string" }, b: {}, c: { type: "string" } } },
    want: ["a", "c"],
  },
  {
    name: "are in the order of the schema, in an object with more fields than it",
    value: { z: 1, c: 1, a: 1 },
    schema: { properties: { a: { type: "string" }, c: { type: "string" } } },
    want: ["a", "c"],
  },
  { name: "name a field once that is required twice", value: {}, schema: { required: ["a", "a", "b"] }, want: ["a", "b"] },
  {
    name: "are two for a value that is in neither of two enumerations",
    value: 3,
    schema: { allOf: [{ enum: [1] }, { enum: [2] }] },
    want: ["v", "v", "v"],
  },
  {
    name: "name each field that is forbidden, also one that every object inherits",
    value: { a: 1, constructor: 1, toString: 1 },
    schema: { properties: { a: {} }, additionalProperties: false },
    want: ["v", "v"],
  },
  {
    name: "are those of a list's items before those of its length, and of both bounds of a number",
    value: [1, 9, 5],
    schema: { maxItems: 2, items: { minimum: 3, maximum: 7 } },
    want: ["v.[0]", "v.[1]", "v"],
  },
] as { name: string; value: unknown; schema: Schema; want: string[] }[]) {
  test(`the errors of a value ${name}`, () => {
    const found = schemaFaults(value, schema, "v").map(({ field }) => field);
    assert.deepEqual(
      found.map((field) => field.replace(/^v\.(?=[a-z])/, "")),
      want,
    );
  });
}

test("of alternatives that fit equally well the first one's errors are reported", () => {
  const alternatives = { anyOf: [{ minLength: 2 }, { pattern: "b" }] } as Schema;
  assert.deepEqual(faultsOf("a", alternatives).slice(1), ['<nil>: Invalid value: "a":  in body should be at least 2 chars long']);
});

test("an alternative that fits excuses the others, a second one of oneOf is refused with their number alone", () => {
  assert.deepEqual(faultsOf("abc", { anyOf: [{ maxLength: 1 }, { minLength: 1 }, { pattern: "z" }] } as Schema), []);
  assert.deepEqual(faultsOf("abc", { oneOf: [{ maxLength: 1 }, { minLength: 1 }, { pattern: "b" }] } as Schema), [
    '<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found 2 valid alternatives',
  ]);
});

test("a list and a map each report at most 1000 of their errors", () => {
  const wrong = Array.from({ length: 1500 }, () => true);
  const [items, fields] = [{ type: "integer" }, Object.fromEntries(wrong.map((value, at) => [`f${at}`, value]))];
  assert.equal(faultsOf(wrong, { type: "array", items } as Schema).length, 1000);
  assert.equal(faultsOf(fields, { type: "object", additionalProperties: items } as Schema).length, 1000);
  assert.equal(faultsOf(fields, { type: "object", additionalProperties: false } as Schema).length, 1000);
  assert.equal(
    faultsOf(
      Array.from({ length: 12 }, () => wrong),
      { items: { items } } as Schema,
    ).length,
    1000,
  );
  const lists = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`l${at}`, wrong]));
  const schema = { properties: Object.fromEntries(Object.keys(lists).map((name) => [name, { items }])) };
  assert.equal(faultsOf(lists, schema as Schema).length, 10_000);
});
