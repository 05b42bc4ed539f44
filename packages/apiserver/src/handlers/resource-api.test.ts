/** Rules of the resource API that apply to every type, over HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { newHttp, startTestServer, type TestServer } from "../testing/start-test-server.ts";
import { aConfigMap, configMaps } from "./testing.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

const namespaces = "/api/v1/namespaces";
const priorityClasses = "/apis/scheduling.k8s.io/v1/priorityclasses";
const secrets = "/api/v1/namespaces/default/secrets";

for (const { kind, path, body } of [
  { kind: "namespaced", path: configMaps, body: aConfigMap("once") },
  { kind: "cluster-scoped", path: priorityClasses, body: { metadata: { name: "once" }, value: 1 } },
]) {
  test(`a ${kind} object's name is its own until it is deleted`, async () => {
    assert.equal((await server.request("POST", path, body)).code, 201);
    const second = await server.request("POST", path, body);
    assert.partialDeepStrictEqual(second.body, { code: 409, reason: "AlreadyExists" });
    assert.match(second.body.message, /^\S+ "once" already exists$/);
    assert.equal((await server.request("DELETE", `${path}/once`)).code, 200);
    assert.equal((await server.request("POST", path, body)).code, 201);
  });
}

test("a name may be taken once in each namespace", async () => {
  for (const namespace of ["default", "kube-public"]) {
    const { code } = await server.request("POST", `${namespaces}/${namespace}/configmaps`, aConfigMap("in-each"));
    assert.equal(code, 201);
  }
});

test("system fields are the server's: uid, resourceVersion and creationTimestamp of a client are not taken", async () => {
  const uid = "11111111-1111-1111-1111-111111111111";
  const creationTimestamp = "2001-01-01T00:00:00Z";
  const metadata = { name: "system-fields", uid, creationTimestamp, selfLink: "/moon", generation: 7 };
  const { body: made } = await server.request("POST", configMaps, { metadata });
  assert.match(made.metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(made.metadata.uid, uid);
  assert.match(made.metadata.creationTimestamp, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.ok(Math.abs(Date.parse(made.metadata.creationTimestamp) - Date.now()) < 60_000);
  assert.equal(made.metadata.selfLink, undefined);
  const changed = await server.request("PUT", `${configMaps}/system-fields`, aConfigMap("system-fields", { a: "1" }));
  assert.deepEqual(
    [changed.body.metadata.uid, changed.body.metadata.creationTimestamp],
    [made.metadata.uid, made.metadata.creationTimestamp],
  );
  assert.notEqual(changed.body.metadata.resourceVersion, made.metadata.resourceVersion);
  const given = await server.request("POST", configMaps, { metadata: { name: "with-version", resourceVersion: "5" } });
  assert.equal(given.body.message, "resourceVersion should not be set on objects to be created");
});

test("finalizers leave in any order, may be reordered, and the last one to leave removes the object", async () => {
  const path = `${configMaps}/held`;
  const finalizers = (...names: string[]) => ({ metadata: { name: "held", finalizers: names.map((name) => `x.io/${name}`) } });
  await server.request("POST", configMaps, finalizers("a", "b", "c"));
  assert.deepEqual((await server.request("PUT", path, finalizers("c", "a", "b"))).body.metadata.finalizers, [
    "x.io/c",
    "x.io/a",
    "x.io/b",
  ]);
  const { body: deleted } = await server.request("DELETE", path);
  const { deletionTimestamp } = deleted.metadata;
  assert.ok(Math.abs(Date.parse(deletionTimestamp) - Date.now()) < 60_000);
  assert.equal((await server.request("DELETE", path)).body.metadata.deletionTimestamp, deletionTimestamp);
  const added = await server.request("PUT", path, finalizers("c", "a", "b", "d"));
  assert.match(
    added.body.message,
    /metadata\.finalizers: Forbidden: no new finalizers can be added if the object is being deleted/,
  );
  assert.equal((await server.request("PUT", path, finalizers("b", "c"))).body.metadata.deletionTimestamp, deletionTimestamp);
  assert.equal((await server.request("PUT", path, finalizers("c"))).code, 200);
  assert.equal((await server.request("PUT", path, finalizers())).code, 200);
  assert.equal((await server.request("GET", path)).code, 404);
});

test("PUT creates where the type allows it, and is create or update by what exists", async () => {
  const lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/by-put";
  const body = { metadata: { name: "by-put" }, spec: { holderIdentity: "me" } };
  const made = await server.request("PUT", lease, body);
  assert.equal(made.code, 201);
  const { resourceVersion } = made.body.metadata;
  assert.equal((await server.request("PUT", lease, { ...body, metadata: { ...body.metadata, resourceVersion } })).code, 200);
  const absent = await server.request("PUT", `${configMaps}/by-put`, aConfigMap("by-put"));
  assert.partialDeepStrictEqual(absent.body, { code: 404, message: 'configmaps "by-put" not found' });
});

test("a cluster-scoped type lists at its path, a namespaced one over all namespaces and in one", async () => {
  await server.request("POST", configMaps, aConfigMap("listed", {}, { listed: "yes" }));
  await server.request("POST", "/api/v1/namespaces/kube-public/configmaps", aConfigMap("listed", {}, { listed: "yes" }));
  const spaces = await server.request("GET", namespaces);
  assert.deepEqual([spaces.code, spaces.body.kind, spaces.body.apiVersion], [200, "NamespaceList", "v1"]);
  const kube = await server.request("GET", `${namespaces}/kube-system`);
  assert.deepEqual([kube.code, kube.body.kind], [200, "Namespace"]);
  const everywhere = await server.request("GET", "/api/v1/configmaps?labelSelector=listed");
  const where = everywhere.body.items.map((item: { metadata: { namespace: string } }) => item.metadata.namespace);
  assert.deepEqual([everywhere.body.kind, where], ["ConfigMapList", ["default", "kube-public"]]);
  assert.equal((await server.request("GET", `${configMaps}?labelSelector=listed`)).body.items.length, 1);
});

test("a type without a specific table has the columns Name and Created At", async () => {
  const limits = "/api/v1/namespaces/default/limitranges";
  await server.request("POST", limits, { metadata: { name: "plain" }, spec: { limits: [] } });
  const { body } = await server.request("GET", limits, undefined, { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" });
  assert.deepEqual(
    body.columnDefinitions.map(({ name, type, format }: Record<string, string>) => [name, type, format]),
    [
      ["Name", "string", "name"],
      ["Created At", "date", ""],
    ],
  );
  assert.equal(body.rows[0].cells[0], "plain");
  assert.match(body.rows[0].cells[1], /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
});

test("labels and annotations are maps of strings, and nothing else", async () => {
  const wrong = await server.request("POST", configMaps, { metadata: { name: "labels", labels: { a: 1 } } });
  assert.equal(wrong.code, 400);
  const bad = await server.request("POST", configMaps, { metadata: { name: "labels", labels: { "a b": "c d" } } });
  assert.equal(bad.code, 422);
  const metadata = { name: "labels", labels: { color: "red" }, annotations: { "x.io/any": "text, of any form\n" } };
  const { body } = await server.request("POST", configMaps, { metadata });
  assert.partialDeepStrictEqual(body, { metadata });
});

for (const [method, path] of [
  ["HEAD", configMaps],
  ["OPTIONS", configMaps],
  ["HEAD", `${configMaps}/any`],
  ["POST", `${configMaps}/any`],
  ["PUT", configMaps],
  ["PATCH", configMaps],
  ["DELETE", "/api/v1/configmaps"],
  ["POST", "/api/v1/configmaps"],
  ["HEAD", "/apis/apps/v1"],
  ["OPTIONS", "/api/v1"],
  ["HEAD", "/version"],
  ["POST", "/version"],
] as const) {
  test(`${method} ${path} is 405`, async () => {
    const { code, body } = await server.request(method, path);
    assert.equal(code, 405);
    if (method !== "HEAD") {
      assert.partialDeepStrictEqual(body, {
        kind: "Status",
        reason: "MethodNotAllowed",
        message: "the server does not allow this method on the requested resource",
      });
    }
  });
}

test("a dry run needs the permission of the real request, and its generated values are its own", async () => {
  const body = { metadata: { generateName: "dry-" } };
  const first = await server.request("POST", `${configMaps}?dryRun=All`, body);
  const second = await server.request("POST", `${configMaps}?dryRun=All`, body);
  assert.deepEqual([first.code, second.code], [201, 201]);
  assert.notEqual(first.body.metadata.name, second.body.metadata.name);
  assert.notEqual(first.body.metadata.uid, second.body.metadata.uid);
  assert.equal((await server.request("GET", `${configMaps}/${first.body.metadata.name}`)).code, 404);
  const jane = { authorization: "Bearer user-token" };
  for (const [method, path] of [
    ["POST", configMaps],
    ["PUT", `${configMaps}/once`],
    ["PATCH", `${configMaps}/once`],
    ["DELETE", `${configMaps}/once`],
    ["DELETE", configMaps],
  ] as const) {
    const refused = await server.request(method, `${path}?dryRun=All`, body, jane);
    assert.partialDeepStrictEqual(refused.body, { code: 403, reason: "Forbidden" });
  }
});

test("a dry run counts against quota and limits, and uses nothing up", async () => {
  const space = "/api/v1/namespaces/dry-quota";
  await server.request("POST", namespaces, { metadata: { name: "dry-quota" } });
  await server.request("POST", `${space}/resourcequotas`, { metadata: { name: "one" }, spec: { hard: { secrets: "1" } } });
  await server.request("PUT", `${space}/resourcequotas/one/status`, {
    metadata: { name: "one" },
    spec: { hard: { secrets: "1" } },
    status: { hard: { secrets: "1" }, used: { secrets: "0" } },
  });
  const secret = (name: string) => ({ metadata: { name } });
  const used = async () => (await server.request("GET", `${space}/resourcequotas/one`)).body.status.used.secrets;
  assert.equal((await server.request("POST", `${space}/secrets?dryRun=All`, secret("a"))).code, 201);
  assert.equal(await used(), "0");
  assert.equal((await server.request("POST", `${space}/secrets`, secret("a"))).code, 201);
  assert.equal(await used(), "1");
  const beyond = await server.request("POST", `${space}/secrets?dryRun=All`, secret("b"));
  assert.partialDeepStrictEqual(beyond.body, { code: 403, reason: "Forbidden" });
  assert.match(beyond.body.message, /exceeded quota: one, requested: secrets=1, used: secrets=1, limited: secrets=1/);
  await server.request("POST", `${space}/limitranges`, {
    metadata: { name: "small" },
    spec: { limits: [{ type: "PersistentVolumeClaim", max: { storage: "1Gi" } }] },
  });
  const claim = {
    metadata: { name: "big" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "2Gi" } } },
  };
  const refused = await server.request("POST", `${space}/persistentvolumeclaims?dryRun=All`, claim);
  assert.match(refused.body.message, /maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi/);
});

test("the keys of service account tokens are published as a key set", async () => {
  const { code, headers, body } = await server.request("GET", "/openid/v1/jwks");
  assert.equal(code, 200);
  assert.equal(headers["content-type"], "application/jwk-set+json");
  const [key] = JSON.parse(typeof body === "string" ? body : JSON.stringify(body)).keys;
  assert.partialDeepStrictEqual(key, { use: "sig", kty: "RSA", alg: "RS256", e: "AQAB" });
  const configuration = await server.request("GET", "/.well-known/openid-configuration");
  hasFields(configuration.body, {
    issuer: "https://kubernetes.default.svc",
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
  });
});

test("the served paths are listed at /", async () => {
  const { body } = await server.request("GET", "/");
  for (const path of [
    "/api/v1",
    "/apis/apps/v1",
    "/healthz/etcd",
    "/livez/ping",
    "/metrics",
    "/openapi/v2",
    "/openid/v1/jwks",
    "/version",
  ]) {
    assert.ok(body.paths.includes(path), path);
  }
});

test("a review is answered and cannot be read back", async () => {
  const reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
  const spec = { user: "jane", resourceAttributes: { verb: "get", resource: "pods" } };
  const { code, body } = await server.request("POST", reviews, { spec });
  assert.equal(code, 201);
  assert.equal(body.status.allowed, false);
  assert.equal((await server.request("GET", reviews)).code, 405);
});

test("a client without permission is refused before it learns whether the object exists", async () => {
  const http = newHttp(server.url, server.ca);
  const answer = await http.request("GET", `${secrets}/none`, undefined, { authorization: "Bearer user-token" });
  http.close();
  assert.partialDeepStrictEqual(answer.body, {
    code: 403,
    message: 'secrets "none" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "default"',
  });
});
