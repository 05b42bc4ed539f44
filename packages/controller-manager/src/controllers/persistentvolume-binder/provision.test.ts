import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, rmdirSync } from "node:fs";
import { test } from "node:test";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes, storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import {
  betaStorageProvisioner,
  boundByController,
  provisionedBy,
  selectedNode,
  storageProvisioner,
} from "@coxswain/apimachinery/volumes/annotations";
import { defaultConfig, newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aClaim, aStorageClass, aVolume } from "../../testing/volumes.ts";
import { newPersistentVolumeBinder } from "./controller.ts";

const claimOf = ({ client }: TestContext) => client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data");
const withHostPath = { volumes: { ...defaultConfig.volumes, hostPathProvisioner: true } };
const hostPath = { provisioner: "kubernetes.io/host-path" };

/** Runs the binder with a claim of a storage class. */
async function claiming(context: TestContext, storageClass: Partial<StorageClass>, annotations?: Record<string, string>) {
  context.client.put(storageClasses, aStorageClass("fast", storageClass));
  context.client.put(persistentVolumeClaims, aClaim({ storageClassName: "fast" }, annotations));
  await context.run(newPersistentVolumeBinder(context.ctx));
}

for (const { name, provisioner, gates = {}, want } of [
  { name: "the provisioner of the class", provisioner: "disks.example.com", want: "disks.example.com" },
  { name: "the CSI driver that has taken over", provisioner: "kubernetes.io/gce-pd", want: "pd.csi.storage.gke.io" },
]) {
  test(`asks ${name} for a volume`, async (t) => {
    const context = newTestContext(t, {}, gates);
    await claiming(context, { provisioner });
    const { annotations } = claimOf(context)?.metadata ?? {};
    assert.deepEqual([annotations?.[storageProvisioner], annotations?.[betaStorageProvisioner]], [want, want]);
    assert.equal(
      context.events[0],
      `Normal ExternalProvisioning waiting for a volume to be created, either by external provisioner "${want}" or manually created by system administrator`,
    );
  });
}

test("binds what the provisioner made, and says how long it took", async (t) => {
  const context = newTestContext(t);
  await claiming(context, {});
  const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
  context.client.put(persistentVolumes, aVolume("pvc-1", { storageClassName: "fast", claimRef }));
  await settle(30);
  assert.equal(claimOf(context)?.spec.volumeName, "pvc-1");
  assert.match(
    await context.ctx.registry.render(),
    /volume_operation_total_seconds_count\{plugin_name="disks.example.com",operation_name="provision"\} 1\n/,
  );
});

for (const { name, storageClass, want } of [
  {
    name: "a plugin that only the administrator can fill",
    storageClass: { provisioner: "kubernetes.io/no-provisioner" },
    want: "Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner",
  },
  {
    name: "a plugin that cannot make volumes",
    storageClass: { provisioner: "kubernetes.io/nfs" },
    want: "Warning ProvisioningFailed no provisionable volume plugin matched",
  },
  {
    name: "host paths unless they are allowed",
    storageClass: hostPath,
    want: 'Warning ProvisioningFailed Failed to create provisioner: provisioning in volume plugin "kubernetes.io/host-path" is disabled',
  },
  {
    name: "mount options of a folder",
    storageClass: { ...hostPath, mountOptions: ["ro", "soft"] },
    want: 'Warning ProvisioningFailed Mount options are not supported by the provisioner but StorageClass "fast" has mount options [ro soft]',
  },
]) {
  test(`does not provision ${name}`, async (t) => {
    const context = newTestContext(t);
    await claiming(context, storageClass);
    assert.equal(context.events[0], want);
    assert.deepEqual(context.client.objects(persistentVolumes), []);
  });
}

test("says that a claim's class is not there", async (t) => {
  const { client, ctx, events, run } = newTestContext(t);
  client.put(persistentVolumeClaims, aClaim({ storageClassName: "none" }));
  await run(newPersistentVolumeBinder(ctx));
  assert.deepEqual(events, ['Warning ProvisioningFailed storageclass.storage.k8s.io "none" not found']);
});

test("calls no provisioner where provisioning is off", async (t) => {
  const context = newTestContext(t, { volumes: { ...defaultConfig.volumes, dynamicProvisioning: false } });
  await claiming(context, {});
  assert.deepEqual([context.events, context.client.writes], [[], []]);
});

