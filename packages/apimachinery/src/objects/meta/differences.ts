import { semanticEqual } from "./deep-equal.ts";
import { isJsonObject, rawJson } from "./json-value.ts";

const mostLines = 16;
const longestValue = 120;

/**
 * The differences between an update and the stored object, for an error's text: `containers[0].image: "a" -> "b"`, one line per
 * path and at most 16. Absent and empty values are equal.
 */
export function differencesText(stored: unknown, next: unknown): string {
  const places = [...differences(stored, next, "")];
  const lines = places.slice(0, mostLines).map(([path, a, b]) => `  ${path}: ${shown(a)} -> ${shown(b)}`);
  if (places.length > mostLines) lines.push(`  and ${places.length - mostLines} more`);
  return lines.join("\n");
}

type Difference = readonly [path: string, stored: unknown, next: unknown];

function* differences(stored: unknown, next: unknown, path: string): Generator<Difference> {
  if (semanticEqual(stored, next)) return;
  if (Array.isArray(stored) && Array.isArray(next)) {
    for (let i = 0; i < Math.max(stored.length, next.length); i++) yield* differences(stored[i], next[i], `${path}[${i}]`);
  } else if (isJsonObject(stored) && isJsonObject(next)) {
    for (const key of new Set([...Object.keys(stored), ...Object.keys(next)])) {
      const own = (object: Record<string, unknown>): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);
      yield* differences(own(stored), own(next), within(path, key));
    }
  } else yield [path, stored, next];
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
