import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { deployments, horizontalPodAutoscalers } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { createCluster } from "../../create-cluster.ts";
import { aDeployment } from "../../testing/objects.ts";

const web = { namespace: "default", name: "web" };
const controllers = ["serviceaccount", "deployment", "replicaset", "horizontalpodautoscaling"];

const autoscaler = {
  metadata: web,
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    ...{ minReplicas: 1, maxReplicas: 6 },
    metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } }],
  },
};

test("an autoscaler scales by the usage rules, up at once and down after its stabilization window", async () => {
  let cpu = "100m";
  await using cluster = await createCluster({
    ...{ clock: "virtual", nodes: 2, controllers },
    pods: [{ match: { labels: { app: "web" } }, usage: () => ({ cpu }) }],
  });
  const containers = [{ name: "c", image: "nginx", resources: { requests: { cpu: "200m" } } }];
  await cluster.client.create(deployments, aDeployment("web", 1, { containers }));
  await cluster.client.create(horizontalPodAutoscalers, autoscaler as never);
  const replicas = async () => (await cluster.client.get<Deployment>(deployments, web)).spec.replicas;
  await cluster.advance("2m");
  assert.equal(await replicas(), 1, "half of its request is what it may use");
  cpu = "200m";
  await cluster.advance("2m");
  assert.equal(await replicas(), 6);
  cpu = "5m";
  await cluster.advance("4m");
  assert.equal(await replicas(), 6, "the window of five minutes is not over");
  await cluster.advance("3m");
  assert.equal(await replicas(), 1);
});

test("usage rules added later take effect, and a copy of the cluster has its own", async () => {
  await using cluster = await createCluster({ nodes: 2, controllers: ["serviceaccount", "deployment", "replicaset"] });
  await cluster.client.create(deployments, aDeployment("web", 2));
  await cluster.eventually<Deployment>(deployments, web, ({ status }) => status?.readyReplicas === 2);
  type Metrics = { items: { containers: { usage: unknown }[]; usage: unknown }[] };
  const read = async (from: typeof cluster, path: string): Promise<Metrics | undefined> => {
    const { status, body } = await from.client.raw("GET", `/apis/metrics.k8s.io/v1beta1/${path}`);
    return status === 200 ? JSON.parse(body.toString()) : undefined;
  };
  const isServed = (from: typeof cluster) => from.waitFor(() => read(from, "pods"), { what: "metrics" });
  assert.equal(await read(cluster, "pods"), undefined);
  assert.throws(() => cluster.nodes.setRules([{ usage: { cpu: "much" } }]), /rule 1 of pods: usage: "much" is no amount of cpu/);
  assert.throws(() => cluster.nodes.setRules([{ usage: { memory: "-1" } }]), /"-1" is no amount of memory, such as "64Mi"/);
  cluster.nodes.setRules([{ match: { name: "web-*" }, usage: { cpu: "100m", memory: "64Mi" } }]);
  const { items } = await isServed(cluster);
  const used = { cpu: "100m", memory: "64Mi" };
  assert.deepEqual(
    items.map(({ containers }) => containers.map(({ usage }) => usage)),
    [[used], [used]],
  );
  assert.deepEqual(
    (await read(cluster, "nodes"))?.items.map(({ usage }) => usage),
    [used, used],
  );
  await using copy = await cluster.fork({ pods: [{ usage: { cpu: "1" } }] });
  const isOwn = async () =>
    (await read(copy, "pods"))?.items.every(({ containers }) => JSON.stringify(containers).includes('"cpu":"1"'));
  await copy.waitFor(isOwn, { what: "the copy's metrics" });
  assert.equal((await read(cluster, "pods"))?.items.length, 2);
});
