import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists, conflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { runNodeLease } from "./lease.ts";

const key = "kube-node-lease/n1";

/** Renews the lease every ten seconds. */
function renewing() {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const control: { node: Node | undefined; errors: number } = {
    node: { apiVersion: "v1", kind: "Node", metadata: { name: "n1", uid: "node-uid" } } as Node,
    errors: 0,
  };
  const stop = new AbortController();
  const log = { ...discardLogger, error: () => void control.errors++ };
  const begin = () =>
    runNodeLease({ client, clock, log, nodeName: "n1", durationSeconds: 40, node: () => control.node }, stop.signal);
  const verbs = () => client.actions.map(({ verb }) => verb);
  const step = async (ms: number) => {
    await clock.advance(ms);
    await settle();
  };
  return { clock, client, control, stop, begin, verbs, step, lease: () => client.object<Lease>(leases, key) };
}

const aLease = (more: object = {}): Lease => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { name: "n1", namespace: "kube-node-lease" },
  spec: { holderIdentity: "other", acquireTime: "2021-01-01T00:00:00.000000Z" },
  ...more,
});

test("renewal of a lease is retried with delays that double up to seven seconds, and restart short after a success", async () => {
  const { clock, client, control, stop, begin, step } = renewing();
  const at: number[] = [];
  let away = true;
  client.react("get", "leases", () => {
    at.push(clock.monotonic());
    if (away) throw new Error("connect ECONNREFUSED");
    return undefined;
  });
  const running = begin();
  await settle();
  for (const waitMs of [200, 400, 800, 1_600, 3_200, 6_400, 7_000]) await step(waitMs);
  assert.deepEqual(
    at.slice(1).map((ms, i) => ms - (at[i] as number)),
    [200, 400, 800, 1_600, 3_200, 6_400, 7_000],
  );
  away = false;
  await step(7_000);
  client.react("update", "leases", () => {
    if (away) throw new Error("connect ECONNREFUSED");
    return undefined;
  });
  away = true;
  at.length = 0;
  await step(10_000);
  await step(200);
  assert.equal(at.length, 1, "the first wait is short again, and what is stored is looked at");
  assert.ok(control.errors > 7);
  stop.abort();
  await running;
  assert.equal(clock.waiting, 0);
});

test("a lease with conflicting writers is renewed in up to five attempts, then again after a delay", async () => {
  const { client, control, stop, begin, verbs, step, lease } = renewing();
  client.put(leases, aLease());
  let conflicts = 4;
  client.react("update", "leases", () => {
    if (conflicts-- > 0) throw conflict(leases, "n1", "changed");
    return undefined;
  });
  const running = begin();
  await settle(30);
  assert.deepEqual([verbs().filter((verb) => verb === "update").length, control.errors], [5, 0]);
  assert.equal(lease()?.spec?.holderIdentity, "n1");
  conflicts = 5;
  client.clearActions();
  await step(10_000);
  assert.deepEqual([verbs().filter((verb) => verb === "update").length, control.errors], [5, 1]);
  await step(200);
  assert.equal(verbs().filter((verb) => verb === "update").length, 6);
  stop.abort();
  await running;
});

test("a lease that was deleted is created again, and one that another created first is used", async () => {
  const { client, control, stop, begin, step, lease } = renewing();
  let races = 1;
  client.react("create", "leases", () => {
    if (races-- <= 0) return undefined;
    client.put(leases, aLease());
    throw alreadyExists(leases, "n1");
  });
  const running = begin();
  await settle();
  assert.partialDeepStrictEqual(lease()?.spec, { holderIdentity: "n1", acquireTime: "2021-01-01T00:00:00.000000Z" });
  client.react("update", "leases", () => {
    if (lease() === undefined) throw notFound(leases, "n1");
    return undefined;
  });
  client.remove(leases, key);
  await step(10_000);
  assert.equal(lease()?.spec?.holderIdentity, "n1");
  assert.equal(control.errors, 0);
  stop.abort();
  await running;
});

test("a lease gets the node as its owner once the node is registered, and keeps an owner that it has", async () => {
  const { control, client, stop, begin, step, lease } = renewing();
  const { node } = control;
  control.node = undefined;
  const running = begin();
  await settle();
  assert.equal(lease()?.metadata.ownerReferences, undefined);
  control.node = node;
  await step(10_000);
  assert.deepEqual(lease()?.metadata.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "node-uid" }]);
  assert.equal(lease()?.spec?.renewTime, "2022-01-01T00:00:10.000000Z");
  const other = [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "older" }];
  client.put(leases, aLease({ metadata: { name: "n1", namespace: "kube-node-lease", ownerReferences: other } }));
  client.react("update", "leases", ({ sent }) => {
    const { metadata } = sent as Lease;
    if (metadata.ownerReferences?.[0]?.uid !== "older") throw conflict(leases, "n1", "changed");
    return undefined;
  });
  await step(10_000);
  assert.deepEqual(lease()?.metadata.ownerReferences, other);
  stop.abort();
  await running;
});

test("a lease that has an owner keeps it as its only one", async () => {
  const { client, stop, begin, step, lease } = renewing();
  const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "older-uid" }];
  client.put(leases, aLease({ metadata: { name: "n1", namespace: "kube-node-lease", ownerReferences } }));
  const running = begin();
  await settle();
  assert.deepEqual([lease()?.metadata.ownerReferences, lease()?.spec?.holderIdentity], [ownerReferences, "n1"]);
  stop.abort();
  await step(10_000);
  await running;
});
