import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { type Cluster, createCluster } from "@coxswain/testing";
import type { AppsV1, CoreV1 } from "@coxswain/testing/kinds";
import { configMaps, deployments, endpoints } from "@coxswain/testing/resources";
import { findHelm } from "./find-helm.ts";

const chart = join(import.meta.dirname, "chart");
const web = { namespace: "default", name: "web" };
const run = promisify(execFile);

let prepared: Cluster;
before(async () => {
  prepared = await createCluster({
    nodes: 2,
    pods: [{ match: { image: "*:broken" }, waits: { reason: "ImagePullBackOff" } }],
  });
});
after(() => prepared?.stop());

/** Helm for a copy of the prepared cluster. */
async function withHelm(t: TestContext): Promise<{ cluster: Cluster; helm(...args: string[]): Promise<string> }> {
  const cluster = await prepared.fork();
  t.after(() => cluster.stop());
  const home = mkdtempSync(join(tmpdir(), "helm-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const kubeconfig = join(home, "kubeconfig");
  writeFileSync(kubeconfig, await cluster.kubeconfig(), { mode: 0o600 });
  const program = await findHelm();
  const env = { PATH: process.env["PATH"], HOME: home, KUBECONFIG: kubeconfig };
  return { cluster, helm: async (...args) => (await run(program, args, { env })).stdout };
}

test("the chart comes up, its Service has endpoints, and an upgrade rolls the pods when a setting changes", async (t) => {
  const { cluster, helm } = await withHelm(t);
  assert.match(await helm("install", "web", chart, "--wait"), /STATUS: deployed/);
  const { subsets } = await cluster.eventually<CoreV1.Endpoints>(
    endpoints,
    web,
    ({ subsets }) => subsets?.[0]?.addresses?.length === 2,
  );
  assert.deepEqual(
    subsets?.[0]?.ports?.map(({ name, port }) => [name, port]),
    [["http", 8080]],
  );
  assert.match(await helm("upgrade", "web", chart, "--wait", "--set", "greeting=welcome,replicas=3"), /REVISION: 2/);
  const { metadata, status } = await cluster.client.get<AppsV1.Deployment>(deployments, web);
  assert.equal(metadata.annotations?.["deployment.kubernetes.io/revision"], "2");
  assert.equal(status?.updatedReplicas, 3);
});

test("an image that cannot be pulled takes the upgrade back, and the release stays as it was", async (t) => {
  const { cluster, helm } = await withHelm(t);
  await helm("install", "web", chart, "--wait");
  await assert.rejects(
    helm("upgrade", "web", chart, "--atomic", "--timeout=3s", "--set", "image=nginx:broken"),
    /has been rolled back|timed out/,
  );
  const { spec } = await cluster.eventually<AppsV1.Deployment>(deployments, web, ({ status }) => status?.readyReplicas === 2);
  assert.equal(spec.template.spec?.containers[0]?.image, "nginx:1.25");
});

test("a missing value is refused with the chart's message, and nothing is left after an uninstall", async (t) => {
  const { cluster, helm } = await withHelm(t);
  await assert.rejects(helm("install", "web", chart, "--set", "greeting="), /a greeting is needed/);
  await helm("install", "web", chart, "--wait");
  await helm("uninstall", "web", "--wait");
  for (const ref of [deployments, configMaps]) await cluster.eventuallyGone(ref, web);
});
