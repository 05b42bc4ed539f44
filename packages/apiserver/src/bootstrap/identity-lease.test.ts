import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatMicroTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { collectIdentityLeases, keepIdentityLease, renewIdentityLease } from "./identity-lease.ts";

function bench() {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  const options = { client, identity: "me", durationSeconds: 60, renewIntervalSeconds: 10, clock, log };
  /** A lease of 60 s that was renewed so long ago. */
  const aLease = (
    name: string,
    renewedMsAgo: number | undefined,
    component = "kube-apiserver",
    duration: { leaseDurationSeconds?: number } = { leaseDurationSeconds: 60 },
  ): void =>
    client.put<Lease>(leases, {
      metadata: { namespace: "kube-system", name, labels: { "k8s.io/component": component } },
      spec: {
        ...duration,
        ...(renewedMsAgo !== undefined && { renewTime: formatMicroTime(clock.now() - renewedMsAgo) }),
      },
    });
  const names = (): string[] => client.objects<Lease>(leases).map(({ metadata }) => metadata.name as string);
  const renewTime = () => client.object<Lease>(leases, "kube-system/me")?.spec?.renewTime;
  return { clock, client, options, aLease, names, renewTime, warnings };
}

test("leases that are no longer renewed are deleted, all of them and no others", async () => {
  const { options, aLease, names } = bench();
  aLease("expired", 60_001);
  aLease("just-in-time", 60_000);
  aLease("never-renewed", undefined);
  aLease("without-duration", 0, "kube-apiserver", {});
  aLease("older", 600_000);
  aLease("of-a-scheduler", 600_000, "kube-scheduler");
  await collectIdentityLeases(options);
  assert.deepEqual(names(), ["just-in-time", "of-a-scheduler"]);
});

test("a lease that another server has deleted does not keep the next one", async () => {
  const { client, options, aLease, names } = bench();
  aLease("expired", 70_000);
  aLease("older", 80_000);
  client.react("delete", "leases", ({ name }) => {
    if (name === "expired") throw notFound(leases, name);
  });
  await collectIdentityLeases(options);
  assert.deepEqual(names(), ["expired"]);
});

test("the lease is renewed until the server stops, also after a failure, and expired ones are deleted each hour", async () => {
  const { clock, client, options, aLease, names, renewTime, warnings } = bench();
  const stop = new AbortController();
  await renewIdentityLease(options);
  const first = renewTime();
  keepIdentityLease(options, stop.signal);
  let failing = true;
  client.react("update", "leases", () => {
    if (failing) throw new Error("the store is full");
  });
  await clock.advance(10_000);
  await settle();
  assert.deepEqual([renewTime(), warnings], [first, ["cannot renew the identity lease"]]);
  failing = false;
  await clock.advance(10_000);
  await settle();
  assert.equal(renewTime(), formatMicroTime(clock.now()));
  aLease("expired", 70_000);
  await clock.advance(3_600_000);
  await settle(20);
  assert.deepEqual(names(), ["me"]);
  stop.abort();
  assert.equal(clock.waiting, 0);
});

test("a renewal keeps what others have written into the lease", async () => {
  const { client, options, clock } = bench();
  client.put<Lease>(leases, {
    metadata: { namespace: "kube-system", name: "me", annotations: { a: "b" } },
    spec: { holderIdentity: "before", leaseTransitions: 7, renewTime: formatMicroTime(0) },
  });
  await renewIdentityLease(options);
  const { metadata, spec } = client.object<Lease>(leases, "kube-system/me") as Lease;
  assert.deepEqual(metadata.annotations, { a: "b" });
  const renewTime = formatMicroTime(clock.now());
  assert.deepEqual(spec, { holderIdentity: "me", leaseDurationSeconds: 60, leaseTransitions: 7, renewTime });
});

test("leases of other namespaces are left, and one that cannot be deleted is an error", async () => {
  const { client, options, aLease } = bench();
  aLease("expired", 70_000);
  const expired = client.object<Lease>(leases, "kube-system/expired") as Lease;
  client.put<Lease>(leases, { ...expired, metadata: { ...expired.metadata, namespace: "web" } });
  client.react("delete", "leases", () => {
    throw new Error("the store is full");
  });
  await assert.rejects(collectIdentityLeases(options), /the store is full/);
  assert.deepEqual(
    client.writes.map(({ namespace, name }) => `${namespace}/${name}`),
    ["kube-system/expired"],
  );
});

test("a renewal that the end of the server interrupts is not warned of", async () => {
  const { clock, client, options, warnings } = bench();
  const stop = new AbortController();
  keepIdentityLease(options, stop.signal);
  client.react("get", "leases", () => {
    stop.abort();
    throw stop.signal.reason;
  });
  await clock.advance(10_000);
  await settle();
  assert.deepEqual([stop.signal.aborted, warnings], [true, []]);
});
