import assert from "node:assert/strict";
import { test } from "node:test";
import { addressRules, isOfAddresses } from "./rules.ts";

test("new connections to an address are refused but for ICMP, of its family", () => {
  const { text, jumps } = addressRules(["192.0.2.1", "2001:db8::1"], "COX-");
  assert.deepEqual(text.split("\n"), [
    "*filter",
    ":COX-LB-INPUT - [0:0]",
    "-A COX-LB-INPUT -d 192.0.2.1/32 ! -p icmp -m conntrack --ctstate NEW -j REJECT",
    "-A COX-LB-INPUT -d 2001:db8::1/128 ! -p ipv6-icmp -m conntrack --ctstate NEW -j REJECT",
    "COMMIT",
    "",
  ]);
  assert.deepEqual(jumps, [{ table: "filter", from: "INPUT", rule: "-j COX-LB-INPUT" }]);
});

test("chains of other parts are not those of addresses", () => {
  assert.deepEqual(["COX-LB-INPUT", "COX-SERVICES", "OTHER-LB-INPUT"].map(isOfAddresses("COX-")), [true, false, false]);
});