test("makes folders of this machine, binds them, and deletes them with their claim", async (t) => {
  const context = newTestContext(t, withHostPath);
  await claiming(context, hostPath);
  const volume = () => context.client.object<PersistentVolume>(persistentVolumes, "pvc-data-uid");
  await waitFor(() => claimOf(context)?.status?.phase === "Bound", { what: "the claim to be bound" });
  hasFields(volume(), {
    metadata: { annotations: { [boundByController]: "yes", [provisionedBy]: "kubernetes.io/host-path" } },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "fast",
    },
  });
  assert.equal(
    context.events[0],
    "Normal ProvisioningSucceeded Successfully provisioned volume pvc-data-uid using kubernetes.io/host-path",
  );
  const path = volume()?.spec.hostPath?.path ?? "";
  assert.ok(existsSync(path));
  context.client.remove(persistentVolumeClaims, "default/data");
  await waitFor(() => volume() === undefined, { what: "the volume to be deleted" });
  assert.ok(!existsSync(path));
  const text = await context.ctx.registry.render();
  for (const operation of ["volume_provision", "volume_delete"])
    assert.ok(
      text.includes(
        `storage_operation_duration_seconds_count{volume_plugin="kubernetes.io/host-path",operation_name="${operation}",status="success",migrated="false"} 1\n`,
      ),
      operation,
    );
  await settle(30);
  assert.match(
    await context.ctx.registry.render(),
    /volume_operation_total_seconds_count\{plugin_name="kubernetes.io\/host-path",operation_name="delete"\} 1\n/,
  );
});

test("deletes a folder though its volume's object was deleted before its claim, where that is honoured", async (t) => {
  const context = newTestContext(t, withHostPath, { HonorPVReclaimPolicy: true });
  await claiming(context, hostPath);
  const volume = () => context.client.object<PersistentVolume>(persistentVolumes, "pvc-data-uid");
  await waitFor(() => claimOf(context)?.status?.phase === "Bound", { what: "the claim to be bound" });
  const path = volume()?.spec.hostPath?.path ?? "";
  assert.deepEqual(volume()?.metadata.finalizers, ["kubernetes.io/pv-controller"]);
  await context.client.delete(persistentVolumes, { name: "pvc-data-uid" });
  await settle(30);
  assert.ok(existsSync(path) && volume() !== undefined);
  context.client.remove(persistentVolumeClaims, "default/data");
  await waitFor(() => volume() === undefined, { what: "the volume to go" });
  assert.ok(!existsSync(path));
});

test("lets the scheduler choose again when nothing could be made on the node", async (t) => {
  const context = newTestContext(t, withHostPath);
  const { client, ctx, events, run } = context;
  client.react("get", "nodes", () => ({ metadata: { name: "n" } }));
  client.put(storageClasses, aStorageClass("fast", { ...hostPath, volumeBindingMode: "WaitForFirstConsumer" }));
  client.put(persistentVolumeClaims, aClaim({ storageClassName: "fast", volumeMode: "Block" }, { [selectedNode]: "n" }));
  await run(newPersistentVolumeBinder(ctx));
  assert.equal(claimOf(context)?.metadata.annotations?.[selectedNode], undefined);
  assert.ok(
    events.includes(
      'Warning ProvisioningFailed Failed to provision volume with StorageClass "fast": kubernetes.io/host-path does not support block volume provisioning',
    ),
  );
});

test("deletes the folder again when its volume cannot be saved", async (t) => {
  const context = newTestContext(t, withHostPath);
  const paths: string[] = [];
  context.client.react("create", "persistentvolumes", ({ sent }) => {
    paths.push((sent as PersistentVolume).spec.hostPath?.path ?? "");
    throw internalError(new Error("no space"));
  });
  await claiming(context, hostPath);
  for (let tries = 1; tries <= 5; tries++) {
    await waitFor(() => paths.length === tries, { what: `try ${tries}` });
    await context.clock.advance(10_000);
  }
  await waitFor(() => context.events.some((event) => event.includes("Error creating provisioned PV object")), {
    what: "the event",
  });
  await waitFor(() => !existsSync(paths[0] ?? "/"), { what: "the folder to be gone" });
  assert.deepEqual([new Set(paths).size, paths.length], [1, 5]);
});

test("a volume that was made for a claim has the reclaim policy of its class", async (t) => {
  const context = newTestContext(t, withHostPath);
  await claiming(context, { ...hostPath, reclaimPolicy: "Retain" });
  await waitFor(() => claimOf(context)?.status?.phase === "Bound", { what: "the claim to be bound" });
  const { spec } = context.client.object<PersistentVolume>(persistentVolumes, "pvc-data-uid") as PersistentVolume;
  rmdirSync(spec.hostPath?.path ?? "");
  assert.equal(spec.persistentVolumeReclaimPolicy, "Retain");
});

