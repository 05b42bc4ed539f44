/** ResourceQuota on a real server; the test plays the quota controller, which sets the used amounts. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
let directory: string;
before(async () => {
  directory = mkdtempSync(join(tmpdir(), "cox-quota-"));
  const path = join(directory, "admission.json");
  const critical = { scopeName: "PriorityClass", operator: "In", values: ["critical"] };
  const limitedResources = [
    { resource: "pods", matchScopes: [critical] },
    { resource: "persistentvolumeclaims", matchContains: ["gold.storageclass.storage.k8s.io/requests.storage"] },
  ];
  const configuration = { apiVersion: "apiserver.config.k8s.io/v1", kind: "ResourceQuotaConfiguration", limitedResources };
  const plugins = [{ name: "ResourceQuota", configuration }];
  writeFileSync(path, JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AdmissionConfiguration", plugins }));
  server = await startTestServer(undefined, [
    `--admission-control-config-file=${path}`,
    "--disable-admission-plugins=ServiceAccount",
  ]);
  await server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", { metadata: { name: "critical" }, value: 5 });
});
after(async () => {
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

const inNamespace = (namespace: string, resource: string): string => `/api/v1/namespaces/${namespace}/${resource}`;

/** Creates a quota with a status, as the quota controller would. */
async function quota(namespace: string, name: string, hard: Record<string, string>, spec: object = {}): Promise<void> {
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  const path = inNamespace(namespace, "resourcequotas");
  const { code, body, text } = await server.request("POST", path, { metadata: { name }, spec: { hard, ...spec } });
  assert.equal(code, 201, text);
  const used = Object.fromEntries(Object.keys(hard).map((resource) => [resource, "0"]));
  const counted = await server.request("PUT", `${path}/${name}/status`, { ...body, status: { hard, used } });
  assert.equal(counted.code, 200, counted.text);
}
async function usedIn(namespace: string, name = "q"): Promise<Record<string, string>> {
  return (await server.request("GET", inNamespace(namespace, `resourcequotas/${name}`))).body.status.used;
}
const aPod = (name: string, spec: object = {}, resources: object = {}): object => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "i", resources }], ...spec },
});
const create = (namespace: string, pod: object, query = "") =>
  server.request("POST", inNamespace(namespace, "pods") + query, pod);

test("fifty creations at once take what there is and no more", async () => {
  await quota("crowd", "q", { pods: "10", "requests.cpu": "1" });
  const requests = { requests: { cpu: "100m" } };
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => create("crowd", aPod(`p${i}`, {}, requests))));
  assert.equal(answers.filter(({ code }) => code === 201).length, 10);
  const refused = answers.filter(({ code }) => code === 403);
  assert.equal(refused.length, 40);
  assert.match(
    refused[0]?.body.message,
    /^pods "p\d+" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=100m, used: pods=10,requests.cpu=1, limited: pods=10,requests.cpu=1$/,
  );
  assert.deepEqual(await usedIn("crowd"), { pods: "10", "requests.cpu": "1" });
  assert.equal((await server.request("GET", inNamespace("crowd", "pods"))).body.items.length, 10);
});

test("two servers of one cluster do not let more through together", async (t) => {
  await quota("split", "q", { pods: "10" });
  const second = await startTestServer(t, [`--etcd-prefix=${server.prefix}`, "--disable-admission-plugins=ServiceAccount"]);
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      (i % 2 === 0 ? server : second).request("POST", inNamespace("split", "pods"), aPod(`p${i}`)),
    ),
  );
  const made = answers.filter(({ code }) => code === 201).length;
  const others = answers.filter(({ code }) => code !== 201 && code !== 403).map(({ text }) => text);
  assert.deepEqual(others, []);
  assert.equal(made, 10);
  assert.deepEqual(await usedIn("split"), { pods: "10" });
  assert.equal((await server.request("GET", inNamespace("split", "pods"))).body.items.length, 10);
});

test("two quotas are both charged, also when another writer changes one of them", async () => {
  await quota("shared", "a", { pods: "100" });
  await quota("shared", "b", { "count/pods": "100" });
  const path = inNamespace("shared", "resourcequotas/b");
  const touch = () =>
    server.request(
      "PATCH",
      path,
      { metadata: { annotations: { at: String(Math.random()) } } },
      {
        "content-type": "application/merge-patch+json",
      },
    );
  const work = Array.from({ length: 20 }, (_, i) => Promise.all([create("shared", aPod(`p${i}`)), touch()]));
  for (const [made] of await Promise.all(work)) assert.equal(made.code, 201, made.text);
  assert.deepEqual(await usedIn("shared", "a"), { pods: "20" });
  assert.deepEqual(await usedIn("shared", "b"), { "count/pods": "20" });
});

