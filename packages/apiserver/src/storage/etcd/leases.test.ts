import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { StorageMetrics } from "../metrics.ts";
import type { EtcdClient } from "./client.ts";
import { newLeases } from "./leases.ts";

function setUp(reuseSeconds?: number) {
  const clock = newFakeClock();
  const granted: number[] = [];
  const counts: number[] = [];
  const client = { grantLease: async (ttl: number) => BigInt(granted.push(ttl)) } as unknown as EtcdClient;
  const metrics = { leaseObjects: (count: number) => counts.push(count) } as unknown as StorageMetrics;
  return { clock, granted, counts, leases: newLeases({ client, clock, reuseSeconds, metrics }) };
}

for (const { name, ttl, reuseSeconds, longer } of [
  { name: "an hour: a minute longer", ttl: 3600, reuseSeconds: undefined, longer: 60 },
  { name: "ten minutes: a twentieth longer", ttl: 600, reuseSeconds: undefined, longer: 30 },
  { name: "--lease-reuse-duration-seconds: no longer than it says", ttl: 3600, reuseSeconds: 5, longer: 5 },
]) {
  test(`a lease is granted for longer than requested and shared for that time; ${name}`, async () => {
    const { clock, granted, leases } = setUp(reuseSeconds);
    const first = await leases.forTtl(ttl);
    assert.deepEqual(granted, [ttl + longer]);
    await clock.advance((longer - 1) * 1000);
    assert.equal(await leases.forTtl(ttl), first);
    await clock.advance(1000);
    assert.notEqual(await leases.forTtl(ttl), first);
  });
}

test("a lease is used for a thousand objects, and the metric reports how many it had", async () => {
  const { granted, counts, leases } = setUp();
  for (let i = 0; i < 1_001; i++) await leases.forTtl(3600);
  assert.equal(granted.length, 2);
  assert.deepEqual(counts, [1_000]);
});

test("a grant that failed is not shared, and its failure does not take away the lease granted meanwhile", async () => {
  const clock = newFakeClock();
  const grants: PromiseWithResolvers<bigint>[] = [];
  const grantLease = (): Promise<bigint> => {
    const grant = Promise.withResolvers<bigint>();
    grants.push(grant);
    return grant.promise;
  };
  const leases = newLeases({ client: { grantLease } as unknown as EtcdClient, clock });
  const [first, shared] = [leases.forTtl(3600), leases.forTtl(3600)];
  await clock.advance(60_000);
  const second = leases.forTtl(3600);
  grants[0]?.reject(new Error("unavailable"));
  for (const failed of [first, shared]) await assert.rejects(failed, /unavailable/);
  grants[1]?.resolve(2n);
  assert.deepEqual([await second, await leases.forTtl(3600), grants.length], [2n, 2n, 2]);
  const other = leases.forTtl(600);
  grants[2]?.reject(new Error("unavailable"));
  await assert.rejects(other, /unavailable/);
  void leases.forTtl(600).catch(() => {});
  assert.deepEqual([grants.length, await leases.forTtl(3600)], [4, 2n]);
});
