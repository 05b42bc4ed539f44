import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { bindCompleted, boundByController, migratedTo } from "@coxswain/apimachinery/volumes/annotations";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aClaim, aStorageClass, aVolume } from "../../testing/volumes.ts";
import { newPersistentVolumeBinder } from "./controller.ts";

const claimOf = ({ client }: TestContext) => client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data");
const volumeOf = ({ client }: TestContext, name = "a") => client.object<PersistentVolume>(persistentVolumes, name);
const resyncMs = 15_000;

test("binds a claim to a volume, both ways, in four writes", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.put(persistentVolumes, aVolume("a", { capacity: { storage: "2Gi" } }));
  client.put(persistentVolumeClaims, aClaim());
  await run(newPersistentVolumeBinder(ctx));
  hasFields(volumeOf(context), {
    metadata: { annotations: { [boundByController]: "yes" } },
    spec: { claimRef: { kind: "PersistentVolumeClaim", namespace: "default", name: "data", uid: "data-uid" } },
    status: { phase: "Bound" },
  });
  hasFields(claimOf(context), {
    metadata: { annotations: { [boundByController]: "yes", [bindCompleted]: "yes" } },
    spec: { volumeName: "a" },
    status: { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "2Gi" } },
  });
  assert.deepEqual(
    client.writes.map(({ resource, subresource }) => `${resource}/${subresource}`),
    ["persistentvolumes/", "persistentvolumes/status", "persistentvolumeclaims/", "persistentvolumeclaims/status"],
  );
});

test("gives two claims two volumes, though they are requested at once", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumes, aVolume("a"), aVolume("b"));
  client.put(persistentVolumeClaims, aClaim());
  client.put(persistentVolumeClaims, { ...aClaim(), metadata: { namespace: "default", name: "more", uid: "more-uid" } });
  await run(newPersistentVolumeBinder(ctx));
  const names = client.objects<PersistentVolumeClaim>(persistentVolumeClaims).map(({ spec }) => spec.volumeName);
  assert.deepEqual(names.sort(), ["a", "b"]);
});

test("finishes what another process began and lost", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, run } = context;
  client.put(persistentVolumes, aVolume("a"));
  client.put(persistentVolumeClaims, aClaim());
  let away = true;
  client.react("update", "persistentvolumeclaims", () => {
    if (away) throw new Error("connection lost");
    return undefined;
  });
  await run(newPersistentVolumeBinder(ctx));
  assert.equal(volumeOf(context)?.status?.phase, "Bound");
  assert.equal(claimOf(context)?.status?.phase, "Pending");
  away = false;
  await clock.advance(resyncMs);
  assert.equal(claimOf(context)?.status?.phase, "Bound");
});

test("binds with the next look at everything to a volume that comes later", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, events, run } = context;
  client.put(persistentVolumeClaims, aClaim());
  await run(newPersistentVolumeBinder(ctx));
  assert.match(events[0] ?? "", /^Normal FailedBinding no persistent volumes available/);
  const { status: _, ...fresh } = aVolume("a");
  client.put(persistentVolumes, fresh);
  await settle(30);
  assert.equal(volumeOf(context)?.status?.phase, "Available");
  await clock.advance(resyncMs);
  assert.equal(claimOf(context)?.spec.volumeName, "a");
});

test("looks at nothing any more once it has stopped", async (t) => {
  const { clock, ctx, run } = newTestContext(t);
  const stop = new AbortController();
  const binder = newPersistentVolumeBinder(ctx);
  await run({ run: (signal) => binder.run(AbortSignal.any([signal, stop.signal])) });
  const running = clock.waiting;
  stop.abort();
  await settle(30);
  assert.deepEqual([running, clock.waiting], [1, 0]);
});

test("names the pods that a waiting claim waits for", async (t) => {
  const { client, ctx, events, run } = newTestContext(t);
  client.put(storageClasses, aStorageClass("later", { volumeBindingMode: "WaitForFirstConsumer" }));
  client.put(
    pods,
    aPod({ name: "web", phase: "Pending", spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] } }),
  );
  client.put(persistentVolumeClaims, aClaim({ storageClassName: "later" }));
  await run(newPersistentVolumeBinder(ctx));
  assert.deepEqual(events, ["Normal WaitForPodScheduled waiting for pod web to be scheduled"]);
});

test("releases a volume whose claim is gone and keeps it", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.put(persistentVolumes, aVolume("a"));
  client.put(persistentVolumeClaims, aClaim());
  await run(newPersistentVolumeBinder(ctx));
  client.remove(persistentVolumeClaims, "default/data");
  await settle(30);
  assert.equal(volumeOf(context)?.status?.phase, "Released");
  assert.equal(volumeOf(context)?.spec.claimRef?.uid, "data-uid");
});

test("asks the server before it takes a claim for gone", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.react("list", "persistentvolumeclaims", () => ({ metadata: { resourceVersion: "999999" }, items: [] }));
  client.put(persistentVolumeClaims, aClaim({ volumeName: "a" }));
  const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
  client.put(persistentVolumes, { ...aVolume("a", { claimRef }), status: { phase: "Bound" } });
  await run(newPersistentVolumeBinder(ctx));
  assert.equal(volumeOf(context)?.status?.phase, "Bound");
});

