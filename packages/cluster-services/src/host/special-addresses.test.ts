import assert from "node:assert/strict";
import { test } from "node:test";
import { inNetworks, isSpecial } from "./special-addresses.ts";

for (const [network, first, last, before, after] of [
  ["this host", "0.0.0.0", "0.255.255.255", undefined, "1.0.0.0"],
  ["loopback", "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"],
  ["link-local addresses of IPv4", "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"],
  ["multicast of IPv4", "224.0.0.0", "239.255.255.255", "223.255.255.255", "240.0.0.0"],
  ["this host and loopback of IPv6", "::", "::1", undefined, "::2"],
  ["link-local addresses of IPv6", "fe80::", "febf:ffff::1", "fe7f:ffff::1", "fec0::"],
  ["multicast of IPv6", "ff00::", "ffff:ffff::1", "feff:ffff::1", undefined],
] as const) {
  test(`${network} is special, from ${first} to ${last}`, () => {
    assert.deepEqual([isSpecial(first), isSpecial(last)], [true, true]);
    for (const other of [before, after]) assert.equal(other !== undefined && isSpecial(other), false);
  });
}

test("the families are apart, and text that is no address is in no network", () => {
  assert.equal(isSpecial("::ffff:127.0.0.1"), false);
  const isIn = inNetworks([
    ["10.0.0.0", 8],
    ["fd00::", 64],
  ]);
  assert.deepEqual(["10.1.2.3", "fd00::1", "fd00:0:0:1::1", "::ffff:10.1.2.3", "host", ""].map(isIn), [
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
  assert.equal(inNetworks([])("10.0.0.1"), false);
});
