import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeProtobuf, encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";
import { type Any, ask, merge, must, openWatch, protobufRequest } from "./wire.ts";

const named = (name: string, more: object = {}): Any => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...more } });
const configMapKind = { group: "", version: "v1", kind: "ConfigMap" };
/** A Pod that no scheduler handles. */
const aPod = (name: string, labels: Record<string, string> = {}): Any => ({
  ...{ apiVersion: "v1", kind: "Pod", metadata: { name, labels } },
  spec: { schedulerName: "nobody", containers: [{ name: "c", image: "example.invalid/c:1" }] },
});

test("generated names are the prefix and five letters, and never the same", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "names")}/configmaps`;
  const make = () => must("POST", path, { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "made-" } });
  const made = await Promise.all(Array.from({ length: 10 }, make));
  for (const { metadata } of made) {
    assert.match(metadata.name, /^made-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    assert.equal(metadata.generateName, "made-");
    assert.match(metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(metadata.selfLink, undefined);
  }
  assert.equal(new Set(made.map(({ metadata }) => metadata.name)).size, 10);
  assert.equal(new Set(made.map(({ metadata }) => metadata.uid)).size, 10);
});

test("an object with finalizers stays until the last is gone, and its deletion keeps its time", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "finalizers")}/configmaps`;
  await must("POST", path, named("held", { finalizers: ["example.com/a", "example.com/b"] }));
  const first = await must("DELETE", `${path}/held`);
  assert.equal(first.kind, "ConfigMap");
  assert.equal(first.metadata.deletionGracePeriodSeconds, 0);
  const second = await must("DELETE", `${path}/held`);
  assert.equal(second.metadata.deletionTimestamp, first.metadata.deletionTimestamp);
  const more = await ask("PATCH", `${path}/held`, { metadata: { finalizers: ["example.com/a", "example.com/c"] } }, merge);
  assert.equal(more.code, 422, "no finalizer may be added now");
  assert.match(more.body.message, /no new finalizers can be added if the object is being deleted/);
  await must("PATCH", `${path}/held`, { metadata: { finalizers: ["example.com/b"] } }, merge);
  await must("PATCH", `${path}/held`, { metadata: { finalizers: null } }, merge);
  assert.equal((await ask("GET", `${path}/held`)).code, 404);
});

test("foreground deletion waits for what blocks it, orphans lose their owner", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "propagation")}/configmaps`;
  const family = async (name: string): Promise<void> => {
    const owner = await must("POST", path, named(`${name}-owner`));
    const reference = { apiVersion: "v1", kind: "ConfigMap", name: `${name}-owner`, uid: owner.metadata.uid };
    await must("POST", path, named(`${name}-child`, { ownerReferences: [{ ...reference, blockOwnerDeletion: true }] }));
  };
  await family("foreground");
  await must("PATCH", `${path}/foreground-child`, { metadata: { finalizers: ["example.com/hold"] } }, merge);
  const going = await must("DELETE", `${path}/foreground-owner`, { propagationPolicy: "Foreground" });
  assert.deepEqual(going.metadata.finalizers, ["foregroundDeletion"]);
  await waitFor("the child's deletion", async () => (await must("GET", `${path}/foreground-child`)).metadata.deletionTimestamp);
  assert.equal((await ask("GET", `${path}/foreground-owner`)).code, 200, "the owner waits");
  await must("PATCH", `${path}/foreground-child`, { metadata: { finalizers: null } }, merge);
  await waitFor("the owner's end", async () => (await ask("GET", `${path}/foreground-owner`)).code === 404);

  await family("orphan");
  await must("DELETE", `${path}/orphan-owner?propagationPolicy=Orphan`);
  await waitFor("the owner's end", async () => (await ask("GET", `${path}/orphan-owner`)).code === 404);
  assert.equal((await must("GET", `${path}/orphan-child`)).metadata.ownerReferences, undefined);
});

test("a dry run answers as if, and writes nothing", async (t) => {
  const namespace = await newNamespace(t, "dry");
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const created = await ask("POST", `${path}?dryRun=All`, named("a"));
  assert.equal(created.code, 201);
  assert.ok(created.body.metadata.uid);
  assert.equal(created.body.metadata.resourceVersion, undefined);
  assert.equal((await ask("GET", `${path}/a`)).code, 404);
  const real = await must("POST", path, named("a"));
  assert.equal((await ask("POST", `${path}?dryRun=All`, named("a"))).code, 409);
  assert.equal((await must("PATCH", `${path}/a?dryRun=All`, { data: { x: "1" } }, merge)).data.x, "1");
  assert.equal((await must("PUT", `${path}/a?dryRun=All`, { ...named("a"), data: { y: "1" } })).data.y, "1");
  assert.equal((await must("DELETE", `${path}/a?dryRun=All`)).status, "Success");
  assert.equal((await must("DELETE", `${path}?dryRun=All`)).kind, "ConfigMapList");
  assert.deepEqual((await must("GET", `${path}/a`)).metadata.resourceVersion, real.metadata.resourceVersion);
  assert.equal((await ask("POST", `${path}?dryRun=All`, named("Not_A_Name"))).code, 422);
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "s" }, spec: { ports: [{ port: 80 }] } };
  assert.ok((await must("POST", `/api/v1/namespaces/${namespace}/services?dryRun=All`, service)).spec.clusterIP);
});

test("a collection is deleted by selector, and the answer lists what went", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "collection")}/configmaps`;
  for (const [name, go] of [
    ["a", "yes"],
    ["b", "yes"],
    ["c", "no"],
  ] as const)
    await must("POST", path, named(name, { labels: { go } }));
  const gone = await must("DELETE", `${path}?labelSelector=go%3Dyes`);
  assert.equal(gone.kind, "ConfigMapList");
  const left = await must("GET", `${path}?labelSelector=go`);
  assert.deepEqual(
    left.items.map((item: Any) => item.metadata.name),
    ["c"],
  );
});

