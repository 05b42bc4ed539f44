import { rawJson } from "../meta/json-value.ts";

/**
 * JSON as the API writes it, int64 beyond 2^53 included: those arrive and leave as bigint.
 * JSON.parse makes own properties of any key, `__proto__` too.
 */
export function parseWire(text: string): unknown {
  return mayHoldInt64.test(text) ? JSON.parse(text, reviveInt64 as (key: string, value: unknown) => unknown) : JSON.parse(text);
}

export function stringifyWire(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (err) {
    if (!(err instanceof TypeError)) throw err;
    return JSON.stringify(value, (_key, member) => (typeof member === "bigint" ? rawJson(member.toString()) : member));
  }
}

/** Sixteen digits as a value of their own; text with as many digits in a string only costs the slower parse. */
const mayHoldInt64 = /[:[,]\s*-?\d{16}/;

function reviveInt64(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  return context.source !== undefined && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}
