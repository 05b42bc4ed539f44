import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { after, test } from "node:test";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { TokenReview } from "@coxswain/apimachinery/objects/schema/kinds/authentication/v1";
import type { Node, Pod, Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  configMaps,
  deployments,
  leases,
  nodes,
  pods,
  secrets,
  tokenReviews,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { type Cluster, createCluster } from "./create-cluster.ts";
import { FakeNodes } from "./nodes/fake-nodes.ts";
import { aDeployment, isReady } from "./testing/objects.ts";

const inDefault = (name: string) => ({ namespace: "default", name });
let prepared: Promise<Cluster> | undefined;
/** A cluster whose copies the tests use. */
const original = (): Promise<Cluster> => {
  prepared ??= createCluster({ nodes: 3 });
  return prepared;
};
after(async () => (await prepared)?.stop());

test("a Deployment becomes ready on the fake nodes, and is deleted with all that it owns", async () => {
  await using cluster = await (await original()).fork();
  await cluster.client.create(deployments, aDeployment("web", 10));
  await cluster.eventually<Deployment>(deployments, inDefault("web"), isReady(10));
  const { items } = await cluster.client.list<Pod>(pods, { namespace: "default" });
  assert.equal(new Set(items.map(({ spec }) => spec.nodeName)).size, 3, "pods are spread over the nodes");
  assert.equal(new Set(items.map(({ status }) => status?.podIP)).size, 10, "each has a separate address");
  await cluster.client.delete(deployments, inDefault("web"), { propagationPolicy: "Foreground" });
  await cluster.eventuallyGone(deployments, inDefault("web"));
  assert.deepEqual((await cluster.client.list(pods, { namespace: "default" })).items, []);
});

test("a fork has what its original had, and neither sees what happens in the other later", async () => {
  const first = await (await original()).fork();
  await using _ = first;
  await first.client.create(configMaps, { metadata: inDefault("before"), data: {} } as never);
  await using second = await first.fork();
  await first.client.create(configMaps, { metadata: inDefault("in-first"), data: {} } as never);
  await second.client.create(configMaps, { metadata: inDefault("in-second"), data: {} } as never);
  await second.client.delete(configMaps, inDefault("before"));
  await first.client.get(configMaps, inDefault("before"));
  for (const [cluster, foreign] of [
    [first, "in-second"],
    [second, "in-first"],
  ] as const) {
    await assert.rejects(cluster.client.get(configMaps, inDefault(foreign)), isNotFound);
  }
});

test("tokens of service accounts are valid in a cluster and its copies, and in no other", async () => {
  const parts = { nodes: 0, scheduler: false, controllers: ["serviceaccount", "serviceaccount-token"] };
  await using first = await createCluster(parts);
  const token = await first.waitFor(
    async () => {
      const { items } = await first.client.list<Secret>(secrets, { namespace: "default" });
      return items.find(({ type }) => type === "kubernetes.io/service-account-token")?.data?.["token"];
    },
    { within: "5m" },
  );
  await using copy = await first.fork();
  await using copyOfCopy = await copy.fork();
  await using other = await createCluster(parts);
  const isValidIn = async (cluster: Cluster): Promise<boolean> => {
    const review = { metadata: {}, spec: { token: Buffer.from(token, "base64").toString() } };
    const { status } = await cluster.client.create<TokenReview>(tokenReviews, review);
    return status?.authenticated ?? false;
  };
  assert.deepEqual(await Promise.all([first, copy, copyOfCopy, other].map(isValidIn)), [true, true, true, false]);
});

test("parts are optional: without a scheduler pods wait, without controllers none are created", async () => {
  await using unscheduled = await (await original()).fork({ scheduler: false });
  await unscheduled.client.create(deployments, aDeployment("web", 1));
  const pod = await unscheduled.waitFor(async () => (await unscheduled.client.list<Pod>(pods)).items[0]);
  assert.equal(pod.spec.nodeName, undefined);
  await using bare = await createCluster({
    nodes: 0,
    controllers: false,
    scheduler: false,
    apiServerFlags: ["--runtime-config=apps/v1=true"],
  });
  await bare.client.create(deployments, aDeployment("web", 1));
  await bare.settle({ quiet: 50 });
  assert.deepEqual((await bare.client.list(pods)).items, []);
  assert.throws(() => bare.nodes, /no fake nodes/);
  // As with envtest: Pods need no service account, because no controller would create one.
  await bare.client.create(pods, { metadata: inDefault("alone"), spec: { containers: [{ name: "c", image: "i" }] } } as never);
});

test("only the controllers that are named run", async () => {
  await using cluster = await (await original()).fork({ controllers: ["replicaset", "serviceaccount"] });
  await cluster.client.create(deployments, aDeployment("web", 1));
  await cluster.settle();
  assert.equal((await cluster.client.get<Deployment>(deployments, inDefault("web"))).status?.observedGeneration, undefined);
});

test("after stop requests fail, stop may be called again, and other clusters continue", async () => {
  const one = await (await original()).fork();
  await using other = await (await original()).fork();
  await one.stop();
  await one.stop();
  await assert.rejects(one.client.get(nodes, { name: "node-1" }), /ECONNREFUSED/);
  await other.client.get(nodes, { name: "node-1" });
});

test("a cluster's metrics have its version and no process metrics, which would outlive the cluster", async () => {
  const { body } = await (await original()).client.raw("GET", "/metrics");
  const page = body.toString("utf8");
  assert.match(page, /^apiserver_request_total\{/m);
  assert.match(page, /^kubernetes_build_info\{.*git_version="v1\.23\.0"/m);
  assert.doesNotMatch(page, /^(process|nodejs)_/m);
});

test("invalid options are refused before anything starts", async () => {
  for (const [options, want] of [
    [{ nodes: -1 }, /-1 must be a whole number from 0 to 5000/],
    [{ clock: { startsAt: "yesterday" } }, /"yesterday" is no time/],
    [{ pods: [{ readyAfter: "soon" }] }, /rule 1 of pods: "soon" is not a duration/],
    [{ controllers: ["nope"] }, /nope/],
    [{ apiServerFlags: ["--nope"] }, /nope/],
  ] as const) {
    await assert.rejects(createCluster(options), want);
  }
});

test("clients of other users have only their own permissions", async () => {
  await using cluster = await (await original()).fork();
  const jane = cluster.clientFor({ user: "jane", groups: ["developers"] });
  await assert.rejects(jane.list(pods, { namespace: "default" }), /User "jane" cannot list resource "pods"/);
});

test("a node without heartbeats becomes Unknown, and Ready when they resume", async () => {
  await using cluster = await createCluster({ nodes: 2, clock: "virtual", scheduler: false });
  const ready = async (name: string) => {
    const node = await cluster.client.get<{ status: { conditions: { type: string; status: string }[] } }>(nodes, { name });
    return node.status.conditions.find(({ type }) => type === "Ready")?.status;
  };
  cluster.nodes.setSilent("node-1", true);
  await cluster.advance("2m");
  assert.deepEqual([await ready("node-1"), await ready("node-2")], ["Unknown", "True"]);
  const before = await cluster.client.get<{ spec: { renewTime: string } }>(leases, {
    namespace: "kube-node-lease",
    name: "node-2",
  });
  assert.ok(cluster.now() - Date.parse(before.spec.renewTime) <= 10_000, "the others renew their leases");
});

test("pods of a copy get addresses that no earlier pod has", async () => {
  await using cluster = await createCluster({ nodes: 2 });
  await cluster.client.create(deployments, aDeployment("web", 3));
  await cluster.eventually<Deployment>(deployments, { namespace: "default", name: "web" }, isReady(3));
  await using copy = await cluster.fork();
  await copy.client.patch(deployments, { namespace: "default", name: "web" }, { type: "merge", body: { spec: { replicas: 6 } } });
  await copy.eventually<Deployment>(deployments, { namespace: "default", name: "web" }, isReady(6));
  const { items } = await copy.client.list<Pod>(pods, { namespace: "default" });
  assert.equal(new Set(items.map(({ status }) => status?.podIP)).size, 6);
});

test("fake nodes keep of a pod what their transform leaves", async (t) => {
  await using cluster = await createCluster({ nodes: 0, controllers: false, scheduler: false });
  const ending = new AbortController();
  t.after(() => ending.abort());
  const seen: string[] = [];
  const all = new FakeNodes({
    ...{ client: cluster.client, clock: realClock, log: discardLogger, signal: ending.signal, nodes: [{ name: "other" }] },
    rules: [{ match: { annotations: { job: "yes" } }, waits: { reason: "ImagePullBackOff" } }],
    transform(object) {
      seen.push(object.metadata.name ?? "");
      delete object.metadata.annotations;
      return object;
    },
  });
  await all.start();
  const metadata = { ...inDefault("web"), annotations: { job: "yes" } };
  await cluster.client.create<Pod>(pods, { metadata, spec: { nodeName: "other", containers: [{ name: "c", image: "i" }] } });
  await cluster.eventually<Pod>(pods, inDefault("web"), ({ status }) => status?.phase === "Running");
  assert.ok(seen.includes("other") && seen.includes("web"));
  all.stop();
});

test("a resource added to a fake node's capacity can be allocated until it is removed", async () => {
  await using cluster = await createCluster({ nodes: 2, controllers: false, scheduler: false });
  const target = { name: "node-2" };
  const setCapacity = (amount: string | null) =>
    cluster.client.patch(
      nodes,
      { ...target, subresource: "status" },
      { type: "merge", body: { status: { capacity: { "example.com/card": amount } } } },
    );
  const hasCards = (amount: string | undefined) => (node: Node) => node.status?.allocatable?.["example.com/card"] === amount;
  for (const amount of ["5", "7", null]) {
    await setCapacity(amount);
    const node = await cluster.eventually<Node>(nodes, target, hasCards(amount ?? undefined));
    assert.equal(node.status?.allocatable?.["cpu"], "8");
  }
});

test("manifests are applied in the order that they need, each to its own namespace or the default one", async () => {
  await using cluster = await createCluster({ nodes: 0, controllers: false, scheduler: false });
  const names = { plural: "things", singular: "thing", kind: "Thing" };
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const manifests = [
    { apiVersion: "x.example/v1", kind: "Thing", metadata: { name: "a" }, spec: { a: 1 } },
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "own", namespace: "other" }, data: { a: "b" } },
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "other", labels: { a: "b" } } },
    {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "things.x.example" },
      spec: { group: "x.example", scope: "Namespaced", names, versions: [{ name: "v1", served: true, storage: true, schema }] },
    },
  ];
  const applied = await cluster.apply(manifests, { fieldManager: "me" });
  assert.deepEqual(
    applied.map(({ kind, metadata: { namespace = "", name, managedFields } }) => [
      kind,
      namespace,
      name,
      managedFields?.[0]?.manager,
    ]),
    [
      ["Namespace", "", "other", "me"],
      ["CustomResourceDefinition", "", "things.x.example", "me"],
      ["ConfigMap", "other", "own", "me"],
      ["Thing", "default", "a", "me"],
    ],
  );
  const [moved] = await cluster.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n", {
    namespace: "other",
  });
  assert.deepEqual([moved?.metadata.namespace, moved?.metadata.managedFields?.[0]?.manager], ["other", "test"]);
  for (const [apiVersion, kind, message] of [
    ["v1", "Nope", 'no matches for kind "Nope" in version "v1"'],
    ["gone.example/v1", "Thing", 'no matches for kind "Thing" in version "gone.example/v1"'],
    ["a/b/c", "Thing", '"a/b/c" is no apiVersion'],
  ] as const) {
    await assert.rejects(cluster.apply({ apiVersion, kind, metadata: { name: "x" } }), { message });
  }
});

test("a cluster listens once, with its own CA; its kubeconfig has the address, the CA and the administrator's token", async () => {
  await using cluster = await createCluster({ nodes: 0, controllers: false, scheduler: false });
  const [{ url, ca }, again] = await Promise.all([cluster.listen(), cluster.listen({ port: 1 })]);
  assert.deepEqual(again, { url, ca });
  assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/);
  const { clusters, users, contexts, ...config } = JSON.parse(await cluster.kubeconfig());
  const token: string = users[0].user.token;
  const name = "coxswain-testing";
  assert.deepEqual(
    { clusters, users, contexts, ...config },
    {
      ...{ apiVersion: "v1", kind: "Config", "current-context": name },
      clusters: [{ name, cluster: { server: url, "certificate-authority-data": Buffer.from(ca).toString("base64") } }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    },
  );
  const codeFor = async (authorization: string, path: string): Promise<number | undefined> => {
    const sent = request(`${url}${path}`, { ca, headers: { authorization } }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };
  const path = "/api/v1/namespaces/kube-system/secrets";
  assert.deepEqual([await codeFor(`Bearer ${token}`, path), await codeFor("Bearer wrong", path)], [200, 401]);
});
