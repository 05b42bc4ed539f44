import assert from "node:assert/strict";
import { test } from "node:test";
import { bigIntToIp, canonicalIp, cidrContains, ipToBigInt, parseCidr, parseIp } from "./ip.ts";

for (const { text, want } of [
  { text: "10.0.0.1", want: "10.0.0.1" },
  { text: "010.000.0.01", want: "10.0.0.1" }, // leading zeros do not mean octal
  { text: "1.2", want: undefined },
  { text: "256.0.0.1", want: undefined },
  { text: "::1", want: "::1" },
  { text: "fe80::1%eth0", want: undefined },
  { text: "", want: undefined },
]) {
  test(`${JSON.stringify(text)} is ${want ?? "no address"}`, () => assert.equal(parseIp(text), want));
}

test("addresses are numbers and back", () => {
  for (const ip of ["10.96.0.1", "255.255.255.255"]) assert.equal(bigIntToIp(ipToBigInt(ip), 4), ip);
  for (const ip of ["::", "fd00::1", "2001:db8::8:800:200c:417a"]) assert.equal(bigIntToIp(ipToBigInt(ip), 6), ip);
});

test("ranges contain their own addresses only", () => {
  for (const [text, want] of [
    ["10.0.0.0/0", { ip: "10.0.0.0", bits: 0, family: 4 }],
    ["10.0.0.1/32", { ip: "10.0.0.1", bits: 32, family: 4 }],
    ["fd00::/128", { ip: "fd00::", bits: 128, family: 6 }],
    ["fd00::/129", undefined],
    ["fd00::%eth0/64", undefined],
    ["10.0.0.0/", undefined],
    ["10.0.0.0/-1", undefined],
    ["10.0.0.0/8/8", undefined],
  ] as const) {
    assert.deepEqual(parseCidr(text), want, text);
  }
  assert.equal(cidrContains("fd00::/64", "fd00:0:0:1::"), false);
  assert.equal(cidrContains("::/0", "10.0.0.1"), false);
  assert.deepEqual(parseCidr("10.0.0.0/8"), { ip: "10.0.0.0", bits: 8, family: 4 });
  assert.equal(parseCidr("10.0.0.0/33"), undefined);
  assert.equal(parseCidr("10.0.0.0"), undefined);
  assert.equal(cidrContains("10.0.0.0/24", "10.0.0.255"), true);
  assert.equal(cidrContains("10.0.0.0/24", "10.0.1.0"), false);
  assert.equal(cidrContains("10.0.0.0/24", "::1"), false);
  assert.equal(cidrContains("fd00::/64", "fd00::ffff"), true);
});

test("addresses are written as Go writes them", () => {
  assert.equal(canonicalIp("10.0.0.1"), "10.0.0.1");
  assert.equal(canonicalIp("2001:DB8:0:0::1"), "2001:db8::1");
  assert.equal(canonicalIp("::ffff:192.0.2.1"), "192.0.2.1");
});
