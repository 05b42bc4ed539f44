import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNamespace } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { namespaceTerminating } from "../../testing/terminating.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newRootCaCertPublisher } from "./controller.ts";

test("publishes the bundle in each namespace, and puts right what someone changed", async (t) => {
  const { client, ctx, run } = newTestContext(t, { rootCa: "CA" });
  client.put(namespaces, aNamespace({ name: "web" }));
  await run(newRootCaCertPublisher(ctx));
  const stored = () => client.object<ConfigMap>(configMaps, "web/kube-root-ca.crt");
  assert.deepEqual(stored()?.data, { "ca.crt": "CA" });
  client.put(configMaps, { ...(stored() as ConfigMap), data: { "ca.crt": "forged" } });
  await settle(30);
  assert.deepEqual(stored()?.data, { "ca.crt": "CA" });
});

test("has nothing to do without a bundle", (t) => {
  assert.equal(newRootCaCertPublisher(newTestContext(t).ctx), undefined);
});

test("publishes it again when it was deleted, keeps what others noted on it, and gives a namespace that ends none", async (t) => {
  const { client, ctx, run } = newTestContext(t, { rootCa: "CA" });
  client.put(namespaces, aNamespace({ name: "web" }), { ...aNamespace({ name: "ending" }), status: { phase: "Terminating" } });
  await run(newRootCaCertPublisher(ctx));
  const stored = () => client.object<ConfigMap>(configMaps, "web/kube-root-ca.crt");
  const description = stored()?.metadata.annotations?.["kubernetes.io/description"];
  assert.match(description ?? "", /^Contains a CA bundle/);
  assert.equal(client.object(configMaps, "ending/kube-root-ca.crt"), undefined);
  client.remove(configMaps, "web/kube-root-ca.crt");
  await settle(30);
  assert.deepEqual(stored()?.data, { "ca.crt": "CA" });
  const { metadata, data } = stored() as ConfigMap;
  client.put(configMaps, { ...stored(), metadata: { ...metadata, annotations: { note: "mine" } }, data });
  await settle(30);
  assert.deepEqual(stored()?.metadata.annotations, { note: "mine", "kubernetes.io/description": description });
  client.put(configMaps, { ...stored(), data: { ...data, more: "x" } } as ConfigMap);
  await settle(30);
  assert.deepEqual(stored()?.data, { "ca.crt": "CA" });
  const before = client.writes.length;
  client.put(configMaps, { metadata: { namespace: "web", name: "other" }, data: {} });
  await settle(30);
  assert.equal(client.writes.length, before);
});

for (const { what, refusal } of [
  { what: "a ConfigMap that the cache does not show yet", refusal: () => alreadyExists(configMaps, "kube-root-ca.crt") },
  { what: "a namespace that has begun to end", refusal: () => namespaceTerminating(configMaps, "kube-root-ca.crt") },
])
  test(`${what} is no failure`, async (t) => {
    const { client, ctx, clock, run } = newTestContext(t, { rootCa: "CA" });
    client.react("create", "configmaps", () => {
      throw refusal();
    });
    client.put(namespaces, aNamespace({ name: "web" }));
    await run(newRootCaCertPublisher(ctx));
    await clock.advance(60_000);
    await settle(30);
    assert.equal(client.writes.length, 1);
  });