test("says once that a claim has lost its volume", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx, events, run } = context;
  client.put(persistentVolumes, aVolume("a"));
  client.put(persistentVolumeClaims, aClaim());
  await run(newPersistentVolumeBinder(ctx));
  client.remove(persistentVolumes, "a");
  await settle(30);
  await clock.advance(resyncMs);
  assert.deepEqual(claimOf(context)?.status, { phase: "Lost" });
  assert.deepEqual(events, ["Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!"]);
});

test("frees a volume that it bound to a claim that has another by now", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
  client.put(persistentVolumes, aVolume("a", { claimRef }, { [boundByController]: "yes" }), aVolume("b", { claimRef }));
  client.put(persistentVolumeClaims, aClaim({ volumeName: "c" }, { [bindCompleted]: "yes" }));
  client.put(persistentVolumes, aVolume("c", { claimRef }));
  await run(newPersistentVolumeBinder(ctx));
  assert.equal(volumeOf(context)?.spec.claimRef, undefined);
  assert.equal(volumeOf(context)?.metadata.annotations, undefined);
  assert.deepEqual(volumeOf(context, "b")?.spec.claimRef, { namespace: "default", name: "data" });
  assert.equal(volumeOf(context, "c")?.status?.phase, "Bound");
});

test("does not touch the capacity of a claim that is bound already", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
  client.put(persistentVolumes, aVolume("a", { claimRef, capacity: { storage: "9Gi" } }));
  const claim = aClaim({ volumeName: "a" }, { [bindCompleted]: "yes" });
  client.put(persistentVolumeClaims, { ...claim, status: { phase: "Bound", capacity: { storage: "1Gi" } } });
  await run(newPersistentVolumeBinder(ctx));
  assert.deepEqual(claimOf(context)?.status, {
    phase: "Bound",
    capacity: { storage: "1Gi" },
    accessModes: ["ReadWriteOnce"],
  });
});

test("says which CSI driver has taken over from an in-tree plugin, and takes it back", async (t) => {
  const provisioned = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" };
  const migrated = newTestContext(t);
  migrated.client.put(persistentVolumes, aVolume("a", {}, provisioned));
  await migrated.run(newPersistentVolumeBinder(migrated.ctx));
  assert.equal(volumeOf(migrated)?.metadata.annotations?.[migratedTo], "ebs.csi.aws.com");

  const back = newTestContext(t, {}, { CSIMigrationAWS: false });
  back.client.put(persistentVolumes, aVolume("a", {}, { ...provisioned, [migratedTo]: "ebs.csi.aws.com" }));
  await back.run(newPersistentVolumeBinder(back.ctx));
  assert.equal(volumeOf(back)?.metadata.annotations?.[migratedTo], undefined);
});

test("counts volumes and claims by class, namespace, plugin and mode", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(persistentVolumes, aVolume("a"), aVolume("b", { storageClassName: "fast" }));
  client.put(persistentVolumeClaims, aClaim());
  await run(newPersistentVolumeBinder(ctx));
  const text = await ctx.registry.render();
  for (const line of [
    'pv_collector_bound_pv_count{storage_class=""} 1',
    'pv_collector_unbound_pv_count{storage_class="fast"} 1',
    'pv_collector_bound_pvc_count{namespace="default"} 1',
    'pv_collector_total_pv_count{plugin_name="kubernetes.io/host-path",volume_mode="Filesystem"} 2',
  ])
    assert.ok(text.includes(`${line}\n`), line);
  assert.doesNotMatch(text, /pv_collector_unbound_pvc_count\{/);
  assert.equal(await ctx.registry.render(), text, "looking at the numbers does not change them");
});

test("a claim without a phase that waits for its volume is Pending", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.put(persistentVolumeClaims, { ...aClaim({ volumeName: "nowhere" }), status: {} });
  await run(newPersistentVolumeBinder(ctx));
  assert.deepEqual(claimOf(context)?.status, { phase: "Pending" });
});

test("a volume that needs another driver's name and another finalizer gets both in one write", async (t) => {
  const context = newTestContext(t, {}, { HonorPVReclaimPolicy: true });
  const { client, ctx, run } = context;
  const volume = aVolume(
    "a",
    { persistentVolumeReclaimPolicy: "Delete" },
    { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" },
  );
  client.put(persistentVolumes, {
    ...volume,
    metadata: { ...volume.metadata, finalizers: ["kubernetes.io/pv-controller", "x"] },
  });
  await run(newPersistentVolumeBinder(ctx));
  const { metadata } = volumeOf(context) as PersistentVolume;
  assert.deepEqual([metadata.annotations?.[migratedTo], metadata.finalizers], ["ebs.csi.aws.com", ["x"]]);
  assert.equal(client.writes.filter(({ subresource }) => subresource === "").length, 1);
});

test("a bound claim is lost as soon as its volume is", async (t) => {
  const context = newTestContext(t);
  const { client, ctx, run } = context;
  client.put(persistentVolumes, aVolume("a"));
  client.put(persistentVolumeClaims, aClaim());
  await run(newPersistentVolumeBinder(ctx));
  assert.equal(claimOf(context)?.status?.phase, "Bound");
  client.remove(persistentVolumes, "a");
  await settle(30);
  assert.equal(claimOf(context)?.status?.phase, "Lost");
});
