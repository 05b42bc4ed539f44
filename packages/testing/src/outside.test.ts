/** External dependencies of a cluster: webhooks, a real etcd. */
import assert from "node:assert/strict";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { configMaps, deployments, validatingWebhookConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { createCluster } from "./create-cluster.ts";
import { aDeployment, isReady } from "./testing/objects.ts";
import type { WebListener } from "./tls/in-process-tls.ts";

const aConfigMap = (name: string) => ({ metadata: { name, namespace: "default" }, data: {} }) as never;

test("an admission webhook in the process rejects objects, and one that does not answer times out", async () => {
  await using cluster = await createCluster({ nodes: 0, controllers: false, scheduler: false });
  let isSilent = false;
  const review: WebListener = async (request, response) => {
    const { request: asked } = (await json(request)) as { request: { uid: string; name: string } };
    if (isSilent) return;
    const allowed = asked.name !== "bad";
    const answer = { uid: asked.uid, allowed, ...(!allowed && { status: { message: "bad names are refused" } }) };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
  };
  const { url, caBundle } = await cluster.serve("hook.test", review);
  await cluster.client.create(validatingWebhookConfigurations, {
    metadata: { name: "hook" },
    webhooks: [
      {
        name: "hook.test.example",
        clientConfig: { url: `${url}/validate`, caBundle },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        timeoutSeconds: 1,
      },
    ],
  } as never);
  await cluster.waitFor(() =>
    cluster.client.create(configMaps, aConfigMap("bad"), { dryRun: true }).then(
      () => false,
      (err: Error) => {
        assert.match(err.message, /admission webhook "hook.test.example" denied the request: bad names are refused/);
        return true;
      },
    ),
  );
  await cluster.client.create(configMaps, aConfigMap("good"));
  isSilent = true;
  await assert.rejects(
    cluster.client.create(configMaps, aConfigMap("late")),
    /failed calling webhook "hook.test.example".*(?:context deadline exceeded|Timeout)/,
  );
});

test("a cluster over a real etcd works, and refuses features that need the in-memory store", async () => {
  const etcd = await startEtcd();
  const options = { etcd: [etcd.endpoint], etcdPrefix: `/in-process-${process.pid}` };
  await using cluster = await createCluster(options);
  await cluster.client.create(deployments, aDeployment("web", 3));
  await cluster.eventually<Deployment>(deployments, { namespace: "default", name: "web" }, isReady(3));
  await assert.rejects(cluster.fork(), /a cluster over a real etcd cannot be forked/);
  await assert.rejects(cluster.settle(), /with a real etcd does not know when it has settled/);
  assert.throws(() => cluster.faults.breakStoreWatch(), /over a real etcd/);
  await cluster.stop();
  // A second cluster with the same etcd must see what the first one wrote.
  await using next = await createCluster({ ...options, controllers: false, scheduler: false, nodes: 0 });
  await next.client.get(deployments, { namespace: "default", name: "web" });
});

test("a scheduler with a slow clock and controllers with a fast one work together", async () => {
  await using cluster = await createCluster({ clock: "virtual", nodes: 2 });
  cluster.faults.skew("kube-scheduler", -3_600_000);
  cluster.faults.skew("kube-controller-manager", 30_000);
  await cluster.client.create(deployments, aDeployment("web", 2));
  await cluster.eventually<Deployment>(deployments, { namespace: "default", name: "web" }, isReady(2));
});
