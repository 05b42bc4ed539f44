import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, deployments, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type Cluster, createCluster } from "./create-cluster.ts";
import { aDeployment, isReady } from "./testing/objects.ts";

const web = { namespace: "default", name: "web" };
let prepared: Promise<Cluster> | undefined;
const original = (): Promise<Cluster> => {
  prepared ??= createCluster({ clock: "virtual" });
  return prepared;
};
after(async () => (await prepared)?.stop());

test("a failed eventually reports the writes with their writers, the events and the causes", async () => {
  await using cluster = await (await original()).fork();
  const operator = cluster.clientFor({ userAgent: "my-operator/1.0" });
  const tooLarge = { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "100" } } }] };
  await operator.create(pods, { metadata: web, spec: tooLarge } as never);
  await operator.patch(pods, web, { type: "merge", body: { metadata: { labels: { touched: "yes" } } } });
  const failure = await cluster
    .eventually<Pod>(pods, web, ({ status }) => status?.phase === "Running", { within: "30s", what: "to run" })
    .then(
      () => assert.fail("it cannot run"),
      (err: Error) => err.message,
    );
  for (const part of [
    /^waited 30 s for Pod default\/web to run; its status is \{"phase":"Pending"/,
    /created by my-operator\/1\.0 \(POST\)/,
    /changed by my-operator\/1\.0 \(PATCH\)\n\s+metadata\.labels\.touched: absent → "yes"|metadata\.labels: absent → \{"touched":"yes"\}/,
    /changed by kube-scheduler \(PATCH\)\n\s+status\.conditions/,
    /Events:\n\s+\+\d+\.\d+s Warning FailedScheduling from default-scheduler.*Insufficient cpu/,
    /Why \(as `kubectl why` says\):\n\s+Cause: pod\/web: not enough cpu on 1 node/,
  ]) {
    assert.match(failure, part);
  }
});

test("story covers an object that never existed and a deleted one", async () => {
  await using cluster = await (await original()).fork();
  await assert.rejects(
    cluster.eventually(pods, web, () => true, { within: "1s" }),
    /it does not exist\n\nWhat happened:\n {2}no write of it was seen/,
  );
  await cluster.client.create(configMaps, { metadata: web, data: {} } as never);
  await cluster.client.delete(configMaps, web);
  assert.match(await cluster.story(configMaps, web), /created by test \(POST\)\n.* deleted by test \(DELETE\)/);
});

test("waitFor shows the last value and passes errors on", async () => {
  const cluster = await original();
  await assert.rejects(
    cluster.waitFor(() => 0, { within: "2s", what: "a number" }),
    /waited 2 s for a number; last: 0/,
  );
  await assert.rejects(
    cluster.waitFor(() => {
      throw new Error("mine");
    }),
    /^Error: mine$/,
  );
});

test("an injected failure affects only the named client, which retries", async () => {
  await using cluster = await (await original()).fork();
  const fault = cluster.faults.inject({
    method: "POST",
    path: "/replicasets",
    by: "deployment-controller",
    status: 500,
    times: 3,
  });
  await cluster.client.create(deployments, aDeployment("web", 2));
  await cluster.eventually<Deployment>(deployments, web, isReady(2));
  assert.equal(fault.hits, 3);
});

test("a conflict, a lost answer and a lost request look as they do on the wire", async () => {
  await using cluster = await (await original()).fork();
  const { client, faults } = cluster;
  await client.create(configMaps, { metadata: web, data: {} } as never);
  const write = (value: string) => client.patch(configMaps, web, { type: "merge", body: { data: { value } } });
  const stored = async () => (await client.get<{ data?: { value?: string } }>(configMaps, web)).data?.value;
  faults.inject({ method: "PATCH", path: "/configmaps/web", status: 409 });
  await assert.rejects(write("1"), (err) => (err as { code?: number }).code === 409);
  faults.inject({ method: "PATCH", path: "/configmaps/web", breaks: "before" });
  await assert.rejects(write("2"), /the connection was lost/);
  assert.equal(await stored(), undefined);
  faults.inject({ method: "PATCH", path: "/configmaps/web", breaks: "after" });
  await assert.rejects(write("3"), /the connection was lost/);
  assert.equal(await stored(), "3");
  await write("4");
  assert.equal(await stored(), "4");
  assert.throws(() => faults.inject({ path: "x" }), /a fault needs a status/);
});

test("interrupted watches of clients and of the server's caches lose no event", async () => {
  await using cluster = await (await original()).fork();
  await cluster.client.create(deployments, aDeployment("web", 1));
  await cluster.eventually<Deployment>(deployments, web, isReady(1));
  assert.ok(cluster.faults.breakWatches("/pods") > 0);
  cluster.faults.breakStoreWatch();
  await cluster.client.patch(deployments, web, { type: "merge", body: { spec: { replicas: 3 } } });
  await cluster.eventually<Deployment>(deployments, web, isReady(3));
});

test("a lagging watch shows an earlier state, and consistent reads wait for the last write", async () => {
  await using cluster = await (await original()).fork();
  const { client } = cluster;
  cluster.faults.lagWatches("2s");
  const before = cluster.now();
  await client.create(configMaps, { metadata: web, data: {} } as never);
  const stale = await client.list(configMaps, { namespace: "default" }, { resourceVersion: "0" });
  assert.ok(!stale.items.some(({ metadata }) => metadata.name === "web"));
  await cluster.waitFor(async () => {
    const { items } = await client.list(configMaps, { namespace: "default" }, { resourceVersion: "0" });
    return items.some(({ metadata }) => metadata.name === "web");
  });
  assert.ok(cluster.now() - before >= 2_000);
});

test("a request that waits advances virtual time only as far as needed", async () => {
  await using cluster = await (await original()).fork({ controllers: false, scheduler: false, nodes: 0 });
  cluster.faults.inject({ path: "/configmaps", delay: "10m" });
  const before = cluster.now();
  await Promise.all([cluster.client.list(configMaps), cluster.client.list(pods)]);
  assert.ok(cluster.now() - before >= 600_000 && cluster.now() - before < 660_000);
});

test("a program whose clock is wrong writes its own time", async () => {
  await using cluster = await (await original()).fork();
  cluster.faults.skew("kube-apiserver", 90_000);
  const made = await cluster.client.create(configMaps, { metadata: web, data: {} } as never);
  const { creationTimestamp } = (made as { metadata: { creationTimestamp: string } }).metadata;
  assert.equal(Date.parse(creationTimestamp) - Math.floor(cluster.now() / 1000) * 1000, 90_000);
});
