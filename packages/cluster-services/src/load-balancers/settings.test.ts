import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { ServicesFlags } from "../flags.ts";
import { reservedPorts } from "./settings.ts";

const portsOf = (...entries: string[]): number[] => [
  ...reservedPorts({ "load-balancer-reserved-ports": entries } as unknown as ServicesFlags),
];

test("reserved ports are single ones and ranges with both ends", () => {
  assert.deepEqual(portsOf("22", "10248-10250", "65535"), [22, 10248, 10249, 10250, 65535]);
  assert.deepEqual(portsOf("5-5"), [5]);
  assert.deepEqual(portsOf(), []);
});

for (const entry of ["65536", "1-65536", "20-10", "ssh", "1-", "-1", "", "1-2-3", "123456"])
  test(`refuses ${JSON.stringify(entry)} as reserved ports`, () => {
    assert.throws(() => portsOf("22", entry), ConfigError);
  });
