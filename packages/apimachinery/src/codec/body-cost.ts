import { requestEntityTooLarge } from "../errors/status-error.ts";

/**
 * Most values (fields, elements of lists, entries of maps) that a request's body may have. Three megabytes of them would
 * hold everybody else up for half a second; what etcd takes has a tenth of these.
 */
export const maxBodyValues = 100_000;

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
const openBracket = 0x5b;
const backslash = 0x5c;
const openBrace = 0x7b;

/** What a comma, a brace or a bracket begins, outside of texts; stops to count beyond the limit. */
function valuesIn(body: Buffer): number {
  let values = 0;
  for (let i = 0; i < body.length && values <= maxBodyValues; i++) {
    const byte = body[i];
    if (byte === comma || byte === openBracket || byte === openBrace) values++;
    else if (byte === quote) i = endOfText(body, i);
  }
  return values;
}

function endOfText(body: Buffer, start: number): number {
  for (let i = start + 1; i < body.length; i++) {
    if (body[i] === backslash) i++;
    else if (body[i] === quote) return i;
  }
  return body.length;
}
