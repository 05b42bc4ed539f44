import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aBootstrapToken } from "../../testing/bootstrap-tokens.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newBootstrapSigner } from "./controller.ts";
import { detachedSignature } from "./jws.ts";

test("signs as every joining program expects it", () => {
  // Test vector from k8s.io/cluster-bootstrap.
  assert.equal(
    detachedSignature("Hello from the other side. I must have called a thousand times.", {
      id: "joshua",
      secret: "my voice is my passcode",
    }),
    "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8",
  );
});

function world(t: Parameters<typeof newTestContext>[0], data: Record<string, string>) {
  const context = newTestContext(t);
  const put = (next: Record<string, string>) =>
    context.client.put(configMaps, { metadata: { name: "cluster-info", namespace: "kube-public" }, data: next });
  put(data);
  const stored = () => context.client.object<ConfigMap>(configMaps, "kube-public/cluster-info")?.data ?? {};
  return { ...context, put, stored };
}

test("the kubeconfig of cluster-info is signed with each token that may sign, and again when it changes", async (t) => {
  const { client, ctx, run, put, stored } = world(t, { kubeconfig: "one", "jws-kubeconfig-gone00": "x", other: "kept" });
  const { metadata, ...token } = aBootstrapToken("hhhhhh");
  const elsewhere = { ...token, metadata: { ...metadata, namespace: "web" } };
  client.put(
    secrets,
    aBootstrapToken("aaaaaa"),
    aBootstrapToken("bbbbbb", { "usage-bootstrap-signing": "false" }),
    aBootstrapToken("cccccc", { expiration: "2000-01-01T00:00:00Z" }),
    aBootstrapToken("dddddd", { "token-id": "eeeeee" }),
    aBootstrapToken("ffffff", { "token-secret": "" }),
    { ...aBootstrapToken("gggggg"), type: "Opaque" },
    aBootstrapToken("iiiiii", { "usage-bootstrap-signing": "" }),
    aBootstrapToken("jjjjj"),
    elsewhere,
  );
  const signed = (kubeconfig: string) => ({
    kubeconfig,
    "jws-kubeconfig-aaaaaa": detachedSignature(kubeconfig, { id: "aaaaaa", secret: "0123456789abcdef" }),
  });
  await run(newBootstrapSigner(ctx));
  assert.deepEqual(stored(), { other: "kept", ...signed("one") });
  put({ kubeconfig: "two" });
  await settle(20);
  assert.deepEqual(stored(), signed("two"));
  client.remove(secrets, "kube-system/bootstrap-token-aaaaaa");
  await settle(20);
  assert.deepEqual(stored(), { kubeconfig: "two" });
});

test("without a kubeconfig nothing is signed", async (t) => {
  const { client, ctx, run } = world(t, { "jws-kubeconfig-gone00": "x" });
  client.put(secrets, aBootstrapToken("aaaaaa"));
  await run(newBootstrapSigner(ctx));
  assert.deepEqual(client.writes, []);
});

test("a ConfigMap that is deleted while its signatures are written is no failure", async (t) => {
  const { client, clock, ctx, run } = world(t, { kubeconfig: "one" });
  client.put(secrets, aBootstrapToken("aaaaaa"));
  client.react("update", "configmaps", ({ name }) => {
    throw notFound(configMaps, name);
  });
  await run(newBootstrapSigner(ctx));
  await clock.advance(60_000);
  await settle(20);
  assert.equal(client.writes.length, 1);
});

test("each of several tokens that may sign has its own signature", async (t) => {
  const { client, ctx, run, stored } = world(t, { kubeconfig: "one" });
  client.put(secrets, aBootstrapToken("aaaaaa"), aBootstrapToken("bbbbbb", { "token-secret": "fedcba9876543210" }));
  await run(newBootstrapSigner(ctx));
  assert.deepEqual(stored(), {
    kubeconfig: "one",
    "jws-kubeconfig-aaaaaa": detachedSignature("one", { id: "aaaaaa", secret: "0123456789abcdef" }),
    "jws-kubeconfig-bbbbbb": detachedSignature("one", { id: "bbbbbb", secret: "fedcba9876543210" }),
  });
});
