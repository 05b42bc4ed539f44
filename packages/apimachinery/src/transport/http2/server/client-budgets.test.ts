import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientBudgets, type ConnectionBudget } from "./client-budgets.ts";

function spent(connection: ConnectionBudget | undefined): number {
  for (let count = 0; ; count++) if (connection?.spendReset() !== true) return count;
}

test("connections of one client share a budget, and each keeps a small reserve", (t) => {
  t.mock.method(performance, "now", () => 0);
  const clients = new ClientBudgets();
  assert.equal(spent(clients.admit("10.0.0.1", "")), 1050);
  assert.equal(spent(clients.admit("10.0.0.1", "")), 50);
  assert.equal(spent(clients.admit("10.0.0.2", "")), 1050, "another address");
  assert.equal(spent(clients.admit("10.0.0.1", "ab")), 1050, "another certificate");
});

test("a connection spends what its client shares first, and its reserve last", (t) => {
  t.mock.method(performance, "now", () => 0);
  const clients = new ClientBudgets();
  const first = clients.admit("10.0.0.1", "");
  for (let count = 0; count < 30; count++) assert.ok(first?.spendReset());
  assert.equal(spent(clients.admit("10.0.0.1", "")), 1020);
  assert.equal(spent(first), 50);
});

test("a client with a certificate whose connection was ended is refused for a while, longer each time", (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const clients = new ClientBudgets();
  clients.admit("10.0.0.1", "ab")?.ended();
  assert.equal(clients.admit("10.0.0.1", "ab"), undefined);
  assert.ok(clients.admit("10.0.0.1", "cd") !== undefined, "another certificate");
  assert.ok(clients.admit("10.0.0.2", "ab") !== undefined, "another address");
  now += 5000;
  clients.admit("10.0.0.1", "ab")?.ended();
  now += 5000;
  assert.equal(clients.admit("10.0.0.1", "ab"), undefined);
  now += 5000;
  assert.ok(clients.admit("10.0.0.1", "ab") !== undefined);
});

test("a client without a certificate does not block others with its address, which may be a NAT's", () => {
  const clients = new ClientBudgets();
  clients.admit("10.0.0.1", "")?.ended();
  assert.ok(clients.admit("10.0.0.1", "") !== undefined);
});

test("refusals of an hour ago do not lengthen the next one", (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const clients = new ClientBudgets();
  const refuse = (): number => {
    clients.admit("192.0.2.1", "cert", now)?.ended();
    const from = now;
    while (clients.admit("192.0.2.1", "cert", now) === undefined) now += 1_000;
    return now - from;
  };
  assert.deepEqual([refuse(), refuse()], [5_000, 10_000]);
  now += 3_599_000;
  assert.equal(refuse(), 20_000);
  now += 3_601_000;
  assert.equal(refuse(), 5_000);
});

test("10,000 clients are remembered; one more takes the place of the oldest", (t) => {
  t.mock.method(performance, "now", () => 0);
  const clients = new ClientBudgets();
  const addressOf = (at: number): string => `10.0.${at >> 8}.${at & 255}`;
  clients.admit(addressOf(0), "ab")?.ended();
  for (let at = 1; at < 10_000; at++) clients.admit(addressOf(at), "ab");
  assert.equal(clients.admit(addressOf(0), "ab"), undefined, "still refused");
  clients.admit(addressOf(10_000), "ab");
  assert.ok(clients.admit(addressOf(0), "ab") !== undefined);
});
