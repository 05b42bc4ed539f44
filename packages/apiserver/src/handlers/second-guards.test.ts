/**
 * Secondary checks behind the first one of each verb: versions with uids, dry runs of subresources,
 * fields owned through another path.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startShared, type TestServer } from "./testing.ts";

const configMaps = "/api/v1/namespaces/default/configmaps";
const deployments = "/apis/apps/v1/namespaces/default/deployments";
const pods = "/api/v1/namespaces/default/pods";
const services = "/api/v1/namespaces/default/services";
const merge = { "content-type": "application/merge-patch+json" };
const json = { "content-type": "application/json-patch+json" };
const apply = { "content-type": "application/apply-patch+yaml" };

let server: TestServer;
before(async () => {
  server = await startShared(["--disable-admission-plugins=ServiceAccount"]);
});
after(() => server.stop());

let names = 0;
async function made(path: string, object: object = {}, metadata: object = {}) {
  const { code, body } = await server.request("POST", path, { ...object, metadata: { name: `n${names++}`, ...metadata } });
  assert.equal(code, 201, JSON.stringify(body));
  return { object: body, path: `${path}/${body.metadata.name}` };
}
const read = async (path: string) => (await server.request("GET", path)).body;
const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } };
const aDeployment = { spec: { replicas: 1, selector: { matchLabels: { a: "b" } }, template } };
const aPod = { spec: { containers: [{ name: "c", image: "i" }] } };

for (const [type, body] of [
  [merge, { metadata: { namespace: "other" } }],
  [json, [{ op: "replace", path: "/metadata/namespace", value: "other" }]],
  [{ "content-type": "application/strategic-merge-patch+json" }, { metadata: { namespace: "other" } }],
] as const) {
  test(`an object is not moved to another namespace by ${type["content-type"]}`, async () => {
    const { path } = await made(configMaps);
    const { code, body: answer } = await server.request("PATCH", path, body, type);
    assert.equal(code, 400);
    assert.equal(answer.message, "the namespace of the object (other) does not match the namespace on the request (default)");
  });
}

for (const { name, uid, version, code } of [
  { name: "both right", uid: true, version: true, code: 200 },
  { name: "only its uid right", uid: true, version: false, code: 409 },
  { name: "only its version right", uid: false, version: true, code: 409 },
]) {
  for (const [what, path, object] of [
    ["config map", configMaps, {}],
    ["pod", pods, aPod],
  ] as const) {
    test(`a deletion of a ${what} with ${name} is ${code}`, async () => {
      const { object: stored, path: own } = await made(path, object);
      const preconditions = {
        uid: uid ? stored.metadata.uid : "another",
        resourceVersion: version ? stored.metadata.resourceVersion : "1",
      };
      assert.equal((await server.request("DELETE", own, { preconditions })).code, code);
      assert.equal((await server.request("GET", own)).code, code === 200 ? 404 : 200);
    });
  }
}

for (const [what, requested, headers] of [
  ["PUT", (stored: object) => stored, {}],
  ["PATCH", () => ({ metadata: { uid: "another" } }), merge],
] as const) {
  test(`${what} with the uid of an earlier object changes nothing`, async () => {
    const { object, path } = await made(configMaps, { data: { a: "1" } });
    object.metadata.uid = "another";
    object.data = { a: "2" };
    const { code } = await server.request(what, path, requested(object), headers);
    assert.ok(code === 409 || code === 422, String(code));
    assert.deepEqual((await read(path)).data, { a: "1" });
  });
}

const scale = (replicas: number, metadata: object = {}) => ({ metadata, spec: { replicas } });
for (const { name, of, object, attempt } of [
  {
    name: "a PUT of the status",
    of: deployments,
    object: aDeployment,
    attempt: (path: string, stored: object) =>
      server.request("PUT", `${path}/status?dryRun=All`, { ...stored, status: { replicas: 7 } }),
  },
  {
    name: "a patch of the status",
    of: deployments,
    object: aDeployment,
    attempt: (path: string) => server.request("PATCH", `${path}/status?dryRun=All`, { status: { replicas: 7 } }, merge),
  },
  {
    name: "a patch of the scale",
    of: deployments,
    object: aDeployment,
    attempt: (path: string) => server.request("PATCH", `${path}/scale?dryRun=All`, scale(7), merge),
  },
  {
    name: "an apply of the scale",
    of: deployments,
    object: aDeployment,
    attempt: (path: string) =>
      server.request(
        "PATCH",
        `${path}/scale?dryRun=All&fieldManager=me&force=true`,
        { kind: "Scale", apiVersion: "autoscaling/v1", ...scale(7, { name: path.split("/").at(-1) }) },
        apply,
      ),
  },
  {
    name: "a binding",
    of: pods,
    object: aPod,
    attempt: (path: string) =>
      server.request("POST", `${path}/binding?dryRun=All`, {
        metadata: { name: path.split("/").at(-1) },
        target: { kind: "Node", name: "n" },
      }),
  },
  {
    name: "an eviction",
    of: pods,
    object: aPod,
    attempt: (path: string) =>
      server.request("POST", `${path}/eviction?dryRun=All`, { metadata: { name: path.split("/").at(-1) } }),
  },
  {
    name: "an eviction whose own options say so",
    of: pods,
    object: aPod,
    attempt: (path: string) =>
      server.request("POST", `${path}/eviction`, {
        metadata: { name: path.split("/").at(-1) },
        deleteOptions: { dryRun: ["All"] },
      }),
  },
  {
    name: "a deletion whose body says so",
    of: configMaps,
    object: {},
    attempt: (path: string) => server.request("DELETE", path, { dryRun: ["All"] }),
  },
  {
    name: "a deletion of a collection",
    of: configMaps,
    object: {},
    attempt: () => server.request("DELETE", `${configMaps}?dryRun=All`),
  },
]) {
  test(`${name} as a dry run is answered and leaves the object as it was`, async () => {
    const { object: stored, path } = await made(of, object);
    const { code, body } = await attempt(path, stored);
    assert.ok(code === 200 || code === 201, `${code} ${JSON.stringify(body)}`);
    assert.deepEqual(await read(path), stored);
  });
}

test("a scale is held to the version and the uid that it names", async () => {
  const { object, path } = await made(deployments, aDeployment);
  const { name, uid, resourceVersion } = object.metadata;
  await server.request("PATCH", path, { metadata: { labels: { x: "y" } } }, merge);
  const put = (metadata: object) => server.request("PUT", `${path}/scale`, scale(5, { name, ...metadata }));
  assert.equal((await put({ resourceVersion })).code, 409);
  assert.equal((await put({ uid: "another" })).code, 409);
  assert.equal((await read(path)).spec.replicas, 1);
  assert.equal((await put({ uid })).code, 200);
  assert.equal((await read(path)).spec.replicas, 5);
});

test("a status of an old version is a Conflict, and takes neither the spec nor its generation along", async () => {
  const { object, path } = await made(deployments, aDeployment);
  const { body } = await server.request("PUT", `${path}/status`, {
    ...object,
    spec: { ...object.spec, replicas: 9, paused: true },
    status: { replicas: 3 },
  });
  assert.deepEqual([body.spec, body.status.replicas, body.metadata.generation], [object.spec, 3, 1]);
  assert.equal((await server.request("PUT", `${path}/status`, { ...object, status: { replicas: 4 } })).code, 409);
  const main = await server.request("PATCH", path, { status: { replicas: 8 } }, merge);
  assert.deepEqual([main.body.status.replicas, main.body.metadata.generation], [3, 1]);
});

test("the generation counts changes of the spec and the begin of the deletion, once each", async () => {
  const { path } = await made(deployments, aDeployment, { finalizers: ["example.com/x"] });
  const generation = async () => (await read(path)).metadata.generation;
  await server.request("PATCH", path, { metadata: { labels: { x: "y" } } }, merge);
  assert.equal(await generation(), 1);
  await server.request("PATCH", path, { spec: { replicas: 2 }, metadata: { generation: 77 } }, merge);
  assert.equal(await generation(), 2);
  await server.request("DELETE", path, { propagationPolicy: "Background" });
  assert.equal(await generation(), 3);
  await server.request("DELETE", path, { propagationPolicy: "Background" });
  assert.equal(await generation(), 3);
});

test("a deletion that has begun is not taken back by any write", async () => {
  const { path } = await made(configMaps, {}, { finalizers: ["example.com/x", "example.com/y"] });
  const marked = (await server.request("DELETE", path)).body;
  const marks = ({ metadata }: typeof marked) => [metadata.deletionTimestamp, metadata.deletionGracePeriodSeconds];
  const { deletionTimestamp: _t, deletionGracePeriodSeconds: _g, ...metadata } = marked.metadata;
  const put = await server.request("PUT", path, { ...marked, metadata });
  assert.deepEqual([put.code, ...marks(put.body)], [200, ...marks(marked)]);
  const gone = { deletionTimestamp: null, deletionGracePeriodSeconds: null };
  const patched = await server.request("PATCH", path, { metadata: gone }, merge);
  assert.deepEqual([patched.code, ...marks(patched.body)], [200, ...marks(marked)]);
  // Exchanging a finalizer during deletion is not allowed either.
  const swapped = await server.request("PATCH", path, { metadata: { finalizers: ["example.com/x", "example.com/z"] } }, merge);
  assert.equal(swapped.code, 422);
  assert.deepEqual((await read(path)).metadata.finalizers, ["example.com/x", "example.com/y"]);
});

test("an update cannot begin a deletion", async () => {
  const { path } = await made(configMaps);
  const deletion = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0 };
  await server.request("PATCH", path, { metadata: deletion }, merge);
  assert.equal((await read(path)).metadata.deletionTimestamp, undefined);
});

test("a JSON patch whose second operation fails does nothing", async () => {
  const { object, path } = await made(configMaps, { data: { a: "1" } });
  const first = { op: "replace", path: "/data/a", value: "2" };
  for (const second of [
    { op: "test", path: "/data/a", value: "1" },
    { op: "remove", path: "/data/none" },
  ]) {
    assert.equal((await server.request("PATCH", path, [first, second], json)).code, 422);
  }
  assert.deepEqual(await read(path), object);
});

test("owners: the second one is kept, the same one twice is one, and two controllers are refused", async () => {
  const owner = (name: string, more: object = {}) => ({ apiVersion: "v1", kind: "Pod", name, uid: `uid-${name}`, ...more });
  const two = await made(configMaps, {}, { ownerReferences: [owner("a"), owner("b"), owner("b")] });
  assert.deepEqual(two.object.metadata.ownerReferences, [owner("a"), owner("b")]);
  const patched = await server.request("PATCH", two.path, { metadata: { ownerReferences: [owner("b"), owner("b")] } }, merge);
  assert.deepEqual(patched.body.metadata.ownerReferences, [owner("b")]);
  const controllers = [owner("a", { controller: true }), owner("b", { controller: true })];
  const refused = await server.request("PATCH", two.path, { metadata: { ownerReferences: controllers } }, merge);
  assert.equal(refused.code, 422);
});

test("updating an applied field takes its ownership, and the next apply conflicts, also after managedFields was cleared", async () => {
  const config = (color: string) => ({ kind: "ConfigMap", apiVersion: "v1", metadata: { name: "owned" }, data: { color } });
  const path = `${configMaps}/owned`;
  const applied = (color: string) => server.request("PATCH", `${path}?fieldManager=first`, config(color), apply);
  assert.equal((await applied("red")).code, 201);
  await server.request("PATCH", `${path}?fieldManager=second`, { data: { color: "blue" } }, merge);
  const conflict = await applied("green");
  assert.deepEqual([conflict.code, conflict.body.details.causes[0].field], [409, ".data.color"]);
  await server.request("PATCH", `${path}?fieldManager=third`, { metadata: { managedFields: [{}] } }, merge);
  assert.equal((await read(path)).metadata.managedFields, undefined);
  // Without entries the existing fields belong to `before-first-apply`.
  const afterwards = await applied("green");
  assert.equal(afterwards.code, 409);
  assert.match(afterwards.body.details.causes[0].message, /"before-first-apply"/);
});

test("an apply that no longer names a field leaves it to the manager that updated it since", async () => {
  const path = `${configMaps}/shared`;
  const config = (data: object) => ({ kind: "ConfigMap", apiVersion: "v1", metadata: { name: "shared" }, data });
  const applied = (data: object) => server.request("PATCH", `${path}?fieldManager=first`, config(data), apply);
  await applied({ kept: "1", dropped: "1" });
  await server.request("PATCH", `${path}?fieldManager=second`, { data: { kept: "2" } }, merge);
  assert.equal((await applied({})).code, 200);
  assert.deepEqual((await read(path)).data, { kept: "2" });
});

test("an object that its managed fields make too large for etcd is stored without them, by each verb", async () => {
  // Names of keys count twice: in the data and in the managed fields.
  const data = Object.fromEntries(Array.from({ length: 4000 }, (_, i) => [`${i}-`.padEnd(253, "k"), ""]));
  const { object, path } = await made(configMaps, { data });
  const put = await server.request("PUT", path, { ...object, immutable: false });
  const all = Object.fromEntries(Object.keys(data).map((key) => [key, "1"]));
  const patched = await server.request("PATCH", path, { metadata: { labels: { a: "b" } }, data: all }, merge);
  for (const stored of [object, put.body, patched.body]) {
    assert.equal(stored.metadata.managedFields, undefined);
    assert.equal(Object.keys(stored.data).length, 4000);
  }
  assert.deepEqual([put.code, put.body.immutable, patched.code, patched.body.metadata.labels], [200, false, 200, { a: "b" }]);
  await server.request("DELETE", path);
});

for (const [what, attempt] of [
  ["PUT", (path: string) => server.request("PUT", path, { metadata: { name: "l" } }, jane)],
  [
    "an apply",
    (path: string) =>
      server.request(
        "PATCH",
        `${path}?fieldManager=me`,
        { kind: "Lease", apiVersion: "coordination.k8s.io/v1", metadata: { name: "l" } },
        { ...apply, ...jane },
      ),
  ],
] as const) {
  test(`${what} that makes the object takes the right to create, besides the one to write`, async () => {
    const namespace = `put-${what.replace(" ", "-").toLowerCase()}`;
    await server.request("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const rules = [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "update", "patch"] }];
    await made(`${rbac}/roles`, { rules }, { name: "writer" });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "writer" };
    await made(`${rbac}/rolebindings`, { roleRef, subjects: [{ kind: "User", name: "jane" }] });
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const refused = await attempt(`${leases}/l`);
    assert.deepEqual([refused.code, refused.body.reason], [403, "Forbidden"]);
    assert.equal((await server.request("GET", `${leases}/l`)).code, 404);
    await made(leases, {}, { name: "l" });
    assert.notEqual((await attempt(`${leases}/l`)).code, 403);
  });
}
const jane = { authorization: "Bearer user-token" };

const service = (spec: object) => ({ spec: { ports: [{ name: "a", port: 80 }], ...spec } });
for (const { name, fail } of [
  {
    name: "whose node port is taken",
    fail: (clusterIP: string, taken: number) => service({ clusterIP, type: "NodePort", ports: [{ port: 80, nodePort: taken }] }),
  },
  {
    name: "whose second node port is taken",
    fail: (clusterIP: string, taken: number) =>
      service({
        clusterIP,
        type: "NodePort",
        ports: [
          { name: "a", port: 80, nodePort: 31_001 },
          { name: "b", port: 81, nodePort: taken },
        ],
      }),
  },
  { name: "whose name is taken", fail: (clusterIP: string) => ({ ...service({ clusterIP }), name: "holder" }) },
]) {
  test(`a service ${name} releases the address and the ports that were allocated for it`, async () => {
    const clusterIP = "10.0.0.77";
    const holder = await made(services, service({ type: "NodePort", ports: [{ port: 80, nodePort: 31_000 }] }), {
      name: "holder",
    });
    const { name: metadataName = "failing", ...object } = fail(clusterIP, 31_000) as { name?: string };
    const failed = await server.request("POST", services, { ...object, metadata: { name: metadataName } });
    assert.ok(failed.code === 422 || failed.code === 409, String(failed.code));
    const ports = [{ port: 80, nodePort: 31_001 }];
    const next = await made(services, service({ clusterIP, type: "NodePort", ports }));
    for (const { path } of [holder, next]) await server.request("DELETE", path);
    // A deletion releases its allocations, too.
    const again = await made(services, service({ clusterIP, type: "NodePort", ports }));
    await server.request("DELETE", again.path);
  });
}

test("a service that becomes ClusterIP releases its node ports; a refused or dry-run update allocates none", async () => {
  const held = [{ port: 80, nodePort: 31_010 }];
  const { path } = await made(services, service({ type: "NodePort", ports: held }));
  const other = await made(services, service({}));
  const type = { type: "NodePort", ports: [{ port: 80, nodePort: 31_011 }] };
  assert.equal((await server.request("PATCH", `${other.path}?dryRun=All`, { spec: type }, merge)).code, 200);
  const bad = { spec: { ...type, sessionAffinity: "Nonsense" } };
  assert.equal((await server.request("PATCH", other.path, bad, merge)).code, 422);
  const taker = await made(services, service(type));
  assert.equal((await server.request("PATCH", path, { spec: { type: "ClusterIP", ports: [{ port: 80 }] } }, merge)).code, 200);
  const second = await made(services, service({ type: "NodePort", ports: held }));
  for (const one of [path, other.path, taker.path, second.path]) await server.request("DELETE", one);
});
