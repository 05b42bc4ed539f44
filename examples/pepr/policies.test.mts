import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Cluster, createCluster } from "@coxswain/testing";
import type { AppsV1 } from "@coxswain/testing/kinds";
import { deployments } from "@coxswain/testing/resources";
import { startModule } from "./start-module.mts";

let cluster: Cluster;
let module: Awaited<ReturnType<typeof startModule>> | undefined;
before(async () => {
  cluster = await createCluster({ nodes: 1 });
  module = await startModule(cluster);
  // The API server learns where the webhooks are a moment later.
  const isCalled = async () =>
    ownerOf(await cluster.client.create(deployments, aDeployment("probe", "nginx:1"), { dryRun: true }));
  await cluster.waitFor(() => isCalled().catch(() => undefined), { what: "the webhooks to be called" });
});
after(async () => {
  await module?.stop();
  await cluster?.stop();
});

const aDeployment = (name: string, image: string, labels: Record<string, string> = {}) =>
  ({
    metadata: { name, namespace: "default", labels },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "main", image }] } },
    },
  }) as never;
const ownerOf = ({ metadata }: AppsV1.Deployment): string | undefined => metadata.labels?.["owner"];
const target = (name: string) => ({ namespace: "default", name });
const refusal = (image: string) =>
  new RegExp(`admission webhook "pepr-example.pepr.dev" denied the request: ${image}: the image needs a version`);

test("a Deployment gets an owner, and runs", async () => {
  const jane = cluster.clientFor({ user: "jane", groups: ["system:masters"] });
  await jane.create(deployments, aDeployment("web", "nginx:1.25"));
  const web = await cluster.eventually<AppsV1.Deployment>(
    deployments,
    target("web"),
    ({ status }) => status?.readyReplicas === 2,
  );
  assert.equal(ownerOf(web), "jane");
});

test("an owner that is given stays", async () => {
  assert.equal(ownerOf(await cluster.client.create(deployments, aDeployment("given", "nginx:1.25", { owner: "ali" }))), "ali");
});

test("an image without a version is refused, also when it comes with a change", async () => {
  await assert.rejects(cluster.client.create(deployments, aDeployment("bad", "nginx")), refusal("nginx"));
  await cluster.client.create(deployments, aDeployment("good", "nginx:1.25"));
  const body = { spec: { template: { spec: { containers: [{ name: "main", image: "nginx:latest" }] } } } };
  await assert.rejects(cluster.client.patch(deployments, target("good"), { type: "strategic", body }), refusal("nginx:latest"));
});
