import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFields, encodeFields, newFieldsDecoder } from "./hpack.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

for (const { name, block, want } of [
  { name: "an indexed field", block: "88", want: { ":status": "200" } },
  { name: "a literal with a name of the static table", block: "0f10 02 6869", want: { "content-type": "hi" } },
  { name: "a literal with a new name", block: "00 0161 0162", want: { a: "b" } },
  { name: "a literal that is to be kept", block: "40 0161 0162", want: { a: "b" } },
  { name: "a literal that is never to be kept", block: "10 0161 0162", want: { a: "b" } },
  { name: "the size of a table that is not there", block: "20 88", want: { ":status": "200" } },
  { name: "the last entry of the static table", block: "7d 0161", want: { "www-authenticate": "a" } },
  {
    // RFC 7541, C.4.1
    name: "Huffman's code",
    block: "418c f1e3 c2e5 f23a 6ba0 ab90 f4ff",
    want: { ":authority": "www.example.com" },
  },
  {
    // RFC 7541, C.6.1
    name: "a date in Huffman's code",
    block: "6196 d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff",
    want: { date: "Mon, 21 Oct 2013 20:13:21 GMT" },
  },
]) {
  test(`${name} is read`, () => {
    assert.deepEqual(Object.fromEntries(decodeFields(hex(block))), want);
  });
}

for (const { name, block } of [
  { name: "an entry that nobody has sent", block: "be" },
  { name: "an index of 0", block: "80" },
  { name: "a text that is cut off", block: "00 0161 0562" },
  { name: "a number that is cut off", block: "7f ff" },
  { name: "a number without end", block: "7f ffffffffffffffff7f" },
  { name: "a field without value", block: "00 0161" },
  { name: "a character that is cut off", block: "41 81 00" },
  { name: "a character that is not ASCII", block: "41 84 ffffffff" },
]) {
  test(`${name} is refused`, () => {
    assert.throws(() => decodeFields(hex(block)), /header|index/);
  });
}

test("what is encoded is read again, long texts too", () => {
  const fields = [
    [":path", "/etcdserverpb.KV/Txn"],
    ["long", "x".repeat(127)],
    ["longer", "y".repeat(70_000)],
  ] as const;
  assert.deepEqual([...decodeFields(encodeFields(fields))], fields);
});

test("a block that comes again has the same fields, and so many others do not change that", () => {
  const decode = newFieldsDecoder();
  const one = hex("88 00 0161 0162");
  const fields = decode(one);
  assert.equal(decode(Buffer.from(one)), fields);
  for (let i = 0; i < 600; i++) assert.equal(decode(encodeFields([["n", String(i)]])).get("n"), String(i));
  assert.deepEqual(decode(one), fields);
});
