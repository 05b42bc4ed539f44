import type { Exchange } from "../exchange.ts";

/**
 * Every value of a header that may occur several times. Node joins them with commas in `headers`, but a group's name
 * may hold a comma: the raw list tells them apart. What is not ASCII is read as UTF-8.
 */
export function headerValues(exchange: Exchange, lowerCaseName: string): string[] {
  if (exchange.headers[lowerCaseName] === undefined) return [];
  const raw = (exchange.nodeRequest as { rawHeaders?: readonly string[] } | undefined)?.rawHeaders;
  if (raw === undefined) {
    const value = exchange.headers[lowerCaseName];
    return (Array.isArray(value) ? value : [value as string]).map(textOf);
  }
  const values: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if ((raw[i] as string).toLowerCase() === lowerCaseName) values.push(textOf(raw[i + 1] as string));
  }
  return values;
}

/** Node gives a character for each byte; names in other scripts come in UTF-8. */
function textOf(value: string): string {
  return Buffer.from(value, "latin1").toString("utf8");
}

/** Extra keys travel percent-encoded in header names. @returns the text itself when it is not well encoded, as upstream does. */
export function unescapeExtraKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}
