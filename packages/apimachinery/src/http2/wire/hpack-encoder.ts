import { staticFields } from "./hpack-tables.ts";

/**
 * Encoded forms of a name: `literal` is the prefix before a literal value, `whole` maps values to the static index of name and
 * value. Characters are octets.
 */
interface EncodedName {
  readonly literal: string;
  readonly whole: ReadonlyMap<string, string>;
}

/** Bounds of the name cache: names are few, except in proxied responses. */
const mostNames = 1_000;
const mostNameBytes = 64;
const noValues: ReadonlyMap<string, string> = new Map();
const knownNames = new Map<string, EncodedName>(staticNames());

/**
 * Encodes header fields without a dynamic table and without Huffman code: as static indices where the static table has name and
 * value, as literals without indexing otherwise.
 * @param fields name, value, name, value …; names in lower case, one character for each octet
 * Source: RFC 7541
 */
export function encodeFields(fields: readonly string[]): Buffer {
  // One string converted once is cheaper than many small buffer writes.
  let block = "";
  for (let i = 0; i < fields.length; i += 2) {
    const name = encodedName(fields[i] as string);
    const value = fields[i + 1] as string;
    block += name.whole.get(value) ?? name.literal + integer(0, 7, value.length) + value;
  }
  return Buffer.from(block, "latin1");
}

function encodedName(name: string): EncodedName {
  let encoded = knownNames.get(name);
  if (encoded === undefined) {
    encoded = { literal: `\0${integer(0, 7, name.length)}${name}`, whole: noValues };
    if (knownNames.size < mostNames && name.length <= mostNameBytes) knownNames.set(name, encoded);
  }
  return encoded;
}

function* staticNames(): Generator<[string, EncodedName]> {
  for (const [i, { name }] of staticFields.entries()) {
    if (staticFields[i - 1]?.name === name) continue;
    const whole = staticFields.flatMap((field, at) =>
      field.name === name && field.value !== "" ? [[field.value, integer(0x80, 7, at + 1)] as const] : [],
    );
    yield [name, { literal: integer(0, 4, i + 1), whole: new Map(whole) }];
  }
}

/** Encodes an integer. @param first the bits before the prefix in the first octet */
function integer(first: number, prefixBits: number, value: number): string {
  const most = (1 << prefixBits) - 1;
  if (value < most) return String.fromCharCode(first | value);
  let octets = String.fromCharCode(first | most);
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) octets += String.fromCharCode((rest % 128) | 128);
  return octets + String.fromCharCode(rest);
}
