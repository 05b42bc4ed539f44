import assert from "node:assert/strict";
import { test } from "node:test";
import { checkProxyable } from "./proxyable-address.ts";

for (const { address, allowed } of [
  { address: "10.88.0.4", allowed: true },
  { address: "192.168.1.1", allowed: true },
  { address: "fd00::5", allowed: true },
  { address: "127.0.0.1", allowed: false },
  { address: "127.8.9.1", allowed: false },
  { address: "169.254.169.254", allowed: false },
  { address: "0.0.0.0", allowed: false },
  { address: "::1", allowed: false },
  { address: "::ffff:127.0.0.1", allowed: false },
  { address: "::ffff:169.254.169.254", allowed: false },
  { address: "fe80::1", allowed: false },
  { address: "::", allowed: false },
  { address: "::ffff:0.0.0.0", allowed: false },
  { address: "224.1.2.3", allowed: false },
  { address: "255.255.255.255", allowed: false },
  { address: "ff05::1", allowed: false },
  { address: "fec0::1", allowed: true },
  { address: "2130706433", allowed: false },
  { address: "0x7f.1", allowed: false },
  { address: "example.com", allowed: false },
]) {
  test(`${address} is ${allowed ? "reached" : "refused"} through a proxy`, () => {
    if (allowed) assert.doesNotThrow(() => checkProxyable(address));
    else assert.throws(() => checkProxyable(address), /address not allowed/);
  });
}
