import assert from "node:assert/strict";
import { test } from "node:test";
import { hasFields } from "./has-fields.ts";

const actual = { a: 1, list: [{ b: 2, c: 3 }, { d: 4 }], empty: [], more: { deep: { x: 1, y: undefined } } };

test("fields that are not expected are ignored, at any depth", () => {
  for (const expected of [
    {},
    { a: 1 },
    { list: [{ b: 2 }, {}] },
    { more: { deep: { x: 1 } } },
    { more: { deep: { y: undefined } } },
  ])
    hasFields(actual, expected);
});

test("another value, a missing field, and one item too many or too few are differences", () => {
  for (const expected of [
    { a: 2 },
    { z: undefined },
    { list: [] },
    { list: [{ b: 2 }] },
    { list: [{ d: 4 }, { b: 2 }] },
    { list: [{ b: 2 }, { d: 4 }, {}] },
    { empty: [undefined] },
    { empty: {} },
    { more: { deep: { y: 1 } } },
  ])
    assert.throws(() => hasFields(actual, expected), assert.AssertionError, JSON.stringify(expected));
});
