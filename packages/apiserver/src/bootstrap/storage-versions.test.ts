import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import type { StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import { leases, storageVersions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import { keepStorageVersions, newStorageVersions } from "./storage-versions.ts";

const pods = { group: "", resource: "pods", hub: "v1", versions: [{ version: "v1" }] };
const leaseKind = { group: "coordination.k8s.io", resource: "leases", hub: "v1", versions: [{ version: "v1" }] };
const jobs = {
  group: "batch",
  resource: "jobs",
  hub: "v1",
  versions: [{ version: "v1" }],
  formerVersions: [{ version: "v2alpha1" }, { group: "extensions", version: "v1beta1" }],
  storage: { group: "batch", version: "v2alpha1" },
};

function bench(t: { after(fn: () => void): void }) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  const versions = newStorageVersions([jobs, leaseKind, pods] as unknown as ResourceDefinition[], client, clock, stop.signal);
  const said = (name: string) => client.object<StorageVersion>(storageVersions, name)?.status.storageVersions;
  const options = { client, identity: "me", clock, log: discardLogger };
  return { clock, client, stop, versions, said, keep: () => keepStorageVersions(versions, options, stop.signal) };
}

const lease = {
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { namespace: "kube-system", name: "me" },
  spec: {},
};
const ofPods = { apiServerID: "me", encodingVersion: "v1", decodableVersions: ["v1"] };

test("publishes nothing before the identity lease exists, and repairs the objects every ten minutes", async (t) => {
  const { clock, client, versions, said, keep } = bench(t);
  const kept = keep();
  await clock.advance(1000);
  assert.equal(client.writes.length, 0);
  client.put(leases, lease);
  await clock.advance(100);
  await kept;
  assert.equal(versions.completed, true);
  await versions.whenCompleted;
  assert.deepEqual(said("core.pods"), [ofPods]);
  assert.deepEqual(said("batch.jobs"), [
    {
      apiServerID: "me",
      encodingVersion: "batch/v2alpha1",
      decodableVersions: ["batch/v1", "batch/v2alpha1", "extensions/v1beta1"],
    },
  ]);
  await client.delete(storageVersions, { name: "core.pods" });
  await clock.advance(600_000);
  await settle(20);
  assert.deepEqual(said("core.pods"), [ofPods]);
});

test("keeps the entries of other servers, and the position of its own", async (t) => {
  const { client, said, versions } = bench(t);
  const of = (apiServerID: string) => ({ ...ofPods, apiServerID });
  const status = { storageVersions: [of("a"), { ...of("me"), encodingVersion: "v0" }, of("b")] };
  client.put(storageVersions, {
    apiVersion: "internal.apiserver.k8s.io/v1alpha1",
    kind: "StorageVersion",
    metadata: { name: "core.pods" },
    spec: {},
    status,
  });
  let conflicts = 2;
  client.react("update", "storageversions", () => {
    if (conflicts-- > 0) throw conflict(storageVersions, "core.pods", "changed");
    return undefined;
  });
  await versions.update("me", AbortSignal.timeout(60_000));
  assert.deepEqual(said("core.pods"), [of("a"), of("me"), of("b")]);
});

test("a new server's entry is appended, also when another server creates the object meanwhile", async (t) => {
  const { client, said, versions } = bench(t);
  const other = { ...ofPods, apiServerID: "other" };
  let isMade = false;
  client.react("create", "storageversions", ({ name }) => {
    if (name !== "core.pods" || isMade) return undefined;
    isMade = true;
    client.put(storageVersions, {
      apiVersion: "internal.apiserver.k8s.io/v1alpha1",
      kind: "StorageVersion",
      metadata: { name },
      spec: {},
      status: { storageVersions: [other] },
    });
    return undefined;
  });
  await versions.update("me", AbortSignal.timeout(60_000));
  assert.deepEqual([isMade, said("core.pods")], [true, [other, ofPods]]);
});

test("a resource whose version cannot be published keeps waiting, with the reason, and no other does", async (t) => {
  const { client, said, versions, stop } = bench(t);
  client.react("create", "storageversions", ({ name }) => {
    if (name === "batch.jobs") throw new Error("the store is full");
    return undefined;
  });
  assert.deepEqual(versions.pending(pods), { lastError: undefined });
  await assert.rejects(versions.update("me", stop.signal), /^Error: failed to update storage version for batch\.jobs$/);
  assert.equal(versions.completed, false);
  for (const [resource, name] of [
    [pods, "core.pods"],
    [leaseKind, "coordination.k8s.io.leases"],
  ] as const) {
    assert.equal(versions.pending(resource), undefined, name);
    assert.equal(said(name)?.length, 1, name);
  }
  assert.equal(versions.pending(jobs)?.lastError?.message, "the store is full");
  assert.equal(versions.pending({ group: "", resource: "bindings" }), undefined);
  stop.abort(new Error("the server stops"));
  await assert.rejects(versions.whenCompleted, /the server stops/);
});

test("a resource whose version was published is not pending again when a later repetition fails", async (t) => {
  const { client, versions, stop } = bench(t);
  await versions.update("me", stop.signal);
  client.react("get", "storageversions", ({ name }) => {
    if (name === "batch.jobs") throw new Error("the store is full");
    return undefined;
  });
  await assert.rejects(versions.update("me", stop.signal), /batch\.jobs/);
  assert.deepEqual([versions.pending(jobs), versions.completed], [undefined, true]);
});

test("an identity lease that cannot be read is an error, and nothing is published", async (t) => {
  const { client, keep } = bench(t);
  client.react("get", "leases", () => {
    throw new Error("the store is full");
  });
  await assert.rejects(keep(), /the store is full/);
  assert.equal(client.writes.length, 0);
});

test("four conflicts are overcome, a fifth is the error", async (t) => {
  const { client, versions, said } = bench(t);
  let conflicts = 4;
  client.react("update", "storageversions", ({ name }) => {
    if (name === "core.pods" && conflicts-- > 0) throw conflict(storageVersions, "core.pods", "changed");
    return undefined;
  });
  await versions.update("me", new AbortController().signal);
  assert.deepEqual(said("core.pods"), [ofPods]);
  conflicts = 5;
  await assert.rejects(versions.update("me", new AbortController().signal), /failed to update storage version for core\.pods/);
});

test("a repetition that fails is warned of, unless the server stops, and none follows its end", async (t) => {
  const { clock, client, stop, versions } = bench(t);
  client.put(leases, lease);
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  await keepStorageVersions(versions, { client, identity: "me", clock, log }, stop.signal);
  let fail = (): void => {};
  client.react("get", "storageversions", () => {
    fail();
    throw new Error("the store is full");
  });
  await clock.advance(600_000);
  await settle(20);
  assert.deepEqual(warnings, ["cannot update the storage versions"]);
  fail = () => stop.abort(new Error("the server stops"));
  await clock.advance(600_000);
  await settle(20);
  assert.equal(warnings.length, 1);
  assert.equal(clock.waiting, 0);
});

test("resources that are stored in one place are published once, under the first name, and none of them waits any more", async (t) => {
  const client = newFakeClient();
  const [former, latter] = ["", "events.k8s.io"].map((group) => ({
    ...{ group, resource: "events", hubGroup: "", hub: "v1", storageFolder: "events", versions: [{ version: "v1" }] },
  }));
  const { signal } = new AbortController();
  const versions = newStorageVersions([latter, former] as unknown as ResourceDefinition[], client, newFakeClock(), signal);
  t.after(() => versions.whenCompleted);
  for (const group of ["", "events.k8s.io"]) assert.ok(versions.pending({ group, resource: "events" }), group);
  await versions.update("me", signal);
  for (const group of ["", "events.k8s.io"]) assert.equal(versions.pending({ group, resource: "events" }), undefined, group);
  assert.deepEqual(
    client.objects<StorageVersion>(storageVersions).map(({ metadata, status }) => [metadata.name, status.storageVersions]),
    [["core.events", [{ apiServerID: "me", encodingVersion: "v1", decodableVersions: ["v1", "events.k8s.io/v1"] }]]],
  );
});
