import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalQuantity, Quantity } from "./quantity.ts";

for (const [text, want] of [
  ["0", "0"],
  ["0Ki", "0"],
  ["-0", "0"],
  ["1000m", "1"],
  ["0.1", "100m"],
  ["1500m", "1500m"],
  ["1.5", "1500m"],
  ["1024Mi", "1Gi"],
  ["1536Ki", "1536Ki"],
  ["1023", "1023"],
  ["512", "512"],
  ["1000", "1k"],
  ["123456789", "123456789"],
  ["1000000", "1M"],
  ["0.5Gi", "512Mi"],
  ["0.5Ki", "512"],
  ["1.1Ki", "1126400m"],
  ["1Ki", "1Ki"],
  ["-1Ki", "-1Ki"],
  ["-0.5Ki", "-512"],
  ["4Ei", "4Ei"],
  ["4096Pi", "4Ei"],
  ["1024Ti", "1Pi"],
  ["999999999999999999k", "999999999999999999k"],
  ["1000000000000000001k", "9223372036854775807"],
  ["100n", "100n"],
  ["0.1n", "1n"],
  ["-0.1n", "-1n"],
  ["1e3", "1e3"],
  ["1E3", "1e3"],
  ["12e2", "1200"],
  ["1e9", "1e9"],
  ["1500e-3", "1500e-3"],
  [".5", "500m"],
  ["5.", "5"],
  ["+5", "5"],
  ["-5Gi", "-5Gi"],
  ["10E", "10E"],
  ["9223372036854775807", "9223372036854775807"],
  ["99999999999999999999", "9223372036854775807"],
  ["1000000000000000000000000Ki", "9223372036854775807"],
] as const) {
  test(`${text} is canonically ${want}, and stays so`, () => {
    assert.equal(canonicalQuantity(text), want);
    assert.equal(canonicalQuantity(want), want);
  });
}

for (const text of [
  "",
  "1i",
  "1x",
  "Gi",
  "1 Gi",
  " 1",
  "1,5",
  "1..5",
  "1.5.5",
  "--1",
  "1e",
  "1ee3",
  "1mm",
  "0x10",
  "1Gii",
  ".",
  "1e5i",
]) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.equal(Quantity.tryParse(text), undefined);
    assert.throws(() => Quantity.parse(text), /quantities must match|unable to parse/);
  });
}

test("computes exactly, and rounds away from zero only when whole units are requested", () => {
  const sum = Quantity.parse("100m").add(Quantity.parse("1.9"));
  assert.equal(sum.toString(), "2");
  assert.equal(Quantity.parse("1Gi").sub(Quantity.parse("1")).value(), 2 ** 30 - 1);
  assert.equal(Quantity.parse("1001m").value(), 2);
  assert.equal(Quantity.parse("-1001m").value(), -2);
  assert.equal(Quantity.parse("1").milliValue(), 1000);
  assert.equal(Quantity.parse("100u").milliValue(), 1);
  assert.equal(Quantity.parse("1Ki").cmp(Quantity.parse("1k")), 1);
  assert.equal(Quantity.parse("0").add(Quantity.parse("1Gi")).toString(), "1Gi");
  assert.equal(Quantity.parse("0").sub(Quantity.parse("1Gi")).toString(), "-1Gi");
  assert.equal(Quantity.parse("1Gi").add(Quantity.parse("1073741824")).toString(), "2Gi");
  assert.equal(Quantity.parse("1073741824").add(Quantity.parse("1Gi")).toString(), "2147483648");
  assert.equal(Quantity.parse("1Ki").cmp(Quantity.parse("1024")), 0);
  assert.equal(Quantity.parse("1").cmp(Quantity.parse("1001m")), -1);
  assert.deepEqual(
    ["-1", "0", "1n"].map((text) => Quantity.parse(text).sign),
    [-1, 0, 1],
  );
  assert.deepEqual(
    [-10, -9, -8, 3].map((scale) => Quantity.parse("1.000000001").scaledValue(scale)),
    [10_000_000_010n, 1_000_000_001n, 100_000_001n, 1n],
  );
  assert.equal(Quantity.fromValue(1.2).toString(), "2");
  assert.equal(Quantity.fromValue(9_223_372_036_854_775_807n).toString(), "9223372036854775807");
  assert.equal(Quantity.fromMilli(1500).toString(), "1500m");
  assert.equal(Quantity.fromValue(2 ** 31, "BinarySI").toString(), "2Gi");
});

for (const [text, message] of [
  ["", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["1 Gi", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  [".", "unable to parse numeric part of quantity"],
  ["1i", "unable to parse quantity's suffix"],
  ["1e", "unable to parse quantity's suffix"],
] as const) {
  test(`says why ${JSON.stringify(text)} is no quantity`, () => assert.throws(() => Quantity.parse(text), { message }));
}

test("accepts very large exponents without computing them", () => {
  assert.equal(Quantity.parse("1e-999999999").toString(), "1e-9");
  assert.ok(Quantity.parse("1e999999999").nanos > 0n);
});
