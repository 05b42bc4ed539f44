import { huffmanCodes, staticFields } from "../wire/hpack.ts";

/**
 * HPACK encoder for tests that can produce every representation, including those that the product's encoder never uses. Written
 * from the RFC alone.
 */

/** @param text may contain white space */
export const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

/** @param first the bits before the prefix in the first octet */
export function integerOctets(first: number, prefixBits: number, value: number): number[] {
  const most = 2 ** prefixBits - 1;
  if (value < most) return [first + value];
  const octets = [first + most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) octets.push((rest % 128) + 128);
  return [...octets, rest];
}

const codes = new Map(huffmanCodes().map(({ symbol, bits, code }) => [symbol, code.toString(2).padStart(bits, "0")]));

/** @param text one character for each octet */
export function huffmanOctets(text: string): number[] {
  const bits = Array.from(text, (character) => codes.get(character.charCodeAt(0))).join("");
  const filled = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return (filled.match(/.{8}/g) ?? []).map((octet) => Number.parseInt(octet, 2));
}

/** A string literal of HPACK with its length. @param coded with the Huffman code, else Latin-1. Source: RFC 7541, 5.2 */
export function textOctets(text: string, coded: boolean): number[] {
  const octets = coded ? huffmanOctets(text) : [...Buffer.from(text, "latin1")];
  return [...integerOctets(coded ? 0x80 : 0, 7, octets.length), ...octets];
}

/** Representation of a field: indexed where possible, or a kind of literal. */
export interface Form {
  readonly indexed: boolean;
  readonly literal: "remembered" | "forgotten" | "never";
  readonly indexedName: boolean;
  readonly coded: boolean;
}

const literals = { remembered: [0x40, 6], forgotten: [0x00, 4], never: [0x10, 4] } as const;

/** Creates the encoder of one connection. */
export function newFieldsWriter(tableBytes = 4096) {
  let dynamic: { name: string; value: string }[] = [];
  let limit = tableBytes;
  const evict = (): void => {
    let room = limit;
    const first = dynamic.findIndex(({ name, value }) => {
      room -= name.length + value.length + 32;
      return room < 0;
    });
    if (first >= 0) dynamic = dynamic.slice(0, first);
  };
  return {
    resize(bytes: number): number[] {
      limit = bytes;
      evict();
      return integerOctets(0x20, 5, bytes);
    },
    field(name: string, value: string, { indexed, literal, indexedName, coded }: Form): number[] {
      const all = [...staticFields, ...dynamic];
      const whole = indexed ? all.findIndex((field) => field.name === name && field.value === value) : -1;
      if (whole >= 0) return integerOctets(0x80, 7, whole + 1);
      // The last match: in a large table that is a dynamic entry.
      const index = indexedName ? all.findLastIndex((field) => field.name === name) + 1 : 0;
      const [first, prefixBits] = literals[literal];
      const octets = [...integerOctets(first, prefixBits, index), ...(index === 0 ? textOctets(name, coded) : [])];
      if (literal === "remembered") {
        dynamic.unshift({ name, value });
        evict();
      }
      return [...octets, ...textOctets(value, coded)];
    },
  };
}
