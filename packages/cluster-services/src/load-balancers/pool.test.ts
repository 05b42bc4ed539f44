import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { canonical, leaseName, Pool } from "./pool.ts";

const allOf = (pool: Pool, family: "IPv4" | "IPv6", most = 10): string[] => pool.addresses(family).take(most).toArray();

for (const { entries, want } of [
  { entries: ["192.0.2.10-192.0.2.12"], want: ["192.0.2.10", "192.0.2.11", "192.0.2.12"] },
  { entries: ["192.0.2.9"], want: ["192.0.2.9"] },
  { entries: [" 192.0.2.8/31 "], want: ["192.0.2.8", "192.0.2.9"] },
  { entries: ["fd00::/120", "192.0.2.9"], want: ["192.0.2.9"] },
  { entries: ["192.0.2.8/32"], want: ["192.0.2.8"] },
  { entries: ["192.0.2.8/31"], want: ["192.0.2.8", "192.0.2.9"] },
  { entries: ["192.0.2.9/30"], want: ["192.0.2.9", "192.0.2.10"] },
  { entries: ["192.0.2.255 - 192.0.3.1", "198.51.100.1"], want: ["192.0.2.255", "192.0.3.0", "192.0.3.1", "198.51.100.1"] },
]) {
  test(`the pool ${entries.join()} has ${want.length} addresses`, () => {
    const pool = new Pool(entries);
    assert.deepEqual(allOf(pool, "IPv4"), want);
    for (const ip of want) assert.ok(pool.has(ip));
    for (const ip of ["192.0.2.7", "192.0.3.2", "::ffff:192.0.2.10", "::192.0.2.9", "fd01::1"]) assert.ok(!pool.has(ip), ip);
    assert.equal(pool.serves("IPv6"), entries.length > 1 && entries[0] === "fd00::/120");
  });
}

test("a network of IPv6 is not walked through", () => {
  const pool = new Pool(["fd00::/64"]);
  assert.deepEqual(allOf(pool, "IPv6", 3), ["fd00::", "fd00::1", "fd00::2"]);
  assert.deepEqual(allOf(pool, "IPv4"), []);
  assert.ok(pool.has("FD00:0::FFFF"));
});

for (const entry of ["", "10.0.0.1/33", "10.0.0.9-10.0.0.1", "10.0.0.1-fd00::1", "a-b", "10.0.0.1-10.0.0.2-10.0.0.3", "node"]) {
  test(`refuses ${JSON.stringify(entry)} as a pool`, () => assert.throws(() => new Pool([entry]), ConfigError));
}

test("one address has one form and one lease", () => {
  assert.equal(canonical("FD00:0:0::01"), "fd00::1");
  assert.equal(canonical("node1"), undefined);
  assert.equal(leaseName("192.0.2.1"), "address-192-0-2-1");
  assert.equal(leaseName("fd00::1"), "address-fd00-0-0-0-0-0-0-1");
  assert.equal(leaseName("64:ff9b::1"), "address-64-ff9b-0-0-0-0-0-1");
});

test("addresses have the same form after thousands of others were asked for", () => {
  assert.equal(canonical("FD00:0:0::0a"), "fd00::a");
  for (let i = 0; i < 5_000; i++) assert.equal(canonical(`10.0.${i >> 8}.${i & 255}`), `10.0.${i >> 8}.${i & 255}`);
  assert.deepEqual([canonical("FD00:0:0::0a"), canonical("node1")], ["fd00::a", undefined]);
});
