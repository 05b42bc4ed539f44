import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { usesClaim } from "./claim-usage.ts";
import { newPvcProtectionController } from "./controller.ts";

const finalizer = "kubernetes.io/pvc-protection";
const deletedAt = "2024-01-01T00:00:00Z";

function aClaim(name = "data", metadata: Partial<PersistentVolumeClaim["metadata"]> = {}): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { namespace: "default", name, uid: `${name}-uid`, finalizers: [finalizer], ...metadata },
    spec: {},
  };
}

const withClaim: Volume[] = [{ name: "v", persistentVolumeClaim: { claimName: "data" } }];
const withEphemeral: Volume[] = [{ name: "v", ephemeral: { volumeClaimTemplate: { metadata: {}, spec: {} } } }];

test("gives its finalizer to a claim from before", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumeClaims, aClaim("data", { finalizers: ["x"] }));
  await run(newPvcProtectionController(ctx));
  assert.deepEqual(client.object(persistentVolumeClaims, "default/data")?.metadata.finalizers, ["x", finalizer]);
});

test("gives its finalizer to no claim that is being deleted", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const { metadata, ...rest } = aClaim("data", { deletionTimestamp: deletedAt });
  client.put(persistentVolumeClaims, { ...rest, metadata: { ...metadata, finalizers: ["x"] } });
  await run(newPvcProtectionController(ctx));
  assert.deepEqual(client.writes, []);
});

test("removes the finalizer of a deleted claim that no scheduled pod uses", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumeClaims, aClaim("data", { deletionTimestamp: deletedAt }));
  client.put(pods, aPod({ name: "waiting", spec: { volumes: withClaim } }));
  await run(newPvcProtectionController(ctx));
  assert.equal(client.object(persistentVolumeClaims, "default/data"), undefined);
});

test("holds a claim until the last pod that uses it is gone", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumeClaims, aClaim("data", { deletionTimestamp: deletedAt }));
  client.put(pods, aPod({ name: "a", nodeName: "n", spec: { volumes: withClaim } }));
  client.put(pods, aPod({ name: "b", nodeName: "n", phase: "Succeeded", spec: { volumes: withClaim } }));
  await run(newPvcProtectionController(ctx));
  client.remove(pods, "default/a");
  await settle(30);
  assert.ok(client.object(persistentVolumeClaims, "default/data"), "a pod that ended still names it");
  client.remove(pods, "default/b");
  await settle(30);
  assert.equal(client.object(persistentVolumeClaims, "default/data"), undefined);
});

test("asks the server about pods that its cache does not show", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumeClaims, aClaim("data", { deletionTimestamp: deletedAt }));
  const unseen = aPod({ name: "unseen", nodeName: "n", spec: { volumes: withClaim } });
  let lists = 0;
  client.react("list", "pods", () => (lists++ === 0 ? undefined : { metadata: {}, items: [unseen] }));
  await run(newPvcProtectionController(ctx));
  assert.ok(client.object(persistentVolumeClaims, "default/data"));
  assert.equal(lists, 2);
});

const owned = { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "web", uid: "web-uid", controller: true }] };
const deleting = { deletedAt, spec: { volumes: withEphemeral }, name: "web", nodeName: "n" };
for (const { name, pod, claim = aClaim(), want } of [
  { name: "a pod that is on no node", pod: aPod({ spec: { volumes: withClaim } }), want: false },
  { name: "a pod with another claim", pod: aPod({ nodeName: "n", spec: { volumes: [] } }), want: false },
  {
    name: "a pod on a node, as its second volume,",
    pod: aPod({ nodeName: "n", spec: { volumes: [{ name: "x", emptyDir: {} }, ...withClaim] } }),
    want: true,
  },
  { name: "a pod on a node", pod: aPod({ nodeName: "n", spec: { volumes: withClaim } }), want: true },
  { name: "a pod with its ephemeral claim", pod: aPod({ ...deleting }), claim: aClaim("web-v", owned), want: true },
  { name: "a pod with a claim that only has the name", pod: aPod({ ...deleting }), claim: aClaim("web-v"), want: false },
  {
    name: "a pod that only waits for its finalizers",
    pod: ((pod: Pod) => ({ ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: 0 } }))(aPod({ ...deleting })),
    claim: aClaim("web-v", owned),
    want: false,
  },
]) {
  test(`${name} ${want ? "holds" : "does not hold"} the claim`, () => assert.equal(usesClaim(pod, claim), want));
}

test("a pod in another namespace does not hold a claim of the same name", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumeClaims, aClaim("data", { deletionTimestamp: deletedAt }));
  client.put(pods, aPod({ name: "a", namespace: "other", nodeName: "n", spec: { volumes: withClaim } }));
  await run(newPvcProtectionController(ctx));
  assert.equal(client.object(persistentVolumeClaims, "default/data"), undefined);
});

test("an ephemeral claim is released when its pod has been shut down, though its last status has a running container", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumeClaims, aClaim("web-v", { deletionTimestamp: deletedAt, ...owned }));
  const pod = aPod({ ...deleting, finalizers: ["x"] });
  const status = { ...pod.status, containerStatuses: [{ name: "c", state: { running: {} } }] } as unknown as Pod["status"];
  client.put(pods, { ...pod, status });
  await run(newPvcProtectionController(ctx));
  assert.ok(client.object(persistentVolumeClaims, "default/web-v"));
  client.put(pods, { ...pod, status, metadata: { ...pod.metadata, deletionGracePeriodSeconds: 0 } });
  await settle(30);
  assert.equal(client.object(persistentVolumeClaims, "default/web-v"), undefined);
});