test("preconditions of an update and of a deletion are kept", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "conditions")}/configmaps`;
  const { metadata } = await must("POST", path, named("a"));
  await must("PATCH", `${path}/a`, { data: { x: "1" } }, merge);
  const stale = await ask("PUT", `${path}/a`, named("a", { resourceVersion: metadata.resourceVersion }));
  assert.equal(stale.code, 409);
  assert.equal(stale.body.reason, "Conflict");
  assert.match(stale.body.message, /^Operation cannot be fulfilled on configmaps "a": the object has been modified/);
  assert.equal((await ask("DELETE", `${path}/a`, { preconditions: { uid: "another" } })).code, 409);
  assert.equal((await ask("DELETE", `${path}/a`, { preconditions: { resourceVersion: "1" } })).code, 409);
  assert.equal((await ask("DELETE", `${path}/a`, { preconditions: { uid: metadata.uid } })).code, 200);
});

test("protobuf in and out: create, get, list, watch, and an error", async (t) => {
  const path = `/api/v1/namespaces/${await newNamespace(t, "protobuf")}/configmaps`;
  const watching = await openWatch(`${path}?watch=true&labelSelector=p%3Dq`, "application/vnd.kubernetes.protobuf;stream=watch");
  t.after(watching.stop);
  assert.equal(watching.type, "application/vnd.kubernetes.protobuf;stream=watch");
  const object = { ...named("a", { labels: { p: "q" } }), data: { x: "ü" } };
  const created = await protobufRequest("POST", path, encodeProtobuf(object, configMapKind));
  assert.equal(created.code, 201);
  assert.equal(created.type, "application/vnd.kubernetes.protobuf");
  assert.deepEqual([...created.bytes.subarray(0, 4)], [0x6b, 0x38, 0x73, 0]);
  const got: Any = decodeProtobuf((await protobufRequest("GET", `${path}/a`)).bytes);
  assert.equal(got.data.x, "ü");
  assert.deepEqual(got, await must("GET", `${path}/a`));
  const list: Any = decodeProtobuf((await protobufRequest("GET", `${path}?labelSelector=p%3Dq`)).bytes);
  assert.equal(list.kind, "ConfigMapList");
  assert.equal(list.items[0].metadata.uid, got.metadata.uid);
  const [event] = await watching.count(1);
  assert.equal(event.type, "ADDED");
  assert.equal(event.object.metadata.uid, got.metadata.uid);
  const missing = await protobufRequest("GET", `${path}/none`);
  assert.equal(missing.code, 404);
  const status: Any = decodeProtobuf(missing.bytes);
  assert.equal(`${status.kind} ${status.reason} ${status.code}`, "Status NotFound 404");
  // Protobuf in, JSON out.
  assert.equal((await ask("GET", `${path}/a`, undefined, { accept: "text/csv, application/json" })).body.kind, "ConfigMap");
});

test("an eviction uses up the disruption budget and gets 429 when the budget is 0", async (t) => {
  const namespace = await newNamespace(t, "eviction");
  const root = `/api/v1/namespaces/${namespace}/pods`;
  const budgets = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  await must("POST", budgets, {
    ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "b" } },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "e" } } },
  });
  const evict = (name: string, query = "") =>
    ask("POST", `${root}/${name}/eviction${query}`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } });
  for (const name of ["pending", "running"]) await must("POST", root, aPod(name, { app: "e" }));
  await must("PATCH", `${root}/running/status`, { status: { phase: "Running" } }, merge);
  assert.equal((await evict("pending")).code, 201, "a Pod that does not run yet has nothing to lose");
  // The status that the disruption controller writes for one running Pod that is not ready.
  const counted = { currentHealthy: 0, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 1, observedGeneration: 1 };
  await must("PATCH", `${budgets}/b/status`, { status: counted }, merge);
  const refused = await evict("running");
  assert.equal(refused.code, 429, JSON.stringify(refused.body));
  assert.equal(refused.body.reason, "TooManyRequests");
  assert.equal(refused.body.message, "Cannot evict pod as it would violate the pod's disruption budget.");
  assert.equal(refused.body.details.causes[0].reason, "DisruptionBudget");
  assert.equal((await evict("none")).code, 404);
  await must("DELETE", `${budgets}/b`);
  assert.equal((await evict("running", "?dryRun=All")).code, 201);
  assert.equal((await ask("GET", `${root}/running`)).code, 200);
  assert.equal((await evict("running")).code, 201);
});

test("a service account's token names its audience, its Pod and its end", async (t) => {
  const namespace = await newNamespace(t, "token");
  const root = `/api/v1/namespaces/${namespace}`;
  await must("POST", `${root}/serviceaccounts`, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot" } });
  const { code, body } = await ask("POST", `${root}/serviceaccounts/robot/token`, {
    ...{ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest" },
    spec: { audiences: ["somebody"], expirationSeconds: 600 },
  });
  assert.equal(code, 201);
  const claims = JSON.parse(Buffer.from(body.status.token.split(".")[1], "base64url").toString());
  assert.deepEqual(claims.aud, ["somebody"]);
  assert.equal(claims.sub, `system:serviceaccount:${namespace}:robot`);
  assert.equal(claims.exp - claims.iat, 600);
  const review = await must("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
    ...{ apiVersion: "authentication.k8s.io/v1", kind: "TokenReview" },
    spec: { token: body.status.token, audiences: ["somebody"] },
  });
  assert.equal(review.status.authenticated, true);
  assert.equal(review.status.user.username, claims.sub);
  const short = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 5 } };
  assert.equal((await ask("POST", `${root}/serviceaccounts/robot/token`, short)).code, 422);
});

test("scale shows and sets the replicas of a workload, and nothing else", async (t) => {
  const path = `/apis/apps/v1/namespaces/${await newNamespace(t, "scale")}/deployments`;
  const template = { metadata: { labels: { app: "s" } }, spec: aPod("x").spec };
  await must("POST", path, {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "d" } },
    spec: { replicas: 0, selector: { matchLabels: { app: "s" } }, template },
  });
  const scale = await must("GET", `${path}/d/scale`);
  assert.equal(`${scale.apiVersion} ${scale.kind} ${scale.status.selector}`, "autoscaling/v1 Scale app=s");
  assert.deepEqual(scale.spec, {});
  assert.equal(
    (await must("PUT", `${path}/d/scale`, { ...scale, metadata: { name: "d" }, spec: { replicas: 2 } })).spec.replicas,
    2,
  );
  assert.equal((await must("PATCH", `${path}/d/scale`, { spec: { replicas: 1 } }, merge)).spec.replicas, 1);
  assert.equal((await must("GET", `${path}/d`)).spec.replicas, 1);
  assert.equal((await ask("PATCH", `${path}/d/scale`, { spec: { replicas: -1 } }, merge)).code, 422);
});

test("deprecated versions and doubtful input come with a warning", async (t) => {
  const deprecated = await ask("GET", "/apis/policy/v1beta1/poddisruptionbudgets");
  assert.equal(
    deprecated.headers["warning"],
    '299 - "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+, unavailable in v1.25+; use policy/v1 PodDisruptionBudget"',
  );
  const path = `/api/v1/namespaces/${await newNamespace(t, "warning")}/pods`;
  const pod = aPod("p");
  pod.spec.nodeSelector = { "beta.kubernetes.io/os": "linux" };
  const warned = await ask("POST", `${path}?dryRun=All`, pod);
  assert.equal(warned.code, 201);
  const warning = String(warned.headers["warning"]).replaceAll('\\"', '"');
  assert.equal(
    warning,
    '299 - "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"',
  );
});
