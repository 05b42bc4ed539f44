/** Dry runs have no side effects: after each write with `dryRun=All` all keys of etcd are unchanged. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type EtcdClient, newEtcdClient } from "../storage/etcd/client.ts";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const inDry = "/api/v1/namespaces/dry";
const merge = { "content-type": "application/merge-patch+json" };
const aPod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: "c", image: "i" }] } });
const aService = (name: string, spec: object = {}) => ({ metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } });
const atNode = { metadata: { name: "kept" }, target: { kind: "Node", name: "node" } };
const nodePort = { type: "NodePort", clusterIP: "10.0.0.77", ports: [{ port: 80, nodePort: 30077 }] };
const aDefinition = {
  metadata: { name: "foos.dry.example.com" },
  spec: {
    group: "dry.example.com",
    names: { plural: "foos", kind: "Foo" },
    scope: "Namespaced",
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
};

let server: TestServer;
let etcd: EtcdClient;
const stops: (() => void | Promise<void>)[] = [];
before(async () => {
  server = await startTestServer({ after: (stop) => stops.push(stop) }, ["--service-cluster-ip-range=10.0.0.0/24"]);
  etcd = newEtcdClient({ servers: [server.etcdEndpoint] });
  const quota = { metadata: { name: "q" }, spec: { hard: { pods: "2", configmaps: "5" } } };
  for (const [path, body] of [
    ["/api/v1/namespaces", { metadata: { name: "dry" } }],
    ["/api/v1/nodes", { metadata: { name: "node" } }],
    [`${inDry}/serviceaccounts`, { metadata: { name: "default" } }],
    [`${inDry}/resourcequotas`, quota],
    [`${inDry}/pods`, aPod("kept")],
    [`${inDry}/services`, aService("kept", { type: "NodePort" })],
    [
      "/apis/storage.k8s.io/v1/storageclasses",
      { metadata: { name: "sc", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } }, provisioner: "p" },
    ],
  ] as const) {
    const { code, text } = await server.request("POST", path, body);
    assert.equal(code, 201, text);
  }
  const status = { hard: quota.spec.hard, used: { pods: "1", configmaps: "0" } };
  await server.request("PUT", `${inDry}/resourcequotas/q/status`, { ...quota, status });
});
after(async () => {
  etcd.close();
  for (const stop of stops.reverse()) await stop();
});

/** Keys that the server writes on its own. */
const itsOwn = /\/(masterleases|apiregistration\.k8s\.io|flowschemas|prioritylevelconfigurations|events)\/|coxswain-barrier/;

/** All other keys with their versions. */
async function stored(): Promise<string[]> {
  const { kvs } = await etcd.range({ key: `${server.prefix}/`, end: `${server.prefix}0`, keysOnly: true });
  return kvs.map(({ key, modRevision }) => `${key} ${modRevision}`).filter((line) => !itsOwn.test(line));
}

for (const { name, method = "POST", path, body, headers, code = 201 } of [
  { name: "a namespace", path: "/api/v1/namespaces", body: { metadata: { name: "other" } } },
  { name: "a pod, which the quota counts", path: `${inDry}/pods`, body: aPod("new") },
  { name: "a node's name and its pod's taints", path: `${inDry}/pods/kept/binding`, body: atNode },
  { name: "a pod's deletion", method: "DELETE", path: `${inDry}/pods/kept`, code: 200 },
  { name: "the deletion of all pods", method: "DELETE", path: `${inDry}/pods`, code: 200 },
  { name: "an eviction", path: `${inDry}/pods/kept/eviction`, body: { metadata: { name: "kept" } } },
  { name: "an address and a port for a service", path: `${inDry}/services`, body: aService("new", nodePort) },
  { name: "any address for a service", path: `${inDry}/services`, body: aService("new") },
  {
    name: "giving a port up",
    method: "PATCH",
    path: `${inDry}/services/kept`,
    body: { spec: { type: "ClusterIP", ports: [{ port: 80, nodePort: null }] } },
    headers: merge,
    code: 200,
  },
  { name: "a service's deletion", method: "DELETE", path: `${inDry}/services/kept`, code: 200 },
  {
    name: "a claim, which is given the default class",
    path: `${inDry}/persistentvolumeclaims`,
    body: { metadata: { name: "c" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
  },
  {
    name: "a priority class for all pods",
    path: "/apis/scheduling.k8s.io/v1/priorityclasses",
    body: { metadata: { name: "p" }, value: 5, globalDefault: true },
  },
  { name: "a token", path: `${inDry}/serviceaccounts/default/token`, body: { spec: {} } },
  {
    name: "an object that is applied",
    method: "PATCH",
    path: `${inDry}/configmaps/new`,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "new" } },
    headers: { "content-type": "application/apply-patch+yaml" },
  },
  { name: "a custom resource definition", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: aDefinition },
  { name: "the namespace's end", method: "DELETE", path: inDry, code: 200 },
]) {
  test(`a dry run leaves no trace of ${name}`, async () => {
    const before = await stored();
    assert.ok(before.length > 10);
    const answer = await server.request(method, `${path}?dryRun=All&fieldManager=m`, body, headers);
    assert.equal(answer.code, code, answer.text);
    assert.deepEqual(await stored(), before);
  });
}

test("a node port and quota requested in a dry run stay available to other requests", async () => {
  assert.equal((await server.request("POST", `${inDry}/services`, aService("real", nodePort))).code, 201);
  assert.equal((await server.request("POST", `${inDry}/pods`, aPod("real"))).code, 201);
  assert.equal((await server.request("POST", `${inDry}/pods`, aPod("beyond"))).code, 403);
});

test("a dry run answers with the object as a later read would return it", async () => {
  const job = { metadata: { name: "j" }, spec: { template: { spec: { ...aPod("x").spec, restartPolicy: "Never" } } } };
  const made = await server.request("POST", "/apis/batch/v1/namespaces/dry/jobs?dryRun=All", job);
  assert.equal(made.code, 201, made.text);
  // A default derived from values that the server itself sets in the template.
  assert.equal(made.body.metadata.labels["job-name"], "j");
  const metrics = [
    { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } },
    { type: "Pods", pods: { metric: { name: "m" }, target: { type: "AverageValue", averageValue: "5" } } },
  ];
  const scaler = { metadata: { name: "h" }, spec: { maxReplicas: 2, scaleTargetRef: { kind: "D", name: "d" }, metrics } };
  const tried = await server.request("POST", "/apis/autoscaling/v2/namespaces/dry/horizontalpodautoscalers?dryRun=All", scaler);
  // Stored as v1, which separates the cpu metric from the others.
  assert.deepEqual(
    tried.body.spec.metrics.map(({ type }: { type: string }) => type),
    ["Pods", "Resource"],
  );
  const set = {
    metadata: { name: "s" },
    spec: {
      serviceName: "s",
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: aPod("x").spec },
      volumeClaimTemplates: [
        {
          apiVersion: "v9",
          kind: "Other",
          metadata: { name: "v" },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      ],
    },
  };
  const { body } = await server.request("POST", "/apis/apps/v1/namespaces/dry/statefulsets?dryRun=All", set);
  const [claim] = body.spec.volumeClaimTemplates;
  assert.deepEqual([claim.apiVersion, claim.kind], ["v1", "PersistentVolumeClaim"]);
});
