import assert from "node:assert/strict";
import { json } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { type Cluster, createCluster } from "@coxswain/testing";
import type { AppsV1 } from "@coxswain/testing/kinds";
import { deployments } from "@coxswain/testing/resources";
import { KubeConfig } from "@kubernetes/client-node";
import { convert, definition, type Website, withEarlierVersion } from "./definition.ts";
import { startOperator } from "./operator.ts";

const websites = { group: "example.com", version: "v1", resource: "websites", kind: "Website", namespaced: true };
const shop = { namespace: "default", name: "shop" };
const aWebsite = (spec: Website["spec"]) => ({ apiVersion: "example.com/v1", kind: "Website", metadata: { name: "shop" }, spec });

let prepared: Cluster;
before(async () => {
  prepared = await createCluster({
    nodes: 2,
    // Rules of definitions are alpha in Kubernetes 1.23.
    apiServerFlags: ["--feature-gates=CustomResourceValidationExpressions=true"],
  });
  await prepared.apply([definition] as never);
});
after(() => prepared?.stop());

/** A copy of the prepared cluster, with the operator. */
async function withOperator(): Promise<{ cluster: Cluster; released: string[] } & AsyncDisposable> {
  const cluster = await prepared.fork();
  const config = new KubeConfig();
  config.loadFromString(await cluster.kubeconfig());
  const released: string[] = [];
  const operator = await startOperator(config, (name) => released.push(name));
  return {
    cluster,
    released,
    async [Symbol.asyncDispose]() {
      await operator.stop();
      await cluster.stop();
    },
  };
}

test("a Website creates a Deployment, follows changes, and is released before it is deleted", async () => {
  await using running = await withOperator();
  const { cluster, released } = running;
  await cluster.apply([aWebsite({ image: "nginx", replicas: 2 })] as never);
  await cluster.eventually<Website>(websites, shop, ({ status }) => status?.readyReplicas === 2, { what: "to be ready" });
  await cluster.client.patch(websites, shop, { type: "merge", body: { spec: { replicas: 4, image: "nginx:2" } } });
  const changed = await cluster.eventually<AppsV1.Deployment>(deployments, shop, ({ status }) => status?.readyReplicas === 4);
  assert.equal(changed.spec.template.spec?.containers[0]?.image, "nginx:2");
  await cluster.client.delete(websites, shop);
  await cluster.eventuallyGone(websites, shop);
  // At least once: it has to bear being told again.
  assert.deepEqual([...new Set(released)], ["shop"]);
  // Its owner is gone.
  await cluster.eventuallyGone(deployments, shop);
});

test("the definition's rule refuses what it should", async () => {
  await using cluster = await prepared.fork();
  await assert.rejects(cluster.apply([aWebsite({ image: "nginx", replicas: 6 })] as never), /at most five replicas/);
});

test("a webhook in this process converts a Website of the earlier version on write and on read", async () => {
  await using running = await withOperator();
  const { cluster } = running;
  const { url, caBundle } = await cluster.serve("convert.test", async (request, response) => {
    const { request: asked } = (await json(request)) as {
      request: { uid: string; desiredAPIVersion: string; objects: Record<string, unknown>[] };
    };
    const convertedObjects = asked.objects.map((object) => convert(object, asked.desiredAPIVersion));
    const answer = { uid: asked.uid, result: { status: "Success" }, convertedObjects };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", response: answer }));
  });
  await cluster.apply([withEarlierVersion({ url, caBundle })] as never);
  const earlier = { ...websites, version: "v1beta1" };
  const old = { apiVersion: "example.com/v1beta1", kind: "Website", metadata: shop, spec: { image: "nginx", count: 3 } };
  await cluster.waitFor(() => cluster.client.create(earlier, old).catch(() => undefined), {
    what: "the earlier version",
  });
  const stored = await cluster.eventually<Website>(websites, shop, ({ status }) => status?.readyReplicas === 3);
  assert.deepEqual(stored.spec, { image: "nginx", replicas: 3 });
  const read = await cluster.client.get<{ spec: object }>(earlier, shop);
  assert.deepEqual(read.spec, { image: "nginx", count: 3 });
});

test("an admission webhook in this process refuses an image", async () => {
  await using cluster = await prepared.fork();
  const { url, caBundle } = await cluster.serve("hook.test", async (request, response) => {
    const { request: asked } = (await json(request)) as { request: { uid: string; object: Website } };
    const allowed = !asked.object.spec.image.endsWith(":latest");
    const answer = { uid: asked.uid, allowed, status: { message: "name a version" } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
  });
  const rules = [{ apiGroups: ["example.com"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["websites"] }];
  const hook = {
    name: "images.example.com",
    clientConfig: { url, caBundle },
    rules,
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
  };
  await cluster.apply([
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: "images" },
      webhooks: [hook],
    },
  ] as never);
  const created = () =>
    cluster.client.create(websites, { ...aWebsite({ image: "nginx:latest" }), metadata: shop }, { dryRun: true });
  const refusal = await cluster.waitFor(() =>
    created().then(
      () => undefined,
      (err: Error) => err.message,
    ),
  );
  assert.match(refusal, /admission webhook "images.example.com" denied the request: name a version/);
});
