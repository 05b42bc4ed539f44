/** True for objects other than null and arrays. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Name of a JSON value's type in Go's decoding errors: `json: cannot unmarshal bool into …`.
 * Source: encoding/json UnmarshalTypeError
 */
export function jsonWord(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return typeof value === "bigint" || typeof value === "symbol" ? "number" : typeof value;
}

/** A value that JSON.stringify writes as the given text. @throws SyntaxError for invalid JSON, objects and lists */
// Cast: TypeScript's library lacks rawJSON.
export const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
