import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressPool } from "./address-pool.ts";

test("gives more than 65,536 addresses, each once", () => {
  const pool = new AddressPool("10.129.0.1", "10.255.255.254");
  const given = Array.from({ length: 70_000 }, () => pool.take());
  assert.equal(new Set(given).size, 70_000);
  assert.deepEqual([given[0], given[254], given[255], given[65_535]], ["10.129.0.1", "10.129.0.255", "10.129.1.0", "10.130.0.0"]);
});

test("gives an address again when it was returned and all others were given, and none that is taken", () => {
  const pool = new AddressPool("10.0.0.254", "10.0.1.1");
  pool.keep("10.0.0.255");
  pool.keep("10.0.0.9");
  pool.keep("fd00::1");
  assert.deepEqual([pool.take(), pool.take(), pool.take()], ["10.0.0.254", "10.0.1.0", "10.0.1.1"]);
  assert.throws(() => pool.take(), /all 4 addresses from 10\.0\.0\.254 on are taken/);
  pool.giveBack("10.0.1.0");
  pool.giveBack("10.0.0.255");
  assert.deepEqual([pool.take(), pool.take()], ["10.0.0.255", "10.0.1.0"]);
  assert.throws(() => pool.take(), /are taken/);
});
