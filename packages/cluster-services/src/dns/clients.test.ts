import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { clusterNetworks, newClients } from "./clients.ts";

const node: Node = {
  metadata: { name: "a" },
  spec: { podCIDRs: ["10.244.0.0/24", "fd00:2::/64"] },
  status: {
    addresses: [
      { type: "Hostname", address: "a" },
      { type: "InternalIP", address: "192.0.2.1" },
      { type: "InternalIP", address: "fd00::1" },
    ],
  },
};

test("admits the networks of pods and nodes, and no other", () => {
  const clients = newClients(newFakeClock());
  assert.equal(clients.admit("10.244.0.9"), "stranger");
  clients.allow([...clusterNetworks([node]), "198.51.100.0/24", "nonsense"]);
  for (const address of ["127.0.0.1", "::1", "10.244.0.9", "192.0.2.1", "fd00:2::5", "fd00::1", "198.51.100.7"])
    assert.equal(clients.admit(address), "yes", address);
  for (const address of ["192.0.2.2", "10.244.1.1", "fd00::2", "fe80::1%eth0", "203.0.113.1"])
    assert.equal(clients.admit(address), "stranger", address);
  clients.allow(["fe80::/10"]);
  assert.equal(clients.admit("fe80::1%eth0"), "yes");
});

test("gives each client a separate share, which fills again", async () => {
  const clock = newFakeClock();
  const clients = newClients(clock);
  for (let i = 0; i < 5_000; i++) assert.equal(clients.admit("127.0.0.1"), "yes");
  assert.equal(clients.admit("127.0.0.1"), "tooOften");
  assert.equal(clients.admit("127.0.0.2"), "yes");
  await clock.advance(10);
  assert.equal(clients.admit("127.0.0.1"), "yes");
});

test("clients are admitted by the networks of now, not by those of their first query", () => {
  const clients = newClients(newFakeClock());
  clients.allow(["10.244.0.0/24"]);
  assert.deepEqual([clients.admit("10.244.0.9"), clients.admit("10.245.0.9")], ["yes", "stranger"]);
  clients.allow(["10.245.0.0/24"]);
  assert.deepEqual([clients.admit("10.244.0.9"), clients.admit("10.245.0.9")], ["stranger", "yes"]);
});

test("a client that was silent for long may send no more at once than others", async () => {
  const clock = newFakeClock();
  const clients = newClients(clock);
  clients.admit("127.0.0.1");
  await clock.advance(60_000);
  for (let i = 0; i < 5_000; i++) assert.equal(clients.admit("127.0.0.1"), "yes");
  assert.equal(clients.admit("127.0.0.1"), "tooOften");
});

test("a Node's external addresses, and the only pod range of an old Node, are networks of the cluster", () => {
  const old: Node = {
    metadata: { name: "a" },
    spec: { podCIDR: "10.244.7.0/24" },
    status: {
      addresses: [
        { type: "ExternalIP", address: "203.0.113.9" },
        { type: "ExternalDNS", address: "a.example" },
      ],
    },
  };
  assert.deepEqual(clusterNetworks([old, { metadata: { name: "b" }, spec: {} }]), ["10.244.7.0/24", "203.0.113.9/32"]);
});
