import assert from "node:assert/strict";
import { test } from "node:test";
import { firstAddress } from "./first-address.ts";

for (const [cidr, want] of [
  ["10.0.0.0/24", "10.0.0.1"],
  ["10.0.0.128/25", "10.0.0.129"],
  ["10.7.0.255/24", "10.7.0.1"],
  ["fd00::/108", "fd00::1"],
  ["fd00::8/125", "fd00::9"],
  ["fd00::1:2/112", "fd00::1:1"],
  ["fd00:1:2:3:4:5:6:0/112", "fd00:1:2:3:4:5:6:1"],
] as const) {
  test(`the first usable address of ${cidr} is ${want}`, () => assert.equal(firstAddress(cidr), want));
}

for (const cidr of ["10.0.0.1", "", "10.0.0.0/33"]) {
  test(`${JSON.stringify(cidr)} has no first address`, () => {
    assert.throws(() => firstAddress(cidr), { message: `${JSON.stringify(cidr)} is not a CIDR block` });
  });
}