test("a dry run gets the answer that a charge would give and takes nothing", async () => {
  await quota("dry", "q", { pods: "1" });
  assert.equal((await create("dry", aPod("a"), "?dryRun=All")).code, 201);
  assert.deepEqual(await usedIn("dry"), { pods: "0" });
  assert.equal((await create("dry", aPod("a"))).code, 201);
  assert.equal((await create("dry", aPod("b"), "?dryRun=All")).code, 403);
});

test("neither an eviction nor an update of a pod is charged, nor held to a quota that came after the pod", async () => {
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "later" } });
  assert.equal((await create("later", aPod("a"))).code, 201);
  await quota("later", "q", { pods: "1", "requests.cpu": "1" });
  const path = inNamespace("later", "pods/a");
  const labelled = await server.request(
    "PATCH",
    path,
    { metadata: { labels: { a: "b" } } },
    { "content-type": "application/merge-patch+json" },
  );
  assert.equal(labelled.code, 200, labelled.text);
  const evicted = await server.request("POST", `${path}/eviction`, { metadata: { name: "a" } });
  assert.equal(evicted.code, 201, evicted.text);
  assert.deepEqual(await usedIn("later"), { pods: "0", "requests.cpu": "0" });
});

test("a quota whose usage is not computed yet admits nothing, from its creation on", async () => {
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "young" } });
  await server.request("POST", inNamespace("young", "resourcequotas"), {
    metadata: { name: "q" },
    spec: { hard: { pods: "5" } },
  });
  const path = inNamespace("young", "resourcequotas/q");
  const { body } = await server.request("GET", path);
  await server.request("PUT", `${path}/status`, { ...body, status: { hard: { pods: "5" } } });
  const { code, body: answer } = await create("young", aPod("a"));
  assert.equal(code, 403);
  assert.equal(answer.message, 'pods "a" is forbidden: status unknown for quota: q, resources: pods');
});

const zoned = { podAffinityTerm: { topologyKey: "z", namespaces: ["other"], labelSelector: {} }, weight: 1 };
for (const { scope, inside, outside } of [
  { scope: { scopes: ["BestEffort"] }, inside: aPod("in"), outside: aPod("out", {}, { requests: { cpu: "1" } }) },
  { scope: { scopes: ["NotBestEffort"] }, inside: aPod("in", {}, { limits: { memory: "1Gi" } }), outside: aPod("out") },
  { scope: { scopes: ["Terminating"] }, inside: aPod("in", { activeDeadlineSeconds: 5 }), outside: aPod("out") },
  { scope: { scopes: ["NotTerminating"] }, inside: aPod("in"), outside: aPod("out", { activeDeadlineSeconds: 5 }) },
  {
    scope: { scopes: ["CrossNamespacePodAffinity"] },
    inside: aPod("in", { affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [zoned] } } }),
    outside: aPod("out"),
  },
  {
    scope: { scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["critical"] }] } },
    inside: aPod("in", { priorityClassName: "critical" }),
    outside: aPod("out"),
  },
]) {
  const name = "scopes" in scope ? (scope.scopes[0] as string) : "PriorityClass";
  test(`the scope ${name} takes in its pods and no others`, async () => {
    const namespace = `scope-${name.toLowerCase()}`;
    await quota(namespace, "q", { pods: "5" }, scope);
    for (const pod of [inside, outside]) {
      const { code, text } = await create(namespace, pod);
      assert.equal(code, 201, text);
    }
    assert.deepEqual(await usedIn(namespace), { pods: "1" });
  });
}

test("services are charged by what their type takes, and for the difference when it changes", async () => {
  await quota("services", "q", { services: "3", "services.nodeports": "2", "services.loadbalancers": "1" });
  const path = inNamespace("services", "services");
  const service = (name: string, type: string): object => ({ metadata: { name }, spec: { type, ports: [{ port: 80 }] } });
  const made = await server.request("POST", path, service("a", "ClusterIP"));
  assert.equal(made.code, 201, made.text);
  assert.deepEqual(await usedIn("services"), { services: "1", "services.nodeports": "0", "services.loadbalancers": "0" });
  const changed = await server.request("PUT", `${path}/a`, { ...made.body, spec: { ...made.body.spec, type: "LoadBalancer" } });
  assert.equal(changed.code, 200, changed.text);
  assert.deepEqual(await usedIn("services"), { services: "1", "services.nodeports": "1", "services.loadbalancers": "1" });
  const second = await server.request("POST", path, service("b", "LoadBalancer"));
  assert.match(
    second.body.message,
    /exceeded quota: q, requested: services.loadbalancers=1, used: services.loadbalancers=1, limited: services.loadbalancers=1/,
  );
});

