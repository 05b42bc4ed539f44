import assert from "node:assert/strict";
import { test } from "node:test";
import { goQuoteName } from "../../objects/meta/go-quote.ts";
import type { Exchange } from "../exchange.ts";
import { headerValues } from "./header-values.ts";

/** Reads a header with these bytes as its value. */
function readFrom(bytes: readonly number[]): string {
  const value = Buffer.from(bytes).toString("latin1");
  return headerValues({ headers: { a: value }, rawHeaders: ["A", value] } as unknown as Exchange, "a")[0] as string;
}

for (const { name, bytes, shown } of [
  { name: "ASCII", bytes: [0x61, 0x62], shown: '"ab"' },
  { name: "UTF-8", bytes: [0x61, 0xc3, 0xa9], shown: '"aé"' },
  { name: "UTF-8 of four bytes", bytes: [0xf0, 0x9f, 0x98, 0x80], shown: '"😀"' },
  { name: "a byte that begins nothing", bytes: [0x61, 0xff, 0x62], shown: String.raw`"a\xffb"` },
  { name: "half of a surrogate", bytes: [0xed, 0xa0, 0x80], shown: String.raw`"\xed\xa0\x80"` },
  { name: "an overlong zero", bytes: [0xc0, 0x80, 0x78], shown: String.raw`"\xc0\x80x"` },
  { name: "four bytes, and one that begins nothing", bytes: [0xf0, 0x9f, 0x98, 0x80, 0xff], shown: String.raw`"😀\xff"` },
  { name: "both", bytes: [0xc3, 0xa9, 0xc3], shown: String.raw`"é\xc3"` },
]) {
  test(`a name in ${name} is quoted as Go quotes its bytes: ${shown}`, () => assert.equal(goQuoteName(readFrom(bytes)), shown));
}

test("names of different bytes are different names, and none of them is one that can be written in JSON", () => {
  const names = [0xfe, 0xff].map((byte) => readFrom([0x61, byte]));
  assert.notEqual(names[0], names[1]);
  for (const name of names) assert.ok(!name.isWellFormed());
});

test("each line of a header is a value, in any spelling of its name; a removed header has none", () => {
  const rawHeaders = ["X-Group", "a, b", "accept", "*/*", "x-gROUP", "c"];
  const of = (headers: object) => headerValues({ headers, rawHeaders } as unknown as Exchange, "x-group"); // cast: all that is read
  assert.deepEqual(of({ "x-group": "a, b, c" }), ["a, b", "c"]);
  assert.deepEqual(of({}), []);
});
