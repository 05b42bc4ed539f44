import { rawJson } from "../objects/meta/json-value.ts";

/**
 * Parses JSON of the API. Integers beyond 2^53 (int64) become bigint, and {@link stringifyWire} writes them back. JSON.parse
 * creates own properties for any key, including `__proto__`.
 */
export function parseWire(text: string): unknown {
  // Cast: TypeScript's library lacks the third parameter, `context`.
  return mayHoldInt64.test(text) ? JSON.parse(text, reviveInt64 as (key: string, value: unknown) => unknown) : JSON.parse(text);
}

/** Serializes JSON for the API; bigint values are written as integers. */
export function stringifyWire(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (err) {
    if (!(err instanceof TypeError)) throw err;
    return JSON.stringify(value, (_key, member) => (typeof member === "bigint" ? rawJson(member.toString()) : member));
  }
}

/** Removes `metadata.managedFields` from a decoded object, or from the items of a list. */
export function dropManagedFields(value: unknown): void {
  const { metadata, items }: { metadata?: { managedFields?: unknown } | null; items?: unknown } = value ?? {};
  if (metadata?.managedFields !== undefined) delete metadata.managedFields;
  if (Array.isArray(items)) for (const item of items) dropManagedFields(item);
}

/** Matches a number of sixteen digits. A false match within a string only costs the slower parse. */
const mayHoldInt64 = /[:[,]\s*-?\d{16}/;

function reviveInt64(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  return context.source !== undefined && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}
