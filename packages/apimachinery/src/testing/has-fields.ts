import assert from "node:assert/strict";
import { isContainer } from "../objects/meta/deep-equal.ts";

/**
 * Asserts that a value has these fields with these values, at any depth; it may have others. Unlike `assert.partialDeepStrictEqual`, lists
 * have to have as many items as expected: one too many is a difference.
 */
export function hasFields(actual: unknown, expected: unknown): void {
  assert.deepEqual(fieldsOf(actual, expected), expected);
}

/** The fields of `actual` that `expected` has, too. */
function fieldsOf(actual: unknown, expected: unknown): unknown {
  if (Array.isArray(actual) && Array.isArray(expected))
    return actual.map((item, i) => (i < expected.length ? fieldsOf(item, expected[i]) : item));
  if (!isPlain(actual) || !isPlain(expected)) return actual;
  const fields = Object.keys(expected).filter((key) => Object.hasOwn(actual, key));
  return Object.fromEntries(fields.map((key) => [key, fieldsOf(actual[key], expected[key])]));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return (
    isContainer(value) && !Array.isArray(value) && !(value instanceof Map) && !(value instanceof Set) && !Buffer.isBuffer(value)
  );
}
