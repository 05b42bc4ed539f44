import assert from "node:assert/strict";
import { test } from "node:test";
import { type GoInteger, parseGoInteger } from "./go-integer.ts";

const int: GoInteger = { signed: true, bits: 64, anyBase: true };
const int32: GoInteger = { signed: true, bits: 32, anyBase: true };
const uint: GoInteger = { signed: false, bits: 64, anyBase: true };
const level: GoInteger = { signed: true, bits: 32, anyBase: false };

for (const [text, kind, want] of [
  ["0", int, 0],
  ["-0", int, 0],
  ["+10", int, 10],
  ["010", int, 8],
  ["0o17", int, 15],
  ["0X1f", int, 31],
  ["-0b11", int, -3],
  ["1_000", int, 1000],
  ["0x_1f", int, 31],
  ["0_7", int, 7],
  ["010", level, 10],
  ["2147483647", int32, 2 ** 31 - 1],
  ["18446744073709551615", uint, 2 ** 64],
] as const)
  test(`${text} is ${want}`, () => assert.equal(parseGoInteger(text, kind), want));

for (const [text, kind, why] of [
  ["", int, "invalid syntax"],
  ["-", int, "invalid syntax"],
  ["08", int, "invalid syntax"],
  ["0x", int, "invalid syntax"],
  ["0xg", int, "invalid syntax"],
  ["1__0", int, "invalid syntax"],
  ["_1", int, "invalid syntax"],
  ["1_", int, "invalid syntax"],
  ["1.5", int, "invalid syntax"],
  ["1e3", int, "invalid syntax"],
  ["0x1f", level, "invalid syntax"],
  ["1_0", level, "invalid syntax"],
  ["2147483648", int32, "value out of range"],
  ["9223372036854775808", int, "value out of range"],
] as const)
  test(`${JSON.stringify(text)} is refused: ${why}`, () =>
    assert.throws(() => parseGoInteger(text, kind), new Error(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`)));

test("an unsigned integer refuses a sign", () => {
  for (const text of ["-1", "+1"])
    assert.throws(() => parseGoInteger(text, uint), new Error(`strconv.ParseUint: parsing "${text}": invalid syntax`));
});
