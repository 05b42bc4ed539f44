/** Plugins for claims, volumes, ingresses and services, on a real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined, ["--enable-admission-plugins=DenyServiceExternalIPs,PersistentVolumeLabel"]);
});
after(() => server.stop());

const classes = "/apis/storage.k8s.io/v1/storageclasses";
const claims = "/api/v1/namespaces/default/persistentvolumeclaims";
const volumes = "/api/v1/persistentvolumes";
const merge = { "content-type": "application/merge-patch+json" };
const storage = (size: string): object => ({ resources: { requests: { storage: size } } });
const aClaim = (name: string, spec: object = {}, annotations = {}): object => ({
  metadata: { name, annotations },
  spec: { accessModes: ["ReadWriteOnce"], ...storage("1Gi"), ...spec },
});
const aClass = (name: string, more: object = {}, annotations = {}): object => ({
  metadata: { name, annotations },
  provisioner: "example.com/x",
  ...more,
});

test("claims that name no class get the default one, and none while there are two", async () => {
  const dry = (claim: object) => server.request("POST", `${claims}?dryRun=All`, claim);
  assert.equal((await dry(aClaim("a"))).body.spec.storageClassName, undefined);
  const isDefault = "storageclass.kubernetes.io/is-default-class";
  await server.request("POST", classes, aClass("usual", {}, { [isDefault]: "true" }));
  await waitFor(async () => (await dry(aClaim("a"))).body.spec.storageClassName === "usual");
  assert.equal((await dry(aClaim("a", { storageClassName: "" }))).body.spec.storageClassName, "");
  const old = { "volume.beta.kubernetes.io/storage-class": "other" };
  assert.equal((await dry(aClaim("a", {}, old))).body.spec.storageClassName, undefined);
  await server.request("POST", classes, aClass("second", {}, { "storageclass.beta.kubernetes.io/is-default-class": "true" }));
  await waitFor(async () => (await dry(aClaim("a"))).code === 403);
  assert.equal(
    (await dry(aClaim("a"))).body.message,
    'persistentvolumeclaims "a" is forbidden: Internal error occurred: 2 default StorageClasses were found',
  );
  await server.request("DELETE", `${classes}/second`);
  await server.request("DELETE", `${classes}/usual`);
});

test("volumes and claims have their finalizers from the start", async () => {
  const claim = await server.request("POST", claims, aClaim("protected", { storageClassName: "none" }));
  assert.deepEqual(claim.body.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
  const volume = await server.request("POST", volumes, {
    metadata: { name: "protected" },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], nfs: { server: "s", path: "/" } },
  });
  assert.equal(volume.code, 201, volume.text);
  assert.deepEqual(volume.body.metadata.finalizers, ["kubernetes.io/pv-protection"]);
});

test("a claim grows when it is bound and its class lets it", async () => {
  await server.request("POST", classes, aClass("elastic", { allowVolumeExpansion: true }));
  await server.request("POST", classes, aClass("fixed"));
  for (const name of ["elastic", "fixed"]) {
    const { code, text } = await server.request("POST", claims, aClaim(name, { storageClassName: name, volumeName: "v" }));
    assert.equal(code, 201, text);
  }
  const grow = (name: string) => server.request("PATCH", `${claims}/${name}`, { spec: storage("2Gi") }, merge);
  assert.equal((await grow("elastic")).code, 422);
  for (const name of ["elastic", "fixed"]) {
    const { code, text } = await server.request("PATCH", `${claims}/${name}/status`, { status: { phase: "Bound" } }, merge);
    assert.equal(code, 200, text);
  }
  assert.equal(
    (await grow("fixed")).body.message,
    'persistentvolumeclaims "fixed" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
  );
  await waitFor(async () => (await grow("elastic")).code === 200);
});

test("a cloud's volume keeps the zones it came with, and is refused without them", async () => {
  const aVolume = (name: string, metadata: object): object => ({
    metadata: { name, ...metadata },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], awsElasticBlockStore: { volumeID: "vol-1" } },
  });
  const labels = { "topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r" };
  const annotations = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" };
  const made = await server.request("POST", volumes, aVolume("zoned", { labels, annotations }));
  assert.equal(made.code, 201, made.text);
  assert.deepEqual(made.body.spec.nodeAffinity.required.nodeSelectorTerms, [
    {
      matchExpressions: [
        { key: "topology.kubernetes.io/zone", operator: "In", values: ["a"] },
        { key: "topology.kubernetes.io/region", operator: "In", values: ["r"] },
      ],
    },
  ]);
  const refused = await server.request("POST", volumes, aVolume("lost", {}));
  assert.equal(refused.code, 403);
  assert.match(refused.body.message, /^persistentvolumes "lost" is forbidden: error querying AWS EBS volume vol-1: /);
});

test("ingresses that name no class get the default one", async () => {
  const path = "/apis/networking.k8s.io/v1/ingressclasses";
  const annotations = { "ingressclass.kubernetes.io/is-default-class": "true" };
  const aClassNamed = (name: string): object => ({ metadata: { name, annotations }, spec: { controller: "example.com/x" } });
  await server.request("POST", path, aClassNamed("usual"));
  const ingress = (spec: object = {}, own = {}): object => ({
    metadata: { name: "i", annotations: own },
    spec: { defaultBackend: { service: { name: "s", port: { number: 80 } } }, ...spec },
  });
  const dry = (object: object) =>
    server.request("POST", "/apis/networking.k8s.io/v1/namespaces/default/ingresses?dryRun=All", object);
  await waitFor(async () => (await dry(ingress())).body.spec.ingressClassName === "usual");
  assert.equal((await dry(ingress({ ingressClassName: "own" }))).body.spec.ingressClassName, "own");
  const old = await dry(ingress({}, { "kubernetes.io/ingress.class": "old" }));
  assert.equal(old.body.spec.ingressClassName, undefined);
  await server.request("POST", path, aClassNamed("second"));
  await waitFor(async () => (await dry(ingress())).code === 403);
  assert.equal(
    (await dry(ingress())).body.message,
    'ingresses.networking.k8s.io "i" is forbidden: Internal error occurred: 2 default IngressClasses were found, only 1 allowed',
  );
});

test("new external IPs are refused, the others may stay or go", async () => {
  const path = "/api/v1/namespaces/default/services";
  const service = (externalIPs: string[]): object => ({
    metadata: { name: "s" },
    spec: { ports: [{ port: 80 }], externalIPs },
  });
  const refused = await server.request("POST", path, service(["192.0.2.1"]));
  assert.equal(refused.code, 403);
  assert.equal(refused.body.message, 'services "s" is forbidden: Use of external IPs is denied by admission control.');
  assert.equal((await server.request("POST", path, service([]))).code, 201);
  const patched = await server.request("PATCH", `${path}/s`, { spec: { externalIPs: ["192.0.2.1"] } }, merge);
  assert.equal(patched.code, 403);
});
