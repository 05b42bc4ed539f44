/**
 * The controller of the gates StorageVersionAPI and APIServerIdentity, with the permissions of its role, on a real API server.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import { leases, storageVersions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "../framework/wait-for.ts";
import { startManaged } from "./manager-process.ts";

test("a server that is gone is taken out of what servers say of their storage, and one that never was", async (t) => {
  const cluster = await startManaged(
    t,
    ["storage-version-gc"],
    ["APIServerIdentity", "StorageVersionAPI"],
    ["--runtime-config=internal.apiserver.k8s.io/v1alpha1=true"],
  );
  const { client } = cluster.server;
  const [own] = (await client.list<Lease>(leases, { namespace: "kube-system" })).items;
  const other = { namespace: "kube-system", name: "kube-apiserver-other", labels: { "k8s.io/component": "kube-apiserver" } };
  // The API server's lease garbage collector deletes leases that are not renewed.
  const spec = { ...own?.spec, holderIdentity: other.name, leaseDurationSeconds: 3600 };
  await client.create<Lease>(leases, { metadata: other, spec });

  const says = (apiServerID: string) => ({ apiServerID, encodingVersion: "v0", decodableVersions: ["v0"] });
  const add = async (name: string, id: string, current: StorageVersion): Promise<void> => {
    const servers = [...(current.status?.storageVersions ?? []), says(id)];
    const status = { storageVersions: servers, commonEncodingVersion: servers.length === 1 ? "v0" : null };
    await client.patch(storageVersions, { name, subresource: "status" }, { type: "merge", body: { status } });
  };
  const addNew = async (name: string, id: string): Promise<void> =>
    add(name, id, await client.create<StorageVersion>(storageVersions, { metadata: { name }, spec: {}, status: {} }));
  const saidOf = async (name: string): Promise<(string | undefined)[] | undefined> => {
    const { items } = await client.list<StorageVersion>(storageVersions, {});
    const found = items.find(({ metadata }) => metadata.name === name);
    return found?.status.storageVersions?.map(({ apiServerID }) => apiServerID);
  };

  await add("core.pods", other.name, await client.get<StorageVersion>(storageVersions, { name: "core.pods" }));
  await addNew("example.com.things", other.name);
  await addNew("example.com.ghosts", "kube-apiserver-never");
  await waitFor("what no server has said to go", async () => (await saidOf("example.com.ghosts")) === undefined);
  assert.deepEqual(await saidOf("core.pods"), [own?.metadata.name, other.name]);
  assert.deepEqual(await saidOf("example.com.things"), [other.name]);

  await client.delete(leases, other);
  await waitFor("what the other server alone has said to go", async () => (await saidOf("example.com.things")) === undefined);
  await waitFor("the other server to go", async () => (await saidOf("core.pods"))?.length === 1);
  const pods = await client.get<StorageVersion>(storageVersions, { name: "core.pods" });
  assert.deepEqual(
    pods.status.storageVersions?.map(({ apiServerID }) => apiServerID),
    [own?.metadata.name],
  );
  assert.equal(pods.status.commonEncodingVersion, "v1");
  assert.doesNotMatch(cluster.log(), /forbidden/);
});
