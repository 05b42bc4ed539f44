import { requestEntityTooLarge } from "../errors/status-error.ts";

/**
 * Most values (fields, entries of maps, objects, lists) that a request's body may have. A config map that etcd takes (1.5
 * MiB) has at most 160,000: with keys of three and four letters an entry is nine or ten bytes there. More would hold
 * everybody else up for half a second, for nothing that could be stored.
 */
export const maxBodyValues = 165_000;
/** Plain elements of lists cost less than what has a name: so many count as one value. */
const elementsForOne = 8;
/** Deeper than any decoder goes. */
const deepest = 10_000;

/** @throws StatusError 413 */
export function tooManyValues(): Error {
  return requestEntityTooLarge(`the body has more than ${maxBodyValues} values`);
}

/**
 * Looks at a JSON body before it is parsed; others have their limits in their decoders.
 * @throws StatusError 413 when it has more than `maxBodyValues`
 */
export function refuseManyValues(body: Buffer): void {
  if (body.length <= maxBodyValues) return; // a value takes a byte at least
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

/** Counts colons, braces, brackets and commas outside of texts; stops beyond the limit, and where the decoder will. */
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
