import assert from "node:assert/strict";
import { test } from "node:test";
import { hasFormat, isKnownFormat } from "./formats.ts";

const uuid = "a8098c1a-f86e-11da-bd1a-00112444be1e";

for (const [format, right, wrong] of [
  ["bsonobjectid", ["507f1f77bcf86cd799439011"], ["507f1f77bcf86cd79943901", "x07f1f77bcf86cd799439011"]],
  ["byte", ["YQ==", "YWJj"], ["YQ=", "", "Y!=="]],
  ["cidr", ["10.0.0.0/8", "fd00::/64"], ["10.0.0.0", "10.0.0.0/33", "010.0.0.0/8"]],
  [
    "creditcard",
    ["4111 1111 1111 1111", "5555 5555 5555 4444", "3782-822463-10005", "30569309025904"],
    ["5555 5555 5555 4445", "4111 1111 1111 1112", "1234"],
  ],
  ["date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "2024-02-29T00:00:00Z"]],
  [
    "date-time",
    ["2024-02-29T23:59:59Z", "2024-02-29t00:00:00.5+02:00"],
    ["2024-02-29", "2024-02-29T24:00:00Z", "2024-02-29T23:60:00Z", "2024-02-29T23:59:60Z", "2023-02-29T00:00:00Z"],
  ],
  ["datetime", ["2024-02-29T23:59:59Z"], ["now"]],
  [
    "duration",
    ["1h30m", "3 weeks 2 days", "5 parsecs 1 minute", "1 minute 5 parsecs"],
    ["", "5 parsecs", "an hour", "1 hour or so"],
  ],
  ["email", ["a@b.example", "A <a.b@c>", '"a b"@c'], ["a", "@b", "a@", "a..b@c", "a b@c"]],
  ["hexcolor", ["#fff", "00FF00"], ["#ffff", "red"]],
  [
    "hostname",
    ["a", "a-b.example", "a--b.example", "münchen.example", `${"a".repeat(63)}.example`, `${"a.".repeat(126)}abc`],
    ["", "-a", "a--b", "a-.example", "a.b1", "a_b", `${"a".repeat(64)}.example`, `${"a.".repeat(126)}abcd`],
  ],
  ["ipv4", ["10.0.0.1", "::ffff:10.0.0.1"], ["10.0.0.256", "010.0.0.1", "::1"]],
  ["ipv6", ["::1", "fd00::1"], ["10.0.0.1", "fe80::1%eth0"]],
  ["isbn", ["0-306-40615-2", "978-0-306-40615-7"], ["0-306-40615-3"]],
  ["isbn10", ["080442957X"], ["978-0-306-40615-7"]],
  ["isbn13", ["9780306406157"], ["9780306406158", "0306406152"]],
  [
    "mac",
    ["00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01", `${"00:".repeat(19)}01`],
    [`${"00:".repeat(18)}01`, "00:00:5e:00:53", "00:00-5e:00:53:01"],
  ],
  ["password", ["", "any"], []],
  ["rgbcolor", ["rgb(0, 128,255)"], ["rgb(0,0,256)", "rgb(0,0)"]],
  ["ssn", ["111-22-3333"], ["111-22-333"]],
  ["uri", ["https://example.com/a?b", "/a", "urn:x"], ["example.com", "", "/%zz", "/a\n"]],
  ["uuid", [uuid, uuid.replaceAll("-", "").toUpperCase()], [uuid.slice(1)]],
  ["uuid3", ["a8098c1a-f86e-31da-bd1a-00112444be1e"], [uuid]],
  ["uuid4", ["a8098c1a-f86e-41da-bd1a-00112444be1e"], [uuid, "a8098c1a-f86e-41da-7d1a-00112444be1e"]],
  ["uuid5", ["a8098c1a-f86e-51da-bd1a-00112444be1e"], [uuid]],
] as const) {
  test(`knows a ${format} from other texts`, () => {
    assert.ok(isKnownFormat(format));
    assert.deepEqual(
      right.filter((text) => !hasFormat(format, text)),
      [],
    );
    assert.deepEqual(
      wrong.filter((text) => hasFormat(format, text)),
      [],
    );
  });
}

test("an unknown format accepts every text", () => {
  assert.ok(!isKnownFormat("semver"));
  assert.ok(hasFormat("semver", "x"));
});
