import { semanticEqual } from "./deep-equal.ts";
import { isJsonObject, rawJson } from "./json-value.ts";

const mostLines = 16;
const longestValue = 120;
/** Differences that are counted: two large objects can differ in each of their values. */
const mostCounted = 1000;

/**
 * The differences between an update and the stored object, for an error's text: `containers[0].image: "a" -> "b"`, one line per
 * path and at most 16 of at most 1000 that are counted. Absent and empty values are equal.
 */
export function differencesText(stored: unknown, next: unknown): string {
  const places = [...differences(stored, next, "").take(mostCounted)];
  const lines = places.slice(0, mostLines).map(([path, a, b]) => `  ${path}: ${shown(a)} -> ${shown(b)}`);
  if (places.length > mostLines)
    lines.push(`  and ${places.length === mostCounted ? "at least " : ""}${places.length - mostLines} more`);
  return lines.join("\n");
}

type Difference = readonly [path: string, stored: unknown, next: unknown];

function* differences(stored: unknown, next: unknown, path: string): Generator<Difference> {
  if (stored === next) return; // makes no path for the many values that are equal
  if (Array.isArray(stored) && Array.isArray(next)) {
    for (let i = 0; i < Math.max(stored.length, next.length); i++)
      if (stored[i] !== next[i]) yield* differences(stored[i], next[i], `${path}[${i}]`);
  } else if (isJsonObject(stored) && isJsonObject(next)) {
    for (const key of Object.keys(stored)) {
      const now = Object.hasOwn(next, key) ? next[key] : undefined;
      if (stored[key] !== now) yield* differences(stored[key], now, within(path, key));
    }
    for (const key of Object.keys(next))
      if (!Object.hasOwn(stored, key)) yield* differences(undefined, next[key], within(path, key));
  } else if (!semanticEqual(stored, next)) yield [path, stored, next];
}

function within(path: string, key: string): string {
  if (!/^[A-Za-z]\w*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return "unset";
  // JSON.stringify does not support the bigints that represent integers beyond 2^53.
  const text = JSON.stringify(value, (_key, part) => (typeof part === "bigint" ? rawJson(String(part)) : part));
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text;
}
