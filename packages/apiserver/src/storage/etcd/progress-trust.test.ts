import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { areAllReliable, newProgressTrust } from "./progress-trust.ts";
import type { StatusResponse } from "./wire-cluster.ts";

for (const { name, versions, want } of [
  { name: "no member is known", versions: [], want: false },
  { name: "3.3", versions: ["3.3.27"], want: false },
  { name: "Debian 12's", versions: ["3.4.23"], want: false },
  { name: "the last untrue one of 3.4", versions: ["3.4.30"], want: false },
  { name: "the first true one of 3.4", versions: ["3.4.31"], want: true },
  { name: "the first of 3.5", versions: ["3.5.0"], want: false },
  { name: "the last untrue one of 3.5", versions: ["3.5.12"], want: false },
  { name: "the first true one of 3.5", versions: ["3.5.13"], want: true },
  { name: "a patch of three digits", versions: ["3.5.113"], want: true },
  { name: "3.6", versions: ["3.6.0"], want: true },
  { name: "a later line", versions: ["3.10.1"], want: true },
  { name: "not yet 3.6", versions: ["3.6.0-rc.1"], want: false },
  { name: "another major version", versions: ["4.0.0"], want: false },
  { name: "2.3", versions: ["2.3.40"], want: false },
  { name: "all true", versions: ["3.4.34", "3.5.16", "3.6.2"], want: true },
  { name: "one of them untrue", versions: ["3.5.16", "3.5.16", "3.4.23"], want: false },
  { name: "one that cannot be queried", versions: ["3.5.16", undefined], want: false },
  { name: "no version", versions: [""], want: false },
  { name: "garbage", versions: ["etcd"], want: false },
  { name: "garbage before", versions: ["v3.5.16"], want: false },
  { name: "garbage after", versions: ["3.5.16.1"], want: false },
  { name: "too few numbers", versions: ["3.6"], want: false },
  { name: "numbers beyond all measure", versions: [`3.5.${"9".repeat(400)}`], want: false },
] satisfies { name: string; versions: (string | undefined)[]; want: boolean }[]) {
  test(`progress replies are ${want ? "" : "not "}trusted: ${name}`, () => {
    assert.equal(areAllReliable(versions), want);
  });
}

/** A cluster of members by name, each at `http://<name>`. */
function aCluster(versions: Record<string, string | undefined>) {
  const idOf = (name: string): bigint => BigInt(name.charCodeAt(0));
  const cluster = {
    versions,
    requested: 0,
    /** While set, members do not answer until it resolves. */
    silence: undefined as Promise<void> | undefined,
    /** Whether a member's URL leads to a different member. */
    swapped: false,
    async members() {
      cluster.requested++;
      return Object.keys(cluster.versions).map((name) => ({
        id: idOf(name),
        clientUrls: [`http://wrong-${name}`, `http://${name}`],
      }));
    },
    async statusAt(url: string) {
      await cluster.silence;
      const name = url.slice("http://".length);
      const version = cluster.versions[name];
      if (version === undefined) throw new Error("no connection");
      return { memberId: cluster.swapped ? 0n : idOf(name), version } as StatusResponse;
    },
  };
  const clock = newFakeClock();
  const trust = newProgressTrust({ client: cluster, clock, log: discardLogger });
  return { cluster, clock, trust };
}

test("trust begins when all members have reported their versions, and ends with a doubt", async () => {
  const { trust } = aCluster({ a: "3.5.16", b: "3.4.31" });
  assert.equal(trust.trusted, false);
  trust.check();
  assert.equal(trust.trusted, false);
  await settle();
  assert.equal(trust.trusted, true);
  trust.doubt();
  assert.equal(trust.trusted, false);
  await settle();
  assert.equal(trust.trusted, false);
});

test("versions that members reported before the last doubt are discarded", async () => {
  const { cluster, trust } = aCluster({ a: "3.5.16" });
  const gate = Promise.withResolvers<void>();
  cluster.silence = gate.promise;
  trust.check();
  await settle();
  trust.check();
  cluster.versions = { a: "3.4.23" };
  gate.resolve();
  await settle();
  assert.deepEqual([trust.trusted, cluster.requested], [false, 2]);
});

test("a member that joins in an older version ends the trust, and its upgrade brings it back", async () => {
  const { cluster, clock, trust } = aCluster({ a: "3.5.16" });
  trust.check();
  await settle();
  cluster.versions = { a: "3.5.16", b: "3.5.12" };
  await clock.advance(5 * 60_000);
  await settle();
  assert.equal(trust.trusted, false);
  cluster.versions = { a: "3.5.16", b: "3.5.13" };
  await clock.advance(5 * 60_000);
  await settle();
  assert.equal(trust.trusted, true);
});

test("a member that could not be queried is queried again soon", async () => {
  const { cluster, clock, trust } = aCluster({ a: "3.5.16", b: undefined });
  trust.check();
  await settle();
  assert.equal(trust.trusted, false);
  cluster.versions = { a: "3.5.16", b: "3.5.16" };
  await clock.advance(30_000);
  await settle();
  assert.equal(trust.trusted, true);
});

test("another member that answers at a member's address does not speak for it", async () => {
  const { cluster, trust } = aCluster({ a: "3.5.16" });
  cluster.swapped = true;
  trust.check();
  await settle();
  assert.equal(trust.trusted, false);
});

test("no server is queried after stop, and a round that finishes later changes nothing", async () => {
  const { cluster, clock, trust } = aCluster({ a: "3.5.16" });
  const gate = Promise.withResolvers<void>();
  cluster.silence = gate.promise;
  trust.check();
  trust.stop();
  gate.resolve();
  await settle();
  await clock.advance(60 * 60_000);
  assert.deepEqual([trust.trusted, cluster.requested], [false, 1]);
});

test("a reply that was untrue ends the trust for good, also while members are queried", async () => {
  for (const isAsking of [false, true]) {
    const { trust, clock, cluster } = aCluster({ a: "3.5.16" });
    trust.check();
    if (!isAsking) await settle();
    trust.refute();
    await settle();
    assert.equal(clock.waiting, 0);
    const { requested } = cluster;
    trust.check();
    await clock.advance(600_000);
    assert.deepEqual([trust.trusted, cluster.requested], [false, requested]);
  }
});

test("an explicit check replaces the next scheduled one", async () => {
  const { cluster, clock, trust } = aCluster({ a: "3.5.16" });
  trust.check();
  await settle();
  await clock.advance(60_000);
  trust.check();
  await settle();
  assert.equal(clock.waiting, 1);
  await clock.advance(299_999);
  await settle();
  assert.equal(cluster.requested, 2);
  trust.stop();
  assert.equal(clock.waiting, 0);
});
