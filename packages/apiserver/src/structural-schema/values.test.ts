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

test("a fault that two parts of a schema find is reported once, different ones each", () => {
  const low = { type: "object", properties: { a: { type: "integer", maximum: 1 } } };
  const faults = faultsOf({ a: 5 }, { ...low, allOf: [low, { properties: { a: { maximum: 3 } } }] } as Schema);
  assert.deepEqual(faults.filter((fault) => fault.includes("less than or equal to 1")).length, 1);
  assert.deepEqual(faults.filter((fault) => fault.includes("less than or equal to 3")).length, 1);
});
