/** StorageVersion objects published by API servers, with the gates StorageVersionAPI and APIServerIdentity. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const flags = [
  "--feature-gates=StorageVersionAPI=true,APIServerIdentity=true",
  "--runtime-config=internal.apiserver.k8s.io/v1alpha1=true",
];
const path = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";

const identitiesOf = async (server: TestServer): Promise<string[]> => {
  const { body } = await server.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases");
  return body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
};

test("each server publishes the storage versions of every resource before it is ready", async (t) => {
  const prefix = `--etcd-prefix=/test-${randomUUID()}`;
  const first = await startTestServer(t, [...flags, prefix]);
  const [identity = ""] = await identitiesOf(first);
  const items: StorageVersion[] = (await first.request("GET", path)).body.items;
  const said = new Map(items.map(({ metadata, status }) => [metadata.name, status]));
  const deployments = said.get("apps.deployments");
  const server = { apiServerID: identity, encodingVersion: "apps/v1", decodableVersions: ["apps/v1"] };
  hasFields(deployments, {
    storageVersions: [server],
    commonEncodingVersion: "apps/v1",
    conditions: [{ type: "AllEncodingVersionsEqual", status: "True", reason: "CommonEncodingVersionSet" }],
  });
  const one = (name: string) => said.get(name)?.storageVersions?.[0];
  assert.deepEqual(
    [one("core.events")?.encodingVersion, one("core.events")?.decodableVersions],
    ["v1", ["v1", "events.k8s.io/v1", "events.k8s.io/v1beta1"]],
  );
  assert.ok(!said.has("events.k8s.io.events"), "both groups' events are stored in one place");
  assert.equal(one("batch.cronjobs")?.encodingVersion, "batch/v1beta1");
  assert.deepEqual(one("networking.k8s.io.ingresses")?.decodableVersions, [
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "extensions/v1beta1",
  ]);
  for (const name of ["core.pods", "apiregistration.k8s.io.apiservices", "internal.apiserver.k8s.io.storageversions"])
    assert.ok(said.has(name), name);
  for (const name of ["authorization.k8s.io.subjectaccessreviews", "core.bindings", "core.componentstatuses"])
    assert.ok(!said.has(name), `${name} is not stored`);
  const hook = "/readyz/poststarthook/built-in-resources-storage-version-updater";
  assert.equal((await first.request("GET", hook)).code, 200);
  const map = { metadata: { name: "a" } };
  assert.equal((await first.request("POST", "/api/v1/namespaces/default/configmaps", map)).code, 201);
  const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:storage-version-garbage-collector";
  assert.equal((await first.request("GET", role)).body.rules.length, 3);

  const second = await startTestServer(t, [...flags, prefix]);
  const both = (await second.request("GET", `${path}/apps.deployments`)).body as StorageVersion;
  assert.deepEqual(
    new Set(both.status.storageVersions?.map(({ apiServerID }) => apiServerID)),
    new Set(await identitiesOf(second)),
  );
  assert.equal(both.status.storageVersions?.length, 2);
  assert.equal(both.status.commonEncodingVersion, "apps/v1");
  assert.deepEqual(both.status.conditions, deployments?.conditions, "they agree all the while");
});

test("without one of the gates no storage version is published, and the garbage collector has no role for them", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=StorageVersionAPI=true", flags[1] as string]);
  assert.deepEqual((await server.request("GET", path)).body.items, []);
  const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:storage-version-garbage-collector";
  assert.equal((await server.request("GET", role)).code, 404);
});
