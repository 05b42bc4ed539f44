import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../objects/meta/types.ts";
import type { Event } from "../objects/schema/kinds/core/v1.ts";
import { configMaps, events, leases } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { newEventRecorder } from "./event-recorder.ts";
import { newResourceLock } from "./resource-lock.ts";
import { candidate, leaseOf } from "./testing/candidate.ts";

test("holds an annotation lock, or a pair of locks", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a", {}, "configmapsleases");
  await settle();
  assert.deepEqual(a.events, ["leader a", "started"]);
  const record = client.object(configMaps, "kube-system/test")?.metadata.annotations?.[
    "control-plane.alpha.kubernetes.io/leader"
  ];
  assert.partialDeepStrictEqual(JSON.parse(record ?? "{}"), { holderIdentity: "a", leaderTransitions: 0 });
  assert.partialDeepStrictEqual(leaseOf(client), { holderIdentity: "a" });
  await clock.advance(10_000);
  const old = candidate(client, clock, "old", {}, "configmaps");
  await clock.advance(10_000);
  assert.deepEqual(old.events, ["leader a"]);
  a.stop.abort();
  old.stop.abort();
});

test("an object that holds the lock in its annotation keeps all else that it has", async () => {
  const client = newFakeClient();
  const metadata = { namespace: "kube-system", name: "test", labels: { a: "b" }, annotations: { other: "x" } };
  client.put(configMaps, { metadata, data: { key: "value" } } as KubeObject);
  const clock = newFakeClock();
  const a = candidate(client, clock, "a", {}, "configmaps");
  await clock.advance(10_000);
  assert.ok(a.events.includes("started"));
  const held = client.object<KubeObject & { data: object }>(configMaps, "kube-system/test");
  assert.partialDeepStrictEqual(held, { metadata: { labels: { a: "b" }, annotations: { other: "x" } }, data: { key: "value" } });
  a.stop.abort();
  await a.finished;
});

for (const [kind, want] of [
  ["leases", /^lease not initialized, call get or create first$/],
  ["endpoints", /^endpoints not initialized, call get or create first$/],
  ["configmaps", /^configmap not initialized, call get or create first$/],
] as const) {
  test(`a lock of kind ${kind} whose read failed is not written`, async () => {
    const record = { holderIdentity: "a", leaseDurationSeconds: 1, acquireTime: "", renewTime: "", leaderTransitions: 0 };
    const { signal } = new AbortController();
    const update = newResourceLock(kind, "a", "b").update(newFakeClient(), record, signal);
    await assert.rejects(update, (err: Error) => want.test(err.message));
  });
}

test("refuses an unknown kind of lock", () =>
  assert.throws(() => newResourceLock("secrets", "a", "b"), /Invalid lock-type secrets/));

test("events about the lock, or both of a pair, report who became leader and who stopped", async () => {
  for (const [kind, kinds] of [
    ["leases", ["coordination.k8s.io/v1 Lease"]],
    ["endpoints", ["v1 Endpoints"]],
    ["configmaps", ["v1 ConfigMap"]],
    ["configmapsleases", ["v1 ConfigMap", "coordination.k8s.io/v1 Lease"]],
    ["endpointsleases", ["v1 Endpoints", "coordination.k8s.io/v1 Lease"]],
  ] as const) {
    const client = newFakeClient();
    const clock = newFakeClock();
    const recorder = newEventRecorder({ client, component: "tester", log: discardLogger, clock });
    const a = candidate(client, clock, "a", { recorder }, kind);
    await settle();
    a.stop.abort();
    await a.finished;
    await recorder.flush();
    const reported = client.objects<Event>(events, "kube-system");
    assert.deepEqual(
      reported.map(({ involvedObject: of, reason, message }) => [`${of.apiVersion} ${of.kind}`, of.name, reason, message]),
      ["became leader", "stopped leading"].flatMap((what) => kinds.map((of) => [of, "test", "LeaderElection", `a ${what}`])),
    );
  }
});

test("a malformed leader annotation is waited for or taken over, without a failure", async () => {
  for (const garbage of [
    "",
    "null",
    "5",
    "[]",
    '"x"',
    "{}",
    '{"holderIdentity":7,"leaderTransitions":"x"}',
    '{"holderIdentity":null}',
  ]) {
    const client = newFakeClient();
    const clock = newFakeClock();
    const annotations = { "control-plane.alpha.kubernetes.io/leader": garbage };
    client.put(configMaps, { metadata: { namespace: "kube-system", name: "test", annotations } });
    const a = candidate(client, clock, "a", {}, "configmaps");
    await clock.advance(60_000);
    if (garbage !== "") assert.ok(a.events.includes("started"), `${garbage}: ${a.events}`);
    a.stop.abort();
    await a.finished;
  }
});

