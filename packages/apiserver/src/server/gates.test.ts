/** The effects of the API server's own feature gates. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { collectIdentityLeases } from "../bootstrap/identity-lease.ts";
import { startTestServer } from "../testing/start-test-server.ts";

const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

test("APIServerIdentity=true: a server keeps its own lease, and deletes expired ones", async (t) => {
  const gate = "--feature-gates=APIServerIdentity=true";
  const server = await startTestServer(t, [gate, "--identity-lease-duration-seconds=60"]);
  const ours = async () => (await server.request("GET", leases)).body.items;
  const [lease, ...others] = await ours();
  assert.deepEqual(others, []);
  assert.match(lease.metadata.name, /^kube-apiserver-[0-9a-f-]{36}$/);
  assert.deepEqual(lease.metadata.labels, { "k8s.io/component": "kube-apiserver" });
  assert.partialDeepStrictEqual(lease.spec, { holderIdentity: lease.metadata.name, leaseDurationSeconds: 60 });
  assert.ok((await server.request("GET", "/readyz/poststarthook/start-kube-apiserver-identity-lease-controller")).code === 200);

  const clock = newFakeClock(Date.parse(lease.spec.renewTime));
  const options = {
    client: server.client,
    identity: "",
    durationSeconds: 60,
    renewIntervalSeconds: 10,
    clock,
    log: discardLogger,
  };
  await clock.advance(60_000);
  await collectIdentityLeases(options);
  assert.equal((await ours()).length, 1);
  await clock.advance(1);
  await collectIdentityLeases(options);
  assert.deepEqual(await ours(), []);
});

test("StorageVersionHash=false, DryRun=false and ServerSideApply=false disable their features", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=StorageVersionHash=false,DryRun=false,ServerSideApply=false"]);
  const { body } = await server.request("GET", "/api/v1");
  assert.ok(body.resources.every((resource: object) => !Object.hasOwn(resource, "storageVersionHash")));
  const maps = "/api/v1/namespaces/default/configmaps";
  const dry = await server.request("POST", `${maps}?dryRun=All`, { metadata: { name: "a" } });
  assert.deepEqual([dry.code, dry.body.message], [400, "the dryRun feature is disabled"]);
  const made = await server.request("POST", maps, { metadata: { name: "a" }, data: { b: "c" } });
  assert.equal(made.body.metadata.managedFields, undefined);
  const apply = { "content-type": "application/apply-patch+yaml", "content-length": "2" };
  assert.equal((await server.request("PATCH", `${maps}/a?fieldManager=me`, {}, apply)).code, 415);
});

for (const { gates, strict, duration, apis = [] } of [
  { gates: "", strict: false, duration: true },
  { gates: "AllAlpha=true", strict: true, duration: true, apis: ["--runtime-config=api/all=true"] },
  { gates: "AllBeta=false", strict: false, duration: false },
  // Without APIServerIdentity no writes wait for storage versions.
  { gates: "StorageVersionAPI=true", strict: false, duration: true, apis: ["--runtime-config=api/all=true"] },
  {
    gates: "AllAlpha=true,StorageVersionAPI=false,ServerSideFieldValidation=false,AllBeta=false,CSRDuration=true",
    strict: false,
    duration: true,
  },
]) {
  test(`--feature-gates=${gates}: alpha is ${strict ? "on" : "off"}, beta is ${duration ? "on" : "off"}`, async (t) => {
    const server = await startTestServer(t, [`--feature-gates=${gates}`, ...apis]);
    // ServerSideFieldValidation is alpha.
    const unknown = { metadata: { name: "a" }, nonsense: 1 };
    const map = await server.request("POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict", unknown);
    assert.equal(map.code, strict ? 400 : 201, map.text);
    // CSRDuration is beta.
    const { csrPem } = await newCertificateRequest({ commonName: "jane" });
    const request = Buffer.from(csrPem).toString("base64");
    const spec = { request, signerName: "example.com/own", usages: ["client auth"], expirationSeconds: 3600 };
    const csr = await server.request("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {
      metadata: { name: "a" },
      spec,
    });
    assert.equal(csr.code, 201, csr.text);
    assert.equal(csr.body.spec.expirationSeconds, duration ? 3600 : undefined);
  });
}

test("RecoverVolumeExpansionFailure=true: a claim may ask for less than what could not be had, which a quota counts until then", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=RecoverVolumeExpansionFailure=true"]);
  await server.request("POST", "/apis/storage.k8s.io/v1/storageclasses", {
    metadata: { name: "fast" },
    provisioner: "example.com/disk",
    allowVolumeExpansion: true,
  });
  const claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  const merge = { "content-type": "application/merge-patch+json" };
  const asking = (storage: string) => ({ spec: { resources: { requests: { storage } } } });
  const spec = { accessModes: ["ReadWriteOnce"], storageClassName: "fast", ...asking("5Gi").spec };
  assert.equal((await server.request("POST", claims, { metadata: { name: "data" }, spec })).code, 201);
  const status = { phase: "Bound", capacity: { storage: "1Gi" }, allocatedResources: { storage: "5Gi" }, resizeStatus: "" };
  const reported = await server.request("PATCH", `${claims}/data/status`, { status }, merge);
  assert.deepEqual(reported.body.status, status);

  const quota = { metadata: { name: "disks" }, spec: { hard: { "requests.storage": "6Gi" } } };
  await server.request("POST", "/api/v1/namespaces/default/resourcequotas", quota);
  const used = { status: { hard: quota.spec.hard, used: { "requests.storage": "5Gi" } } };
  await server.request("PATCH", "/api/v1/namespaces/default/resourcequotas/disks/status", used, merge);
  const less = await server.request("PATCH", `${claims}/data`, asking("2Gi"), merge);
  assert.equal(less.code, 200, less.text);
  const tooLittle = await server.request("PATCH", `${claims}/data`, asking("1Gi"), merge);
  assert.match(tooLittle.body.message, /: field can not be less than status\.capacity$/);
  // The quota usage did not shrink with the claim: from 5Gi to 7Gi exceeds 6Gi.
  const tooMuch = await server.request("PATCH", `${claims}/data`, asking("7Gi"), merge);
  assert.match(tooMuch.body.message, /exceeded quota: disks, requested: requests\.storage=2Gi, used: requests\.storage=5Gi/);
});
