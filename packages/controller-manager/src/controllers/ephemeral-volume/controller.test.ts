import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { newEphemeralVolumeController } from "./controller.ts";

const template = {
  metadata: { labels: { app: "web" }, annotations: { note: "x" } },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};
const aWebPod = (options: Parameters<typeof aPod>[0] = {}): Pod =>
  aPod({ name: "web", spec: { volumes: [{ name: "scratch", ephemeral: { volumeClaimTemplate: template } }] }, ...options });

test("makes the claim of an ephemeral volume, owned by its pod", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(pods, aWebPod());
  await run(newEphemeralVolumeController(ctx));
  const claim = client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/web-scratch");
  hasFields(claim, {
    metadata: {
      ...template.metadata,
      ownerReferences: [
        { apiVersion: "v1", kind: "Pod", name: "web", uid: "web-uid", controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: template.spec,
  });
  assert.match(await ctx.registry.render(), /ephemeral_volume_controller_create_total 1\n/);
});

test("makes it again when it is deleted while its pod lives", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(pods, aWebPod());
  await run(newEphemeralVolumeController(ctx));
  client.remove(persistentVolumeClaims, "default/web-scratch");
  await settle(30);
  assert.ok(client.object(persistentVolumeClaims, "default/web-scratch"));
});

test("makes none for a pod that is being deleted", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(pods, aWebPod({ deletedAt: "2024-01-01T00:00:00Z" }));
  await run(newEphemeralVolumeController(ctx));
  assert.deepEqual(client.objects(persistentVolumeClaims), []);
});

test("does not adopt a claim of another owner, and reports it", async (t) => {
  const { client, ctx, run, events, regarding } = newTestContext(t);
  client.put(persistentVolumeClaims, { metadata: { namespace: "default", name: "web-scratch", uid: "u" }, spec: {} });
  client.put(pods, aWebPod());
  await run(newEphemeralVolumeController(ctx));
  assert.equal(
    events[0],
    "Warning FailedBinding ephemeral volume scratch: PVC default/web-scratch was not created for pod default/web (pod is not owner)",
  );
  assert.equal(regarding[0], "Pod default/web");
});

test("tries again where it was refused", async (t) => {
  const { client, clock, ctx, run, events } = newTestContext(t);
  let refuse = true;
  client.react("create", "persistentvolumeclaims", () => {
    if (refuse) throw forbidden(persistentVolumeClaims, "web-scratch", "exceeded quota");
    return undefined;
  });
  client.put(pods, aWebPod());
  await run(newEphemeralVolumeController(ctx));
  assert.match(events[0] ?? "", /^Warning FailedBinding ephemeral volume scratch: create PVC web-scratch: .*exceeded quota/);
  refuse = false;
  await clock.advance(1000);
  assert.ok(client.object(persistentVolumeClaims, "default/web-scratch"));
  assert.match(await ctx.registry.render(), /ephemeral_volume_controller_create_failures_total 1\n/);
});

test("a volume of another kind keeps none after it from having its claim", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const ephemeral = { volumeClaimTemplate: template };
  const volumes = [
    { name: "first", ephemeral },
    { name: "plain", emptyDir: {} },
    { name: "last", ephemeral },
  ];
  client.put(pods, aWebPod({ spec: { volumes } }));
  await run(newEphemeralVolumeController(ctx));
  const names = client.objects(persistentVolumeClaims).map(({ metadata }) => metadata.name);
  assert.deepEqual(names.toSorted(), ["web-first", "web-last"]);
});

test("a claim that was made for the pod before is left as it is", async (t) => {
  const { client, ctx, run, events } = newTestContext(t);
  const owner = { apiVersion: "v1", kind: "Pod", name: "web", uid: "web-uid", controller: true };
  client.put(persistentVolumeClaims, {
    metadata: { namespace: "default", name: "web-scratch", uid: "u", ownerReferences: [owner] },
    spec: {},
  });
  client.put(pods, aWebPod());
  await run(newEphemeralVolumeController(ctx));
  assert.deepEqual([client.writes, events], [[], []]);
  assert.match(await ctx.registry.render(), /ephemeral_volume_controller_create_total 0\n/);
});

test("a claim of a pod that was deleted before its turn is not made", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  client.react("create", "persistentvolumeclaims", () => {
    throw forbidden(persistentVolumeClaims, "web-scratch", "exceeded quota");
  });
  client.put(pods, aWebPod());
  await run(newEphemeralVolumeController(ctx));
  client.put(pods, aWebPod({ deletedAt: "2024-01-01T00:00:00Z", finalizers: ["x"] }));
  await settle(30);
  client.clearActions();
  await clock.advance(60_000);
  assert.deepEqual(client.writes, []);
});

test("a claim without metadata in its template has only its name and owner", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const ephemeral = { volumeClaimTemplate: { metadata: {}, spec: template.spec } };
  client.put(pods, aWebPod({ spec: { volumes: [{ name: "scratch", ephemeral }] } }));
  await run(newEphemeralVolumeController(ctx));
  const claim = client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/web-scratch");
  assert.deepEqual([claim?.metadata.labels, claim?.metadata.annotations], [undefined, undefined]);
});
