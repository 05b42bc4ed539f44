import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { newCidrSet } from "./cidr-set.ts";

const newSet = (cidr: string, maskSize: number, registry = newMetricsRegistry()) => newCidrSet(cidr, maskSize, registry);
const take = (set: ReturnType<typeof newSet>, count: number) => Array.from({ length: count }, () => set.allocateNext());

for (const { cidr, maskSize, first } of [
  { cidr: "10.244.0.0/16", maskSize: 24, first: ["10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24"] },
  { cidr: "10.0.0.0/8", maskSize: 20, first: ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"] },
  { cidr: "127.123.234.3/30", maskSize: 32, first: ["127.123.234.0/32", "127.123.234.1/32", "127.123.234.2/32"] },
  { cidr: "fd00:10::/48", maskSize: 64, first: ["fd00:10::/64", "fd00:10:0:1::/64", "fd00:10:0:2::/64"] },
  {
    cidr: "2001:db8:1234::/60",
    maskSize: 72,
    first: ["2001:db8:1234::/72", "2001:db8:1234:0:100::/72", "2001:db8:1234:0:200::/72"],
  },
]) {
  test(`${cidr} in parts of /${maskSize}`, () => assert.deepEqual(take(newSet(cidr, maskSize), 3), first));
}

test("allocates each range once, and again after its release", () => {
  const set = newSet("10.0.0.0/22", 24);
  const all = take(set, 4);
  assert.equal(new Set(all).size, 4);
  const none = { message: "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range" };
  assert.throws(() => set.allocateNext(), none);
  set.release("10.0.2.0/24");
  assert.equal(set.allocateNext(), "10.0.2.0/24");
  assert.throws(() => set.allocateNext(), none);
});

test("a released range is not allocated again at once", () => {
  const set = newSet("10.0.0.0/22", 24);
  assert.equal(set.allocateNext(), "10.0.0.0/24");
  set.release("10.0.0.0/24");
  assert.equal(set.allocateNext(), "10.0.1.0/24");
});

for (const { name, cidr, occupied, left } of [
  { name: "one part", cidr: "10.0.0.0/22", occupied: "10.0.1.0/24", left: ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"] },
  { name: "several parts", cidr: "10.0.0.0/22", occupied: "10.0.2.0/23", left: ["10.0.0.0/24", "10.0.1.0/24"] },
  { name: "less than a part", cidr: "10.0.0.0/23", occupied: "10.0.0.128/28", left: ["10.0.1.0/24"] },
  { name: "more than everything", cidr: "10.0.0.0/23", occupied: "10.0.0.0/8", left: [] },
]) {
  test(`does not give what is occupied: ${name}`, () => {
    const set = newSet(cidr, 24);
    set.occupy(occupied);
    set.occupy(occupied);
    assert.deepEqual(take(set, left.length), left);
    assert.throws(() => set.allocateNext(), /no remaining/);
    const all = take(newSet(cidr, 24), 2 ** (24 - Number(cidr.split("/")[1])));
    set.release(occupied);
    assert.deepEqual(new Set(take(set, all.length - left.length)), new Set(all).difference(new Set(left)));
  });
}

test("a range outside the cluster CIDR is refused", () => {
  const set = newSet("10.0.0.0/16", 24);
  const message = /^cidr .* is out the range of cluster cidr 10\.0\.0\.0\/16$/;
  assert.throws(() => set.occupy("10.1.0.0/24"), { message });
  assert.throws(() => set.release("fd00::/64"), { message });
});

test("counts under upstream's names", async () => {
  const registry = newMetricsRegistry();
  const set = newSet("10.0.0.0/22", 24, registry);
  const usage = async () => /usage_cidrs\{[^}]*\} (.*)/.exec(await registry.render())?.[1];
  for (let i = 0; i < 2; i++) set.occupy("10.0.0.0/23");
  assert.equal(await usage(), "0.5");
  set.allocateNext();
  assert.equal(await usage(), "0.75");
  for (let i = 0; i < 2; i++) set.release("10.0.0.0/24");
  const lines = (await registry.render()).split("\n");
  for (const line of [
    'node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR="10.0.0.0/22"} 3',
    'node_ipam_controller_cidrset_cidrs_releases_total{clusterCIDR="10.0.0.0/22"} 1',
    'node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.0.0.0/22"} 0.5',
    'node_ipam_controller_cidrset_allocation_tries_per_request_sum{clusterCIDR="10.0.0.0/22"} 2',
  ])
    assert.ok(lines.includes(line), line);
});

test("however ranges are allocated and released, none is allocated twice", () => {
  const step = fc.oneof(fc.constant("take" as const), fc.nat(7));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const set = newSet("10.0.0.0/21", 24);
      const taken: string[] = [];
      for (const what of steps) {
        if (what === "take" && taken.length < 8) {
          const part = set.allocateNext();
          assert.ok(!taken.includes(part), part);
          taken.push(part);
        } else if (what !== "take" && what < taken.length) {
          set.release(taken.splice(what, 1)[0] as string);
        }
      }
    }),
  );
});

test("a wider range occupies the whole cluster CIDR, and what is no range is refused", () => {
  for (const wider of ["10.0.0.0/8", "10.0.4.0/21"]) {
    const set = newSet("10.0.4.0/22", 24);
    set.occupy(wider);
    assert.throws(() => set.allocateNext(), /there are no remaining CIDRs left/, wider);
    set.release(wider);
    assert.equal(set.allocateNext(), "10.0.4.0/24");
  }
  assert.throws(() => newSet("10.0.0.0/22", 24).occupy("10.0.0.0"), { message: "invalid CIDR address: 10.0.0.0" });
});