test("claims are charged for their class; a limited class needs a quota that has it", async () => {
  const gold = "gold.storageclass.storage.k8s.io/requests.storage";
  await quota("storage", "q", { persistentvolumeclaims: "5", "requests.storage": "10Gi" });
  const claim = (name: string, storage: string, storageClassName: string): object => ({
    metadata: { name },
    spec: { storageClassName, accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
  });
  const post = (object: object) => server.request("POST", inNamespace("storage", "persistentvolumeclaims"), object);
  assert.equal((await post(claim("a", "4Gi", "silver"))).code, 201);
  const refused = await post(claim("b", "1Gi", "gold"));
  assert.equal(refused.body.message, `persistentvolumeclaims "b" is forbidden: insufficient quota to consume: ${gold}`);
  await quota("storage", "gold", { [gold]: "2Gi" });
  assert.equal((await post(claim("b", "1Gi", "gold"))).code, 201);
  assert.match((await post(claim("c", "2Gi", "gold"))).body.message, /exceeded quota: gold, /);
  assert.match(
    (await post(claim("d", "6Gi", "silver"))).body.message,
    /exceeded quota: q, requested: requests.storage=6Gi, used: requests.storage=5Gi, limited: requests.storage=10Gi/,
  );
});

test("a priority class that is limited needs a quota of its scope", async () => {
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "none" } });
  const { code, body } = await create("none", aPod("vip", { priorityClassName: "critical" }));
  assert.equal(code, 500);
  assert.equal(body.message, "insufficient quota to match these scopes: [{PriorityClass In [critical]}]");
  assert.equal((await create("none", aPod("plain"))).code, 201);
});

test("anything can be counted, by its name and group", async () => {
  await quota("counts", "q", { "count/deployments.apps": "1", configmaps: "1", "count/secrets": "0" });
  const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  const deployment = (name: string): object => ({
    metadata: { name },
    spec: { selector: { matchLabels: { a: "b" } }, template },
  });
  const deployments = "/apis/apps/v1/namespaces/counts/deployments";
  assert.equal((await server.request("POST", deployments, deployment("a"))).code, 201);
  assert.match(
    (await server.request("POST", deployments, deployment("b"))).body.message,
    /exceeded quota: q, requested: count\/deployments.apps=1/,
  );
  assert.equal((await server.request("POST", inNamespace("counts", "configmaps"), { metadata: { name: "a" } })).code, 201);
  assert.match(
    (await server.request("POST", inNamespace("counts", "secrets"), { metadata: { name: "a" } })).body.message,
    /requested: count\/secrets=1, used: count\/secrets=0, limited: count\/secrets=0/,
  );
});

test("a request that one of two quotas refuses is charged to neither", async () => {
  await quota("both", "a", { pods: "5" });
  await quota("both", "b", { "count/pods": "0" });
  const { code, body } = await create("both", aPod("p"));
  assert.equal(code, 403);
  assert.match(body.message, /exceeded quota: b, /);
  assert.deepEqual(await usedIn("both", "a"), { pods: "0" });
});

test("a quota is charged for the requests of all containers, and the second resource refuses alone", async () => {
  await quota("sums", "q", { "requests.cpu": "10", "requests.memory": "3Gi" });
  const container = (name: string, memory: string) => ({ name, image: "i", resources: { requests: { cpu: "1", memory } } });
  const pod = (name: string, ...memory: string[]) => ({
    metadata: { name },
    spec: { containers: memory.map((size, i) => container(`c${i}`, size)) },
  });
  assert.equal((await create("sums", pod("a", "1Gi", "1Gi"))).code, 201);
  assert.deepEqual(await usedIn("sums"), { "requests.cpu": "2", "requests.memory": "2Gi" });
  const { body } = await create("sums", pod("b", "512Mi", "1Gi"));
  assert.match(
    body.message,
    /exceeded quota: q, requested: requests.memory=1536Mi, used: requests.memory=2Gi, limited: requests.memory=3Gi$/,
  );
  assert.deepEqual(await usedIn("sums"), { "requests.cpu": "2", "requests.memory": "2Gi" });
});

test("a quota that was raised lets in what it refused before", async () => {
  await quota("raised", "q", { pods: "0" });
  assert.equal((await create("raised", aPod("a"))).code, 403);
  const path = inNamespace("raised", "resourcequotas/q");
  const { body } = await server.request("GET", path);
  const raised = await server.request("PUT", path, { ...body, spec: { hard: { pods: "1" } } });
  await server.request("PUT", `${path}/status`, { ...raised.body, status: { hard: { pods: "1" }, used: { pods: "0" } } });
  assert.equal((await create("raised", aPod("a"))).code, 201);
  assert.equal((await create("raised", aPod("b"))).code, 403);
});
