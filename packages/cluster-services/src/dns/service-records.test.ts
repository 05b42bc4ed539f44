import assert from "node:assert/strict";
import { test } from "node:test";
import { aService } from "../testing/objects.ts";
import { addressKey, clusterIpsOf, EndpointRecord } from "./service-records.ts";

test("a Service has its cluster IPs, or else its only one, of those that are addresses", () => {
  const ipsOf = (spec: object): string[] => clusterIpsOf(aService("web", { clusterIP: "10.96.0.7", ...spec }));
  assert.deepEqual(ipsOf({}), ["10.96.0.7"]);
  assert.deepEqual(ipsOf({ clusterIPs: [] }), ["10.96.0.7"]);
  assert.deepEqual(ipsOf({ clusterIPs: ["10.96.0.7", "fd00::7"] }), ["10.96.0.7", "fd00::7"]);
  assert.deepEqual(ipsOf({ clusterIP: "None" }), []);
  assert.deepEqual(ipsOf({ clusterIPs: ["fe80::1%eth0", "fd00::7"] }), ["fd00::7"]);
});

test("an address has one key in any spelling", () => {
  for (const ip of ["2001:DB8::1", "2001:db8:0:0:0:0:0:1", "2001:0db8::0.0.0.1"])
    assert.equal(addressKey(ip), "20010db8000000000000000000000001", ip);
  assert.equal(addressKey("::1"), "1".padStart(32, "0"));
  assert.equal(addressKey("fd00::"), "fd00".padEnd(32, "0"));
  assert.equal(addressKey("10.0.0.1"), "10.0.0.1");
});

test("an endpoint without a host name is named by its address", () => {
  const named = (ip: string, hostname?: string): string => new EndpointRecord(ip, hostname).hostname;
  assert.deepEqual(
    [named("10.0.0.1", "web-0"), named("10.0.0.1"), named("FD00::1", ""), named("::1"), named("fd00::")],
    ["web-0", "10-0-0-1", "fd00--1", "0--1", "fd00--0"],
  );
});
