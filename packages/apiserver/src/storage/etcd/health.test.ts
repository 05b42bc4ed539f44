import assert from "node:assert/strict";
import { test } from "node:test";
import type { EtcdClient } from "./client.ts";
import { etcdWarning, newEtcdHealth } from "./health.ts";

test("probes at the same time share one read, and one after a failure reads again", async () => {
  let reads = 0;
  const client = { range: async () => (reads++ === 0 ? Promise.reject(new Error("unreachable")) : {}) };
  const probe = newEtcdHealth([client as never as EtcdClient], "/registry", 10_000);
  for (const result of await Promise.allSettled([probe(), probe()])) assert.equal(result.status, "rejected");
  assert.equal(reads, 1);
  await probe();
  assert.equal(reads, 2);
});

test("etcd is healthy when every cluster answers in time", async () => {
  const answering = { range: async () => ({}) } as never as EtcdClient;
  const refusing = { range: () => Promise.reject(new Error("unreachable")) } as never as EtcdClient;
  const silent = { range: () => new Promise(() => {}) } as never as EtcdClient;
  await newEtcdHealth([answering, answering], "/registry", 10_000)();
  await assert.rejects(newEtcdHealth([answering, refusing], "/registry", 10_000)(), /unreachable/);
  await assert.rejects(newEtcdHealth([answering, silent], "/registry", 1)(), /context deadline exceeded/);
});

test("a probe that was answered leaves no timer", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  await newEtcdHealth([{ range: async () => ({}) } as never as EtcdClient], "/registry", 60_000)();
  assert.ok(timers() <= before, `${timers()} timers instead of ${before}`);
});

for (const { name, clusters, isFull } of [
  { name: "no member", clusters: [["", ""]], isFull: false },
  { name: "the second member, while the first is not there", clusters: [["gone", "alarm:NOSPACE"]], isFull: true },
  { name: "a member that does not answer", clusters: [["silent", "alarm:NOSPACE"]], isFull: true },
  { name: "the second cluster", clusters: [[""], ["memberID:1 alarm:NOSPACE"]], isFull: true },
  { name: "a member with another alarm", clusters: [["memberID:1 alarm:CORRUPT"]], isFull: false },
]) {
  test(`etcd ${isFull ? "is" : "is not"} said to have no space left when ${name} says so`, async () => {
    const clients = clusters.map((members) => ({
      servers: members.map((_, i) => `http://192.0.2.${i}:2379`),
      status: (i: number) => {
        if (members[i] === "gone") return Promise.reject(new Error("unreachable"));
        if (members[i] === "silent") return new Promise(() => {});
        return Promise.resolve({ errors: members[i] === "" ? [] : [members[i]] });
      },
    }));
    assert.equal((await etcdWarning(clients as never as EtcdClient[], 50)) !== undefined, isFull);
  });
}
