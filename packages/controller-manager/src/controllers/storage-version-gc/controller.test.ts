import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import { leases, storageVersions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newStorageVersionGarbageCollector } from "./controller.ts";

const identity = (name: string, more: Partial<Lease["metadata"]> = {}): Lease => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { namespace: "kube-system", name, labels: { "k8s.io/component": "kube-apiserver" }, ...more },
  spec: {},
});
const said = (name: string, ...servers: [id: string, version: string][]): StorageVersion => ({
  apiVersion: "internal.apiserver.k8s.io/v1alpha1",
  kind: "StorageVersion",
  metadata: { name },
  spec: {},
  status: {
    storageVersions: servers.map(([apiServerID, encodingVersion]) => ({
      apiServerID,
      encodingVersion,
      decodableVersions: [encodingVersion],
    })),
  },
});

function bench(t: { after(fn: () => void): void }) {
  const context = newTestContext(t, {}, { APIServerIdentity: true, StorageVersionAPI: true });
  const { client } = context;
  const left = () =>
    Object.fromEntries(
      client
        .objects<StorageVersion>(storageVersions)
        .map(({ metadata, status }) => [metadata.name, (status.storageVersions ?? []).map(({ apiServerID }) => apiServerID)]),
    );
  return { ...context, left };
}

test("removes servers whose identity does not exist, and versions without servers", async (t) => {
  const { client, ctx, run, left } = bench(t);
  client.put(leases, identity("a"), identity("elsewhere", { namespace: "default" }), identity("other", { labels: {} }));
  client.put(
    storageVersions,
    said("apps.deployments", ["a", "apps/v1"], ["gone", "apps/v2"]),
    said("apps.daemonsets", ["gone", "apps/v1"]),
    said("apps.replicasets", ["elsewhere", "apps/v1"], ["other", "apps/v1"]),
    said("core.pods", ["a", "v1"]),
    said("core.nodes"),
  );
  await run(newStorageVersionGarbageCollector(ctx));
  assert.deepEqual(left(), { "apps.deployments": ["a"], "core.pods": ["a"], "core.nodes": [] });
  const { status } = client.object<StorageVersion>(storageVersions, "apps.deployments") as StorageVersion;
  assert.equal(status.commonEncodingVersion, "apps/v1", "who is left agrees");
  assert.deepEqual(
    status.conditions?.map(({ type, status }) => [type, status]),
    [["AllEncodingVersionsEqual", "True"]],
  );
  assert.equal(client.writes.length, 3, "what is right is not written");
});

test("removes a server from all StorageVersions when its identity lease is deleted, unless the lease exists again", async (t) => {
  const { client, ctx, run, left } = bench(t);
  client.put(leases, identity("a"), identity("b"));
  client.put(storageVersions, said("core.pods", ["a", "v1"], ["b", "v1"]), said("core.nodes", ["b", "v1"]));
  await run(newStorageVersionGarbageCollector(ctx));
  assert.equal(client.writes.length, 0);
  await client.delete(leases, { namespace: "kube-system", name: "b" });
  await settle(30);
  assert.deepEqual(left(), { "core.pods": ["a"] });
});

test("tries again when it cannot be written", async (t) => {
  const { client, ctx, run, left, clock } = bench(t);
  client.put(storageVersions, said("core.pods", ["gone", "v1"]));
  let away = true;
  client.react("delete", "storageversions", () => {
    if (away) throw new Error("the server is away");
    return undefined;
  });
  await run(newStorageVersionGarbageCollector(ctx));
  assert.deepEqual(left(), { "core.pods": ["gone"] });
  away = false;
  await clock.advance(1000);
  await settle(30);
  assert.deepEqual(left(), {});
});

test("a version that cannot be written keeps no other, and is written later", async (t) => {
  const { client, ctx, run, left, clock } = bench(t);
  client.put(leases, identity("a"), identity("b"));
  for (const name of ["core.nodes", "core.pods"]) client.put(storageVersions, said(name, ["a", "v1"], ["b", "v1"]));
  await run(newStorageVersionGarbageCollector(ctx));
  let away = true;
  client.react("update", "storageversions", ({ name }) => {
    if (away && name === "core.nodes") throw new Error("the server is away");
    return undefined;
  });
  await client.delete(leases, { namespace: "kube-system", name: "b" });
  await settle(30);
  assert.deepEqual(left(), { "core.nodes": ["a", "b"], "core.pods": ["a"] });
  away = false;
  await clock.advance(1000);
  await settle(30);
  assert.deepEqual(left(), { "core.nodes": ["a"], "core.pods": ["a"] });
});

test("a server whose lease is there again stays", async (t) => {
  const { client, ctx, run, left } = bench(t);
  client.put(leases, identity("a"));
  client.put(storageVersions, said("core.pods", ["a", "v1"]));
  await run(newStorageVersionGarbageCollector(ctx));
  client.react("get", "leases", () => identity("a"));
  client.remove(leases, "kube-system/a");
  await settle(30);
  assert.deepEqual(left(), { "core.pods": ["a"] });
});

test("a StorageVersion that was made anew while the former is deleted stays", async (t) => {
  const { client, ctx, run } = bench(t);
  const former = said("core.pods", ["gone", "v1"]);
  client.put(leases, identity("a"));
  client.put(storageVersions, { ...former, metadata: { name: "core.pods", uid: "first" } });
  client.react("delete", "storageversions", () => {
    client.remove(storageVersions, "core.pods");
    client.put(storageVersions, { ...said("core.pods", ["a", "v1"]), metadata: { name: "core.pods", uid: "second" } });
    return undefined;
  });
  await run(newStorageVersionGarbageCollector(ctx));
  assert.equal(client.object(storageVersions, "core.pods")?.metadata.uid, "second");
});

test("the end of a Lease that is no identity of kube-system, by namespace or label, is not looked into", async (t) => {
  const { client, ctx, run } = bench(t);
  client.put(leases, identity("a", { namespace: "default" }), identity("b", { labels: {} }), identity("c"));
  client.put(storageVersions, said("core.pods"));
  await run(newStorageVersionGarbageCollector(ctx));
  client.clearActions();
  for (const key of ["default/a", "kube-system/b", "kube-system/c"]) client.remove(leases, key);
  await settle(30);
  assert.deepEqual(
    client.actions.filter(({ verb }) => verb === "get").map(({ name }) => name),
    ["c"],
  );
});
