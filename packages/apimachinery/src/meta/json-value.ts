/** Neither null nor a list. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * What Go calls a JSON value that is not of the type it should be: `json: cannot unmarshal bool into …`.
 * Source: encoding/json UnmarshalTypeError
 */
export function jsonWord(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** A value that JSON.stringify writes as this text. @throws SyntaxError when the text is no JSON, or an object or list */
export const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
