import assert from "node:assert/strict";
import { test } from "node:test";
import { hex, huffmanOctets } from "../testing/fields-writer.ts";
import { decodeHuffman, huffmanCodes } from "./hpack.ts";

const decode = (octets: Buffer): string => decodeHuffman(octets, 0, octets.length);
const characters = Array.from({ length: 256 }, (_, octet) => String.fromCharCode(octet));

// RFC 7541, appendix B
for (const { symbol, bits, code } of [
  { symbol: 0, bits: 13, code: 0x1ff8 },
  { symbol: 1, bits: 23, code: 0x7fffd8 },
  { symbol: 10, bits: 30, code: 0x3ffffffc },
  { symbol: 32, bits: 6, code: 0x14 },
  { symbol: 92, bits: 19, code: 0x7fff0 },
  { symbol: 122, bits: 7, code: 0x7b },
  { symbol: 128, bits: 20, code: 0xfffe6 },
  { symbol: 195, bits: 19, code: 0x7fff1 },
  { symbol: 199, bits: 25, code: 0x1ffffec },
  { symbol: 239, bits: 23, code: 0x7ffff4 },
  { symbol: 249, bits: 28, code: 0xffffffe },
  { symbol: 254, bits: 27, code: 0x7fffff0 },
  { symbol: 255, bits: 26, code: 0x3ffffee },
  { symbol: 256, bits: 30, code: 0x3fffffff },
]) {
  test(`symbol ${symbol} has the code of ${bits} bits ${code.toString(16)}`, () => {
    assert.deepEqual(
      huffmanCodes().find((known) => known.symbol === symbol),
      { symbol, bits, code },
    );
  });
}

test("every octet is read, alone and behind every other", () => {
  for (const one of characters) {
    assert.equal(decode(Buffer.from(huffmanOctets(one))), one);
    for (const other of characters) assert.equal(decode(Buffer.from(huffmanOctets(other + one))), other + one);
  }
});

test("a text of many octets is read, and one within others too", () => {
  const text = characters.join("").repeat(100);
  assert.equal(decode(Buffer.from(huffmanOctets(text))), text);
  assert.equal(decode(Buffer.alloc(0)), "");
  const within = Buffer.from([1, 2, ...huffmanOctets("within"), 3]);
  assert.equal(decodeHuffman(within, 2, within.length - 1), "within");
});

for (const { name, octets } of [
  { name: "that is cut off within an octet", octets: "ff fe" },
  { name: "that ends with zeros", octets: "18" },
  { name: "with eight bits of ones behind it", octets: "1f ff" },
  { name: "of eight bits of ones", octets: "ff" },
  { name: "that is the symbol for its end", octets: "ff ff ff ff" },
  { name: "that continues behind its end", octets: "ff ff ff fc 1f" },
]) {
  test(`a text ${name} is refused`, () => {
    assert.throws(() => decode(hex(octets)), { name: "HpackError" });
  });
}
