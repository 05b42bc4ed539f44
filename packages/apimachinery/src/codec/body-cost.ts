import { requestEntityTooLarge } from "../errors/status-error.ts";

/**
 * Maximum number of values (fields, map entries, objects, lists) in a request body. A ConfigMap that fits into etcd
 * (1.5 MiB) has at most 160,000 entries: an entry takes nine or ten bytes with keys of three or four letters. Decoding
 * more would block the event loop for half a second, for an object that cannot be stored.
 */
export const maxBodyValues = 165_000;
/** This many scalar list elements count as one value: they are cheaper to decode than named values. */
const elementsForOne = 8;
/** Nesting beyond which counting stops: every decoder rejects such a body. */
const deepest = 10_000;

/** @returns StatusError 413 */
export function tooManyValues(): Error {
  return requestEntityTooLarge(`the body has more than ${maxBodyValues} values`);
}

/**
 * Counts the values of a JSON body before it is parsed. Other media types enforce the limit in their decoders.
 * @throws StatusError 413 when it has more than `maxBodyValues`
 */
export function refuseManyValues(body: Buffer): void {
  if (body.length <= maxBodyValues) return; // a value takes at least one byte
  const first = body.find((byte) => byte > 0x20);
  if (first !== openBrace && first !== openBracket) return;
  if (valuesIn(body) > maxBodyValues) throw tooManyValues();
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Counts colons, braces, brackets and commas outside of strings; stops at the limit, and returns 0 for excessive nesting. */
function valuesIn(body: Buffer): number {
  let named = 0;
  let elements = 0;
  let depth = 0;
  for (let i = 0; i < body.length && named + elements / elementsForOne <= maxBodyValues; i++) {
    const byte = body[i];
    if (byte === comma) elements++;
    else if (byte === colon) named++;
    else if (byte === openBracket || byte === openBrace) {
      named++;
      if (++depth > deepest) return 0;
    } else if (byte === closeBracket || byte === closeBrace) depth--;
    else if (byte === quote) i = endOfText(body, i);
  }
  return named + elements / elementsForOne;
}

function endOfText(body: Buffer, start: number): number {
  for (let i = start + 1; i < body.length; i++) {
    if (body[i] === backslash) i++;
    else if (body[i] === quote) return i;
  }
  return body.length;
}
