/** Failures midway, objects made anew under their name, and what a second reconciliation must not repeat. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { test } from "node:test";
import { alreadyExists, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { migratedTo, provisionedBy, selectedNode, storageProvisioner } from "@coxswain/apimachinery/volumes/annotations";
import { defaultConfig, newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aClaim, aStorageClass, aVolume } from "../../testing/volumes.ts";
import { newPersistentVolumeBinder } from "./controller.ts";
import { newLifecycles } from "./metrics.ts";
import { withMigration } from "./migration.ts";
import { newOperations } from "./operations.ts";

const resyncMs = 15_000;
const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
const claimOf = ({ client }: TestContext) => client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data");
const volumeOf = ({ client }: TestContext, name = "a") => client.object<PersistentVolume>(persistentVolumes, name);
const withHostPath = { volumes: { ...defaultConfig.volumes, hostPathProvisioner: true } };
const hostPath = { provisioner: "kubernetes.io/host-path" };
const user = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] };

async function claiming(context: TestContext, storageClass: object, claim = aClaim({ storageClassName: "fast" })) {
  context.client.put(storageClasses, aStorageClass("fast", storageClass));
  context.client.put(persistentVolumeClaims, claim);
  await context.run(newPersistentVolumeBinder(context.ctx));
}

test("a waiting claim names only pods that have neither a node nor ended", async (t) => {
  const { client, ctx, events, run } = newTestContext(t);
  client.put(storageClasses, aStorageClass("later", { volumeBindingMode: "WaitForFirstConsumer" }));
  client.put(
    pods,
    aPod({ name: "scheduled", nodeName: "n", spec: user }),
    aPod({ name: "ended", phase: "Failed", spec: user }),
    aPod({ name: "waiting", phase: "Pending", spec: user }),
  );
  client.put(persistentVolumeClaims, aClaim({ storageClassName: "later" }));
  await run(newPersistentVolumeBinder(ctx));
  assert.deepEqual(events, ["Normal WaitForPodScheduled waiting for pod waiting to be scheduled"]);
});

test("a provisioner that is named already is not written again with each look", async (t) => {
  const context = newTestContext(t);
  await claiming(context, {});
  await settle(30);
  context.client.clearActions();
  await context.clock.advance(resyncMs);
  await settle(30);
  assert.equal(claimOf(context)?.metadata.annotations?.[storageProvisioner], "disks.example.com");
  assert.deepEqual(context.client.writes, []);
});

test("the server is not asked again for the claim of a volume that is released already", async (t) => {
  const context = newTestContext(t);
  context.client.put(persistentVolumes, { ...aVolume("a", { claimRef }), status: { phase: "Bound" } });
  await context.run(newPersistentVolumeBinder(context.ctx));
  const asked = () =>
    context.client.actions.filter(({ verb, resource }) => verb === "get" && resource === "persistentvolumeclaims").length;
  assert.deepEqual([asked(), volumeOf(context)?.status?.phase], [1, "Released"]);
  await context.clock.advance(resyncMs);
  await settle(30);
  assert.equal(asked(), 1);
});

test("the server is not asked for the claim of a volume that is only reserved for it", async (t) => {
  const context = newTestContext(t);
  context.client.put(persistentVolumes, aVolume("a", { claimRef: { namespace: "default", name: "data" } }));
  await context.run(newPersistentVolumeBinder(context.ctx));
  assert.equal(volumeOf(context)?.status?.phase, "Available");
  assert.deepEqual(
    context.client.actions.filter(({ verb }) => verb === "get"),
    [],
  );
});

test("a volume whose claim cannot be read keeps its phase until it can", async (t) => {
  const context = newTestContext(t);
  let away = true;
  context.client.react("get", "persistentvolumeclaims", () => {
    if (away) throw serviceUnavailable("away");
    return undefined;
  });
  context.client.put(persistentVolumes, { ...aVolume("a", { claimRef }), status: { phase: "Bound" } });
  await context.run(newPersistentVolumeBinder(context.ctx));
  assert.equal(volumeOf(context)?.status?.phase, "Bound");
  away = false;
  await context.clock.advance(1000);
  await settle(30);
  assert.equal(volumeOf(context)?.status?.phase, "Released");
});

test("a claim of a migrated plugin says which CSI driver has taken over", async (t) => {
  const context = newTestContext(t);
  await claiming(context, {}, aClaim({ volumeName: "nowhere" }, { [storageProvisioner]: "kubernetes.io/aws-ebs" }));
  assert.equal(claimOf(context)?.metadata.annotations?.[migratedTo], "ebs.csi.aws.com");
});

for (const [kind, annotations, want] of [
  ["volume", { [storageProvisioner]: "kubernetes.io/aws-ebs" }, undefined],
  ["claim", { [provisionedBy]: "kubernetes.io/aws-ebs" }, undefined],
  ["claim", { "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs" }, "ebs.csi.aws.com"],
  ["volume", { [provisionedBy]: "kubernetes.io/aws-ebs", [migratedTo]: "ebs.csi.aws.com" }, undefined],
  ["volume", { [provisionedBy]: "example.com/disk", [migratedTo]: "" }, undefined],
] as ["volume" | "claim", Record<string, string>, string?][]) {
  test(`a ${kind} with ${Object.keys(annotations).join(" and ")} is ${want === undefined ? "not changed" : "annotated"}`, () => {
    const object = { metadata: { name: "a", annotations: { ...annotations } } };
    const changed = withMigration(object, kind, { enabled: () => true });
    assert.equal(changed === undefined, want === undefined);
    assert.equal(changed?.metadata.annotations?.[migratedTo], want);
  });
}

test("a file system for a claim that wants blocks is reported on both", async (t) => {
  const context = newTestContext(t);
  context.client.put(persistentVolumes, { ...aVolume("a", { claimRef }), status: { phase: "Bound" } });
  context.client.put(persistentVolumeClaims, aClaim({ volumeMode: "Block", storageClassName: "none" }));
  await context.run(newPersistentVolumeBinder(context.ctx));
  const all = context.events.map((event, i) => `${context.regarding[i]}: ${event}`);
  const notices = [...new Set(all)].filter((notice) => notice.includes(" VolumeMismatch ")).toSorted();
  assert.match(notices[0] ?? "", /^PersistentVolume a: .* to requested PersistentVolumeClaim "data"/);
  assert.match(notices[1] ?? "", /^PersistentVolumeClaim default\/data: .*PersistentVolume "a" to requested/);
});

test("a volume without a capacity is not bound, and a capacity of the same size is written as the claim has it", async (t) => {
  const without = newTestContext(t);
  without.client.put(persistentVolumes, aVolume("a", { claimRef, capacity: {} }));
  without.client.put(persistentVolumeClaims, aClaim({ volumeName: "a" }));
  await without.run(newPersistentVolumeBinder(without.ctx));
  assert.equal(claimOf(without)?.status?.phase, "Pending");

  const same = newTestContext(t);
  same.client.put(persistentVolumes, aVolume("a", { claimRef, capacity: { storage: "1024Mi" } }));
  same.client.put(persistentVolumeClaims, {
    ...aClaim({ volumeName: "a" }),
    status: { phase: "Lost", capacity: { storage: "1Gi" } },
  });
  await same.run(newPersistentVolumeBinder(same.ctx));
  assert.deepEqual(claimOf(same)?.status, { phase: "Bound", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] });
});

test("a failed binding is counted as an error of the provisioning", async (t) => {
  const context = newTestContext(t);
  await claiming(context, {});
  context.client.react("update", "persistentvolumes", () => {
    throw serviceUnavailable("away");
  });
  context.client.put(persistentVolumes, aVolume("pvc-1", { storageClassName: "fast", claimRef }));
  await settle(30);
  const text = await context.ctx.registry.render();
  assert.match(text, /volume_operation_total_errors\{plugin_name="disks.example.com",operation_name="provision"\} [1-9]/);
  assert.doesNotMatch(text, /volume_operation_total_seconds_count\{plugin_name="disks/);
});

test("the time of a claim that was deleted before it was bound is not counted for one of its name", async (t) => {
  const context = newTestContext(t);
  await claiming(context, {});
  context.client.remove(persistentVolumeClaims, "default/data");
  await settle(30);
  await context.clock.advance(100_000);
  const again = aClaim({ storageClassName: "fast" });
  context.client.put(persistentVolumeClaims, { ...again, metadata: { ...again.metadata, uid: "second" } });
  await settle(30);
  context.client.put(persistentVolumes, aVolume("p", { storageClassName: "fast", claimRef: { ...claimRef, uid: "second" } }));
  await settle(60);
  assert.equal(claimOf(context)?.status?.phase, "Bound");
  assert.match(
    await context.ctx.registry.render(),
    /volume_operation_total_seconds_sum\{plugin_name="disks.example.com",operation_name="provision"\} 0\n/,
  );
});

test("a measurement runs from the first attempt, is in seconds and ends once", async () => {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const lifecycles = newLifecycles(registry, clock);
  lifecycles.begin("a", "p", "delete");
  await clock.advance(2_000);
  lifecycles.begin("a", "p", "delete");
  await clock.advance(1_000);
  lifecycles.end("a");
  lifecycles.end("a");
  lifecycles.fail("a");
  const text = await registry.render();
  assert.match(text, /volume_operation_total_seconds_sum\{plugin_name="p",operation_name="delete"\} 3\n/);
  assert.match(text, /volume_operation_total_seconds_count\{plugin_name="p",operation_name="delete"\} 1\n/);
  assert.doesNotMatch(text, /volume_operation_total_errors\{/);
});

test("volumes are counted by the driver of CSI, as N/A of an unknown plugin, and by their mode", async (t) => {
  const context = newTestContext(t);
  context.client.put(
    persistentVolumes,
    aVolume("a", { hostPath: undefined, csi: { driver: "x", volumeHandle: "y" }, volumeMode: "Block" } as never),
    aVolume("b", { hostPath: undefined, volumeMode: undefined } as never),
  );
  await context.run(newPersistentVolumeBinder(context.ctx));
  const text = await context.ctx.registry.render();
  assert.match(text, /pv_collector_total_pv_count\{plugin_name="kubernetes.io\/csi:x",volume_mode="Block"\} 1\n/);
  assert.match(text, /pv_collector_total_pv_count\{plugin_name="N\/A",volume_mode="Filesystem"\} 1\n/);
});

test("a folder is not made a second time when the volume of the claim exists", async (t) => {
  const context = newTestContext(t, withHostPath);
  context.client.react("get", "persistentvolumes", ({ name }) => aVolume(name));
  await claiming(context, hostPath);
  await settle(60);
  assert.ok(context.client.actions.some(({ verb, name }) => verb === "get" && name === "pvc-data-uid"));
  assert.ok(context.client.writes.every(({ verb }) => verb !== "create"));
});

test("a node that is gone is reported, and stays chosen: nothing was made", async (t) => {
  const context = newTestContext(t, withHostPath);
  await claiming(context, hostPath, aClaim({ storageClassName: "fast" }, { [selectedNode]: "gone" }));
  await settle(30);
  assert.ok(context.client.actions.some(({ resource, name }) => resource === nodes.resource && name === "gone"));
  assert.match(context.events[0] ?? "", /^Warning ProvisioningFailed Failed to get target node: .*"gone" not found/);
  assert.equal(claimOf(context)?.metadata.annotations?.[selectedNode], "gone");
});

test("a volume that an attempt has created before its answer was lost is the claim's", async (t) => {
  const context = newTestContext(t, withHostPath);
  context.client.react("create", "persistentvolumes", ({ sent }) => {
    const volume = sent as PersistentVolume;
    context.client.put(persistentVolumes, volume);
    throw alreadyExists(persistentVolumes, volume.metadata.name ?? "");
  });
  await claiming(context, hostPath);
  await waitFor(() => context.events.some((event) => event.startsWith("Normal ProvisioningSucceeded")), { what: "the event" });
  context.client.remove(persistentVolumeClaims, "default/data");
  await waitFor(() => volumeOf(context, "pvc-data-uid") === undefined, { what: "the volume and its folder to be deleted" });
});

for (const { name, gates, deleted } of [
  { name: "is not touched", gates: {}, deleted: false },
  { name: "loses its storage and finalizer, and is not deleted twice", gates: { HonorPVReclaimPolicy: true }, deleted: true },
]) {
  test(`a released volume that is being deleted ${name} with HonorPVReclaimPolicy ${deleted ? "on" : "off"}`, async (t) => {
    const context = newTestContext(t, {}, gates);
    const path = mkdtempSync("/tmp/cox-folder-"); // nothing outside /tmp is deleted
    t.after(() => rmSync(path, { recursive: true, force: true }));
    const volume = aVolume("a", { claimRef, persistentVolumeReclaimPolicy: "Delete", hostPath: { path } });
    const finalizers = ["kubernetes.io/pv-controller", "x"];
    const metadata = { ...volume.metadata, deletionTimestamp: "2024-01-01T00:00:00Z", finalizers };
    context.client.put(persistentVolumes, { ...volume, metadata, status: { phase: "Released" } });
    await context.run(newPersistentVolumeBinder(context.ctx));
    await settle(60);
    const left = () => volumeOf(context)?.metadata.finalizers;
    if (deleted) await waitFor(() => left()?.length === 1, { what: "the finalizer to go" });
    assert.deepEqual([left(), existsSync(path)], deleted ? [["x"], false] : [finalizers, true]);
    assert.ok(context.client.writes.every(({ verb }) => verb !== "delete"));
  });
}

test("a volume whose reclaiming failed stays Failed when its policy has become Retain", async (t) => {
  const context = newTestContext(t);
  const failed = aVolume("a", { claimRef, persistentVolumeReclaimPolicy: "Retain" });
  context.client.put(persistentVolumes, { ...failed, status: { phase: "Failed", message: "no plugin" } });
  await context.run(newPersistentVolumeBinder(context.ctx));
  await context.clock.advance(resyncMs);
  assert.deepEqual(volumeOf(context)?.status, { phase: "Failed", message: "no plugin" });
});

test("a volume is emptied though pods use a claim of the same name that was made since", async (t) => {
  const context = newTestContext(t);
  const again = aClaim({ storageClassName: "none" });
  context.client.put(persistentVolumeClaims, { ...again, metadata: { ...again.metadata, uid: "second" } });
  context.client.put(pods, aPod({ name: "web", nodeName: "n", spec: user }));
  context.client.put(persistentVolumes, {
    ...aVolume("a", { claimRef, persistentVolumeReclaimPolicy: "Recycle" }),
    status: { phase: "Bound" },
  });
  await context.run(newPersistentVolumeBinder(context.ctx));
  assert.ok(context.client.object(pods, "default/recycler-for-a"));
});

test("a back-off doubles up to two minutes, and nothing is started once it has stopped", async () => {
  const clock = newFakeClock();
  const operations = newOperations(clock, discardLogger);
  const waits: number[] = [];
  let tries = 0;
  const start = async (): Promise<number> => {
    operations.start("a", async () => {
      tries++;
      throw new Error("no");
    });
    await settle();
    return tries;
  };
  for (let i = 1; i <= 11; i++) {
    const before = clock.monotonic();
    while ((await start()) < i) await clock.advance(500);
    waits.push((clock.monotonic() - before) / 1000);
  }
  assert.deepEqual(waits, [0, 0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]);
  await clock.advance(600_000);
  assert.equal(await start(), 12);
  await operations.run(AbortSignal.abort(new Error("stopped")));
  await clock.advance(600_000);
  assert.equal(await start(), 12);
});