test("a lease record that is not JSON prevents leading until it is repaired, without a hot loop", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const annotations = { "control-plane.alpha.kubernetes.io/leader": "{broken" };
  client.put(configMaps, { metadata: { namespace: "kube-system", name: "test", annotations } });
  const a = candidate(client, clock, "a", {}, "configmaps");
  await clock.advance(60_000);
  assert.deepEqual(a.events, []);
  assert.ok(client.actions.length <= 31, String(client.actions.length));
  client.put(configMaps, { metadata: { namespace: "kube-system", name: "test" } });
  await clock.advance(4_000);
  assert.match(String(a.events), /started/);
  a.stop.abort();
});

test("other fields of the lease are kept, and two locks with different holders must expire", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const metadata = { namespace: "kube-system", name: "test" };
  client.put(leases, { metadata, spec: { holderIdentity: "b", strategy: "OldestEmulationVersion" } } as KubeObject);
  const leader = JSON.stringify({ holderIdentity: "", leaseDurationSeconds: 15, leaderTransitions: 3 });
  const annotations = { "control-plane.alpha.kubernetes.io/leader": leader };
  client.put(configMaps, { metadata: { ...metadata, annotations } });
  const a = candidate(client, clock, "a", {}, "configmapsleases");
  await clock.advance(14_000);
  assert.ok(!a.events.includes("started"), a.events.join());
  await clock.advance(4_000);
  assert.ok(a.events.includes("started"), a.events.join());
  assert.partialDeepStrictEqual(leaseOf(client), { holderIdentity: "a", strategy: "OldestEmulationVersion" });
  a.stop.abort();
  await a.finished;
});

test("two resource locks act as one: acquired together, with an unknown holder while they disagree", async () => {
  const client = newFakeClient();
  const { signal } = new AbortController();
  const record = { holderIdentity: "a", leaseDurationSeconds: 15, acquireTime: "", renewTime: "", leaderTransitions: 0 };
  await newResourceLock("configmaps", "kube-system", "test").create(client, record, signal);
  const both = newResourceLock("configmapsleases", "kube-system", "test");
  assert.equal((await both.get(client, signal)).holderIdentity, "a", "the first alone");
  const lease = newResourceLock("leases", "kube-system", "test");
  await both.create(client, { ...record, holderIdentity: "b" }, signal);
  assert.equal((await lease.get(client, signal)).holderIdentity, "b", "the second is made where the first exists");
  assert.equal((await both.get(client, signal)).holderIdentity, "leaderelection.k8s.io/unknown");
  client.clearActions();
  await both.update(client, { ...record, holderIdentity: "c" }, signal);
  assert.deepEqual(
    client.writes.map(({ resource }) => resource),
    ["configmaps", "leases"],
  );
  assert.equal((await both.get(client, signal)).holderIdentity, "c");
});

test("the second of two resource locks is created again when it was deleted", async () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const a = candidate(client, clock, "a", {}, "configmapsleases");
  await settle();
  client.remove(leases, "kube-system/test");
  await clock.advance(20_000);
  assert.deepEqual(a.events, ["leader a", "started"]);
  assert.partialDeepStrictEqual(leaseOf(client), { holderIdentity: "a" });
  a.stop.abort();
  await a.finished;
});

test("the second of two resource locks is written with its current version", async () => {
  const client = newFakeClient();
  const { signal } = new AbortController();
  const record = { holderIdentity: "a", leaseDurationSeconds: 15, acquireTime: "", renewTime: "", leaderTransitions: 0 };
  const both = newResourceLock("configmapsleases", "kube-system", "test");
  await both.create(client, record, signal);
  client.put(leases, {
    metadata: { namespace: "kube-system", name: "test", labels: { by: "a user" } },
    spec: { ...leaseOf(client) },
  } as KubeObject);
  await both.update(client, { ...record, holderIdentity: "b" }, signal);
  assert.equal(leaseOf(client)["holderIdentity"], "b");
  assert.equal(client.object(leases, "kube-system/test")?.metadata.labels?.["by"], "a user");
});

test("two resource locks are not read as one when the second cannot be read", async () => {
  const client = newFakeClient();
  const { signal } = new AbortController();
  const record = { holderIdentity: "a", leaseDurationSeconds: 15, acquireTime: "", renewTime: "", leaderTransitions: 0 };
  const both = newResourceLock("configmapsleases", "kube-system", "test");
  await both.create(client, record, signal);
  client.react("get", "leases", () => {
    throw new Error("away");
  });
  await assert.rejects(both.get(client, signal), /^Error: away$/);
  await assert.rejects(both.update(client, record, signal), /^Error: away$/);
});

test("the second of two resource locks must be created too, also when the first exists", async () => {
  const client = newFakeClient();
  const { signal } = new AbortController();
  const record = { holderIdentity: "a", leaseDurationSeconds: 15, acquireTime: "", renewTime: "", leaderTransitions: 0 };
  const both = newResourceLock("configmapsleases", "kube-system", "test");
  await both.create(client, record, signal);
  client.remove(leases, "kube-system/test");
  client.react("create", "leases", () => {
    throw new Error("away");
  });
  await assert.rejects(both.create(client, record, signal), /^Error: away$/);
});