test("a provisioning that failed is counted, and says why though the chosen node cannot be removed from the claim", async (t) => {
  const context = newTestContext(t, withHostPath);
  const { client, ctx, events, run } = context;
  client.react("get", "nodes", () => ({ metadata: { name: "n" } }));
  client.react("update", "persistentvolumeclaims", ({ sent }) => {
    const { annotations } = (sent as PersistentVolumeClaim).metadata;
    if (annotations?.[storageProvisioner] !== undefined && annotations[selectedNode] === undefined)
      throw internalError(new Error("no space"));
    return undefined;
  });
  client.put(storageClasses, aStorageClass("fast", { ...hostPath, volumeBindingMode: "WaitForFirstConsumer" }));
  client.put(persistentVolumeClaims, aClaim({ storageClassName: "fast", volumeMode: "Block" }, { [selectedNode]: "n" }));
  await run(newPersistentVolumeBinder(ctx));
  assert.equal(claimOf(context)?.metadata.annotations?.[selectedNode], "n");
  assert.ok(
    events.some((event) =>
      event.includes('Failed to provision volume with StorageClass "fast": kubernetes.io/host-path does not'),
    ),
  );
  assert.match(
    await ctx.registry.render(),
    /volume_operation_total_errors\{plugin_name="kubernetes.io\/host-path",operation_name="provision"\} 1\n/,
  );
});

test("a claim made anew under its name does not inherit the back-off of the former", async (t) => {
  const context = newTestContext(t);
  await claiming(context, hostPath);
  const tries = () => context.events.filter((event) => event.includes("Failed to create provisioner")).length;
  assert.equal(tries(), 1);
  context.client.remove(persistentVolumeClaims, "default/data");
  const { metadata, ...claim } = aClaim({ storageClassName: "fast" });
  context.client.put(persistentVolumeClaims, { ...claim, metadata: { ...metadata, uid: "second" } });
  await settle(60);
  assert.equal(tries(), 2);
});

test("says that a folder has to be deleted by hand when it cannot be deleted after its volume was refused", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const context = newTestContext(t, withHostPath);
  const mounted: string[] = [];
  t.after(() => {
    for (const path of mounted) {
      execFileSync("umount", [path]);
      rmdirSync(path);
    }
  });
  context.client.react("create", "persistentvolumes", ({ sent }) => {
    const { path = "" } = (sent as PersistentVolume).spec.hostPath ?? {};
    if (mounted.length === 0) {
      execFileSync("mount", ["--bind", path, path]);
      mounted.push(path);
    }
    throw internalError(new Error("no space"));
  });
  await claiming(context, hostPath);
  const cleanup = () => context.events.find((event) => event.includes("ProvisioningCleanupFailed"));
  await waitFor(
    async () => {
      await context.clock.advance(10_000);
      return cleanup() !== undefined;
    },
    { what: "the event" },
  );
  assert.match(
    cleanup() ?? "",
    /^Warning ProvisioningCleanupFailed Error cleaning provisioned volume for claim default\/data: EBUSY: .*\. Please delete manually\.$/,
  );
  assert.ok(existsSync(mounted[0] ?? ""));
});

test("no folder is made while it is not known whether the volume exists", async (t) => {
  const context = newTestContext(t, withHostPath);
  const { client, clock } = context;
  let isAway = true;
  client.react("get", "persistentvolumes", () => {
    if (isAway) throw internalError(new Error("no"));
    return undefined;
  });
  await claiming(context, hostPath);
  await settle(30);
  assert.deepEqual(client.objects(persistentVolumes), []);
  isAway = false;
  await waitFor(
    async () => {
      await clock.advance(15_000);
      return claimOf(context)?.status?.phase === "Bound";
    },
    { what: "the claim to be bound" },
  );
  const { spec } = client.object<PersistentVolume>(persistentVolumes, "pvc-data-uid") as PersistentVolume;
  rmdirSync(spec.hostPath?.path ?? "");
});

test("a volume for a claim without access modes may be written by one node", async (t) => {
  const context = newTestContext(t, withHostPath);
  const paths: string[] = [];
  const modes: unknown[] = [];
  context.client.react("create", "persistentvolumes", ({ sent }) => {
    const { spec } = sent as PersistentVolume;
    paths.push(spec.hostPath?.path ?? "");
    modes.push(spec.accessModes);
    return undefined;
  });
  context.client.put(storageClasses, aStorageClass("fast", hostPath));
  const claim = aClaim({ storageClassName: "fast" });
  const { accessModes: _, ...spec } = claim.spec;
  context.client.put(persistentVolumeClaims, { ...claim, spec });
  await context.run(newPersistentVolumeBinder(context.ctx));
  await waitFor(() => modes.length > 0, { what: "the volume" });
  rmdirSync(paths[0] ?? "");
  assert.deepEqual(modes, [["ReadWriteOnce"]]);
});
