import { isUtf8 } from "node:buffer";
import type { Exchange } from "../exchange.ts";

/**
 * All values of a header that may be repeated. Node joins them with commas in `headers`, but a group name may contain a comma, so
 * they are read from `rawHeaders`. Non-ASCII values are decoded as UTF-8.
 */
export function headerValues(exchange: Exchange, lowerCaseName: string): string[] {
  if (exchange.headers[lowerCaseName] === undefined) return [];
  const raw = exchange.rawHeaders;
  if (raw.length === 0) {
    const value = exchange.headers[lowerCaseName];
    return (Array.isArray(value) ? value : [value]).map(textOf);
  }
  const values: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]!.toLowerCase() === lowerCaseName) values.push(textOf(raw[i + 1]!));
  }
  return values;
}

/**
 * Decodes a value, in which Node represents each byte as one character. Bytes that are not UTF-8 become lone surrogates, which
 * occur in no valid text, so that such a name never equals one in a rule.
 */
function textOf(value: string): string {
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : withRawBytes(bytes);
}

/** Maps each invalid byte to U+DC80…U+DCFF. */
function withRawBytes(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((size) => at + size <= bytes.length && isUtf8(bytes.subarray(at, at + size)));
    text += length === undefined ? String.fromCharCode(0xdc00 + bytes[at]!) : bytes.toString("utf8", at, at + length);
    at += length ?? 1;
  }
  return text;
}

/**
 * Decodes an extra key, which is percent-encoded in header names. @returns the text itself when the encoding is invalid, as
 * upstream
 */
export function unescapeExtraKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}
