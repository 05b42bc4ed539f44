import { isUtf8 } from "node:buffer";
import type { Exchange } from "../exchange.ts";

/**
 * Every value of a header that may occur several times. Node joins them with commas in `headers`, but a group's name
 * may hold a comma: the raw list tells them apart. What is not ASCII is read as UTF-8.
 */
export function headerValues(exchange: Exchange, lowerCaseName: string): string[] {
  if (exchange.headers[lowerCaseName] === undefined) return [];
  const raw = exchange.rawHeaders;
  if (raw.length === 0) {
    const value = exchange.headers[lowerCaseName];
    return (Array.isArray(value) ? value : [value as string]).map(textOf);
  }
  const values: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if ((raw[i] as string).toLowerCase() === lowerCaseName) values.push(textOf(raw[i + 1] as string));
  }
  return values;
}

/**
 * Node gives a character for each byte; names in other scripts come in UTF-8. Bytes that are none stay apart: as halves of
 * surrogates, which no other text holds, so that who sends them is nobody whom a rule could name.
 */
function textOf(value: string): string {
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : withRawBytes(bytes);
}

/** Byte for byte: what is no UTF-8 becomes U+DC80 to U+DCFF. */
function withRawBytes(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((size) => at + size <= bytes.length && isUtf8(bytes.subarray(at, at + size)));
    text += length === undefined ? String.fromCharCode(0xdc00 + (bytes[at] as number)) : bytes.toString("utf8", at, at + length);
    at += length ?? 1;
  }
  return text;
}

/** Extra keys travel percent-encoded in header names. @returns the text itself when it is not well encoded, as upstream does. */
export function unescapeExtraKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}
