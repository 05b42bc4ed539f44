import assert from "node:assert/strict";
import { test } from "node:test";
import { hex } from "../testing/fields-writer.ts";
import { encodeFields, newStaticFieldsDecoder } from "./hpack.ts";

for (const { name, block, want } of [
  { name: "an indexed field", block: "88", want: { ":status": "200" } },
  { name: "a literal that is to be kept", block: "40 0161 0162", want: { a: "b" } },
  { name: "the size of a table that is not there", block: "20 88", want: { ":status": "200" } },
  { name: "the last of the fields of one name", block: "00 0161 0162 00 0161 0163", want: { a: "c" } },
]) {
  test(`${name} is read`, () => {
    assert.deepEqual(Object.fromEntries(newStaticFieldsDecoder()(hex(block))), want);
  });
}

for (const { name, block } of [
  { name: "a field that would have to be remembered", block: "40 0161 0162 be" },
  { name: "a table that was not announced", block: "21" },
  { name: "a block that means too much", block: "88".repeat(30_000) },
]) {
  test(`${name} is refused`, () => {
    assert.throws(() => newStaticFieldsDecoder()(hex(block)), { name: "HpackError" });
  });
}

test("a repeated header block decodes to the same fields, also after many others", () => {
  const decode = newStaticFieldsDecoder();
  const one = hex("88 00 0161 0162");
  const fields = decode(one);
  assert.equal(decode(Buffer.from(one)), fields);
  for (let i = 0; i < 600; i++) assert.equal(decode(encodeFields(["n", String(i)])).get("n"), String(i));
  assert.deepEqual(decode(one), fields);
  const long = encodeFields(["long", "x".repeat(300)]);
  assert.notEqual(decode(long), decode(long));
});
