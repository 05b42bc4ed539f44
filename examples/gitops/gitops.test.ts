import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Cluster, createCluster, type Unstructured } from "@coxswain/testing";
import type { AppsV1, CoreV1 } from "@coxswain/testing/kinds";
import { configMaps, deployments, jobs } from "@coxswain/testing/resources";
import { type Revision, sync } from "./agent.ts";

const web = { namespace: "default", name: "web" };
const template = (image: string, restartPolicy?: string) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "main", image }], ...(restartPolicy && { restartPolicy }) },
});
const deployment = (replicas: number, image = "web:1"): Unstructured => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: { replicas, selector: { matchLabels: { app: "web" } }, template: template(image) },
});
const report: Unstructured = {
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata: { name: "report" },
  spec: {
    schedule: "*/2 * * * *",
    successfulJobsHistoryLimit: 100,
    jobTemplate: { spec: { template: template("report:1", "Never") } },
  },
};
const settings = (color: string): Unstructured => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings" },
  data: { color },
});

let prepared: Cluster;
before(async () => {
  prepared = await createCluster({ clock: { startsAt: "2030-01-01T00:00:30Z" }, nodes: 2 });
});
after(() => prepared?.stop());

/** Syncs once a minute of the cluster's time. @returns the outcomes */
async function syncFor(cluster: Cluster, minutes: number, revision: Revision) {
  const outcomes = [];
  for (let minute = 0; minute < minutes; minute++) {
    outcomes.push(await sync(cluster.client, revision));
    await cluster.advance("1m");
  }
  return outcomes;
}
const replicasOf = async (cluster: Cluster) => (await cluster.client.get<AppsV1.Deployment>(deployments, web)).spec.replicas;

test("eight minutes of syncing every minute write an unchanged object once, while its cron job runs four times", async () => {
  await using cluster = await prepared.fork();
  const outcomes = await syncFor(cluster, 8, {
    "web.yaml": deployment(2),
    "report.yaml": report,
    "settings.yaml": settings("red"),
  });
  assert.deepEqual(
    [...new Set(outcomes.map(({ failed, pruned }) => JSON.stringify({ failed, pruned })))],
    ['{"failed":{},"pruned":[]}'],
  );
  const { status, metadata } = await cluster.client.get<AppsV1.Deployment>(deployments, web);
  assert.deepEqual([status?.readyReplicas, metadata.generation], [2, 1]);
  const { items } = await cluster.client.list(jobs, { namespace: "default" });
  assert.equal(items.length, 4);
});

test("a manual change is reverted at the next minute, fields of others stay", async () => {
  await using cluster = await prepared.fork();
  const revision = { "web.yaml": deployment(2), "settings.yaml": settings("red") };
  await syncFor(cluster, 1, revision);
  await cluster.client.patch(deployments, web, { type: "merge", body: { spec: { replicas: 5, paused: true } } });
  await cluster.client.patch(
    configMaps,
    { ...web, name: "settings" },
    { type: "merge", body: { data: { color: "blue", size: "xl" } } },
  );
  await syncFor(cluster, 1, revision);
  assert.equal(await replicasOf(cluster), 2);
  const { data } = await cluster.client.get<CoreV1.ConfigMap>(configMaps, { ...web, name: "settings" });
  assert.deepEqual(data, { color: "red", size: "xl" });
});

test("a file that is gone takes its object and its pods along; one that is refused removes nothing and stops no other", async () => {
  await using cluster = await prepared.fork();
  await syncFor(cluster, 1, { "web.yaml": deployment(2), "settings.yaml": settings("red") });
  const bad = { "web.yaml": deployment(-1), "other.yaml": { ...settings("green"), metadata: { name: "other" } } };
  const [refused] = await syncFor(cluster, 1, bad);
  assert.deepEqual(Object.keys(refused?.failed ?? {}), ["web.yaml"]);
  assert.match(refused?.failed["web.yaml"] ?? "", /spec.replicas: Invalid value: -1/);
  assert.equal(await replicasOf(cluster), 2);
  assert.ok(await cluster.client.get(configMaps, { ...web, name: "other" }));

  const [mended] = await syncFor(cluster, 1, { "web.yaml": deployment(3, "web:2") });
  assert.deepEqual([...(mended?.pruned ?? [])].sort(), ["ConfigMap/other", "ConfigMap/settings"]);
  await cluster.eventually<AppsV1.Deployment>(
    deployments,
    web,
    ({ status }) => status?.updatedReplicas === 3 && status.replicas === 3,
  );
  const [empty] = await syncFor(cluster, 1, {});
  assert.deepEqual(empty?.pruned, ["Deployment/web"]);
  await cluster.eventuallyGone(deployments, web);
});
