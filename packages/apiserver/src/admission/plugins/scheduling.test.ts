/** Plugins for scheduling, ownership and images of pods, on a real server with their configurations. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type HookServer, startHookServer } from "../../testing/start-hook-server.ts";
import { newHttp, startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
let backend: HookServer;
let jane: ReturnType<typeof newHttp>;
let directory: string;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "cox-scheduling-"));
  const file = (name: string, content: object): string => {
    writeFileSync(join(directory, name), JSON.stringify(content));
    return join(directory, name);
  };
  backend = await startHookServer();
  backend.raw.set("/images", (response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ status: { allowed: true } }));
  });
  const kubeConfigFile = file("images.kubeconfig", {
    clusters: [{ name: "b", cluster: { server: `${backend.url}/images`, "certificate-authority-data": backend.caBundle } }],
    users: [{ name: "u", user: { token: "for-images" } }],
    contexts: [{ name: "c", context: { cluster: "b", user: "u" } }],
    "current-context": "c",
  });
  const plugins = [
    { name: "ImagePolicyWebhook", configuration: { imagePolicy: { kubeConfigFile, allowTTL: -1, defaultAllow: false } } },
    {
      name: "PodTolerationRestriction",
      configuration: {
        apiVersion: "podtolerationrestriction.admission.k8s.io/v1alpha1",
        kind: "Configuration",
        default: [{ key: "by-default", operator: "Exists" }],
      },
    },
  ];
  const path = file("admission.json", { apiVersion: "apiserver.config.k8s.io/v1", kind: "AdmissionConfiguration", plugins });
  const enabled = [
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "OwnerReferencesPermissionEnforcement",
    "PodTolerationRestriction",
    "PodNodeSelector",
  ];
  server = await startTestServer(undefined, [
    `--admission-control-config-file=${path}`,
    `--enable-admission-plugins=${enabled.join(",")}`,
    "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds",
    "--feature-gates=EphemeralContainers=true",
  ]);
  jane = newHttp(server.url, server.ca, await server.clientCertificate("jane", ["developers"]));
});
after(async () => {
  jane.close();
  await server.stop();
  backend.stop();
  rmSync(directory, { recursive: true, force: true });
});

const podsIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
const aPod = (name: string, spec: object = {}, container: object = {}): object => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "good", ...container }], ...spec },
});
const dry = (pod: object, namespace = "default") => server.request("POST", `${podsIn(namespace)}?dryRun=All`, pod);

test("pods that request an extended resource tolerate its taint, and get the cluster's default tolerations", async () => {
  const resources = { requests: { "example.com/gpu": "1" }, limits: { "example.com/gpu": "1" } };
  const { code, body, text } = await dry(aPod("p", {}, { resources }));
  assert.equal(code, 201, text);
  assert.deepEqual(body.spec.tolerations, [
    { key: "by-default", operator: "Exists" },
    { key: "example.com/gpu", operator: "Exists", effect: "NoSchedule" },
  ]);
});

test("a namespace's annotations choose tolerations and nodes of its pods", async () => {
  const annotations = {
    "scheduler.alpha.kubernetes.io/tolerationsWhitelist": JSON.stringify([{ key: "ours", operator: "Exists" }]),
    "scheduler.alpha.kubernetes.io/defaultTolerations": "[]",
    "scheduler.alpha.kubernetes.io/node-selector": "pool=ours",
  };
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "ours", annotations } });
  const fine = await dry(aPod("p", { tolerations: [{ key: "ours", operator: "Exists" }] }), "ours");
  assert.equal(fine.code, 201, fine.text);
  assert.deepEqual(fine.body.spec.nodeSelector, { pool: "ours" });
  const refused = await dry(aPod("p", { tolerations: [{ key: "theirs", operator: "Exists" }] }), "ours");
  assert.equal(refused.code, 500);
  assert.equal(
    refused.body.message,
    "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist",
  );
  const elsewhere = await dry(aPod("p", { nodeSelector: { pool: "theirs" } }), "ours");
  assert.equal(
    elsewhere.body.message,
    'pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector',
  );
});

test("required anti-affinity is refused with a topology other than the host name", async () => {
  const affinity = (topologyKey: string): object => ({
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: {} }] } },
  });
  assert.equal((await dry(aPod("p", affinity("kubernetes.io/hostname")))).code, 201);
  assert.equal(
    (await dry(aPod("p", affinity("zone")))).body.message,
    'pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed',
  );
});

test("an owner is set by those who may delete the object, a blocking one by those who may write its finalizers", async () => {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const rules = [
    { apiGroups: [""], resources: ["configmaps"], verbs: ["create", "patch", "get"] },
    { apiGroups: [""], resources: ["secrets"], verbs: ["*"] },
  ];
  await server.request("POST", `${rbac}/clusterroles`, { metadata: { name: "maker" }, rules });
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "maker" };
  const subjects = [{ kind: "User", name: "jane" }];
  await server.request("POST", `${rbac}/namespaces/default/rolebindings`, { metadata: { name: "maker" }, roleRef, subjects });
  const owner = { apiVersion: "v1", kind: "Pod", name: "o", uid: "1" };
  const make = (resource: string, ownerReferences: object[]) =>
    jane.request("POST", `/api/v1/namespaces/default/${resource}?dryRun=All`, { metadata: { name: "x", ownerReferences } });
  await waitFor(async () => (await make("configmaps", [])).code === 201);
  // Creating an object with any owner is allowed.
  assert.equal((await make("configmaps", [owner])).code, 201);
  const give = async (resource: string, ownerReferences: object[]) => {
    await server.request("POST", `/api/v1/namespaces/default/${resource}`, { metadata: { name: "there" } });
    const patch = { metadata: { ownerReferences } };
    return jane.request("PATCH", `/api/v1/namespaces/default/${resource}/there?dryRun=All`, patch, {
      "content-type": "application/merge-patch+json",
    });
  };
  const refused = await give("configmaps", [owner]);
  assert.equal(refused.code, 403);
  assert.match(refused.body.message, /^configmaps "there" is forbidden: cannot set an ownerRef on a resource you can't delete: /);
  const allowed = await give("secrets", [owner]);
  assert.equal(allowed.code, 200, allowed.text);
  assert.match(
    (await make("secrets", [{ ...owner, blockOwnerDeletion: true }])).body.message,
    /cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: /,
  );
});

test("a backend reviews images of each kind of container, over HTTPS and as its user", async () => {
  const { code, text } = await server.request(
    "POST",
    podsIn("default"),
    aPod("imaged", { initContainers: [{ name: "i", image: "first" }] }),
  );
  assert.equal(code, 201, text);
  assert.equal(backend.requested.at(-1)?.headers.authorization, "Bearer for-images");
  backend.raw.set("/images", (response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ status: { allowed: false, reason: "not signed" } }));
  });
  const why = "image policy webhook backend denied one or more images: not signed";
  assert.equal((await dry(aPod("p"))).body.message, `pods "p" is forbidden: ${why}`);
  const debug = { spec: { ephemeralContainers: [{ name: "e", image: "evil" }] } };
  const patched = await server.request("PATCH", `${podsIn("default")}/imaged/ephemeralcontainers`, debug, {
    "content-type": "application/strategic-merge-patch+json",
  });
  assert.equal(patched.code, 403, patched.text);
  assert.equal(patched.body.message, `pods "imaged" is forbidden: ${why}`);
  const status = await server.request(
    "PATCH",
    `${podsIn("default")}/imaged/status`,
    { status: { message: "x" } },
    {
      "content-type": "application/merge-patch+json",
    },
  );
  assert.equal(status.code, 200, status.text);
});
