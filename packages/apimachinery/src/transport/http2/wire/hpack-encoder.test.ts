import assert from "node:assert/strict";
import { test } from "node:test";
import { hex } from "../testing/fields-writer.ts";
import { encodeFields, newFieldsDecoder, staticFields } from "./hpack.ts";

for (const { name, fields, want } of [
  { name: "nothing", fields: [], want: "" },
  { name: "a status that has a number", fields: [":status", "200"], want: "88" },
  { name: "a status that has none", fields: [":status", "201"], want: "08 03 323031" },
  { name: "a method that has a number", fields: [":method", "POST"], want: "83" },
  { name: "a method that has none", fields: [":method", "PUT"], want: "02 03 505554" },
  { name: "a name that has a high number", fields: ["content-type", "a"], want: "0f10 01 61" },
  { name: "a name that has none", fields: ["audit-id", "a"], want: "00 08 61756469742d6964 01 61" },
  { name: "an empty value", fields: ["date", ""], want: "0f12 00" },
  { name: "octets beyond ASCII", fields: ["vary", "\u00e9\u00ff"], want: "0f2c 02 e9ff" },
  {
    name: "a name that every object has",
    fields: ["__proto__", "toString"],
    want: "00 09 5f5f70726f746f5f5f 08 746f537472696e67",
  },
]) {
  test(`${name} is written`, () => {
    assert.deepEqual(encodeFields(fields), hex(want));
    assert.deepEqual(encodeFields(fields), hex(want)); // again, from the name cache
  });
}

test("encoded fields decode to the same: long values, many names, all indexed entries", () => {
  const fields = [
    ...staticFields.flatMap(({ name, value }) => [name, value]),
    ...[126, 127, 128, 254, 255, 16_000, 70_000].flatMap((length) => ["l".repeat(length), "v".repeat(length)]),
    ...Array.from({ length: 3_000 }, (_, i) => [`name-${i}`, String(i)]).flat(),
  ];
  const decoder = newFieldsDecoder();
  assert.deepEqual(decoder.decode(encodeFields(fields)), { fields, tooLarge: false, count: fields.length / 2 });
  assert.deepEqual(decoder.decode(encodeFields(fields)), { fields, tooLarge: false, count: fields.length / 2 });
});
