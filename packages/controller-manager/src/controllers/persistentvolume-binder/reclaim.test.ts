import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PersistentVolume, PersistentVolumeSpec, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumes, pods, storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { migratedTo } from "@coxswain/apimachinery/volumes/annotations";
import { defaultRecyclerPod } from "../../config/volumes.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aStorageClass, aVolume } from "../../testing/volumes.ts";
import { newPersistentVolumeBinder } from "./controller.ts";
import { deleteFolder } from "./host-path.ts";
import { recyclerPod } from "./recycler.ts";

const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
const resyncMs = 15_000;
const volumeOf = ({ client }: TestContext) => client.object<PersistentVolume>(persistentVolumes, "a");
const recycler = "default/recycler-for-a";

/** Runs the binder with a bound volume whose claim does not exist. */
async function released(context: TestContext, spec: Partial<PersistentVolumeSpec>, annotations?: Record<string, string>) {
  context.client.put(persistentVolumes, { ...aVolume("a", { claimRef, ...spec }, annotations), status: { phase: "Bound" } });
  await context.run(newPersistentVolumeBinder(context.ctx));
}

/** Sets the status of the recycler Pod. */
async function end(context: TestContext, status: Pod["status"]): Promise<void> {
  const pod = context.client.object<Pod>(pods, recycler) as Pod;
  context.client.put(pods, { ...pod, status });
  await settle(30);
}

test("empties a volume by a pod, and it is free again", async (t) => {
  const context = newTestContext(t);
  await released(context, { persistentVolumeReclaimPolicy: "Recycle", capacity: { storage: "3Gi" } });
  assert.equal(volumeOf(context)?.status?.phase, "Released");
  hasFields(context.client.object<Pod>(pods, recycler)?.spec, {
    activeDeadlineSeconds: 90,
    restartPolicy: "Never",
    volumes: [{ name: "vol", hostPath: { path: "/tmp/a" } }],
  });
  await end(context, { phase: "Succeeded" });
  assert.equal(context.client.object(pods, recycler), undefined);
  assert.deepEqual(context.events, ["Normal VolumeRecycled Volume recycled"]);
  assert.equal(volumeOf(context)?.status?.phase, "Available");
});

test("says why a volume could not be emptied, and tries again", async (t) => {
  const context = newTestContext(t);
  await released(context, { persistentVolumeReclaimPolicy: "Recycle" });
  await end(context, { phase: "Failed", message: "no such folder" });
  const message = "Recycle failed: failed to recycle volume: no such folder";
  assert.deepEqual(volumeOf(context)?.status, { phase: "Failed", message });
  assert.deepEqual(context.events, [`Warning VolumeFailedRecycle ${message}`]);
  await context.clock.advance(resyncMs);
  await end(context, { phase: "Succeeded" });
  assert.ok(context.events.includes("Normal VolumeRecycled Volume recycled"));
  assert.deepEqual(volumeOf(context)?.status, { phase: "Available" }, "the message is of the failure");
});

for (const status of [{ phase: "Failed" }, { phase: "Failed", message: "" }])
  test(`a recycler that fails without saying why: ${JSON.stringify(status)}`, async (t) => {
    const context = newTestContext(t);
    await released(context, { persistentVolumeReclaimPolicy: "Recycle" });
    await end(context, status);
    const message = "Recycle failed: failed to recycle volume: pod failed, pod.Status.Message unknown";
    assert.deepEqual(context.events, [`Warning VolumeFailedRecycle ${message}`]);
  });

test("deletes a recycler that is there already, for it may be a forgery", async (t) => {
  const context = newTestContext(t);
  context.client.put(pods, aPod({ name: "recycler-for-a", phase: "Succeeded" }));
  await released(context, { persistentVolumeReclaimPolicy: "Recycle" });
  assert.equal(context.client.object(pods, recycler), undefined);
  assert.deepEqual(context.events, ["Warning VolumeFailedRecycle Recycle failed: old recycler pod found, will retry later"]);
});

test("does not empty a volume that pods still use", async (t) => {
  const context = newTestContext(t);
  const user = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] };
  context.client.put(pods, aPod({ name: "web", nodeName: "n", spec: user }), aPod({ name: "db", nodeName: "n", spec: user }));
  context.client.put(pods, aPod({ name: "ended", nodeName: "n", phase: "Succeeded", spec: user }));
  await released(context, { persistentVolumeReclaimPolicy: "Recycle" });
  assert.equal(context.events[0], "Normal VolumeFailedRecycle Volume is used by pods: default/db,default/web");
  assert.equal(context.client.object(pods, recycler), undefined);
});

for (const { name, spec, annotations, events, fails } of [
  {
    name: "cannot be emptied",
    spec: { persistentVolumeReclaimPolicy: "Recycle", hostPath: undefined, csi: { driver: "x", volumeHandle: "y" } },
    events: ["Warning VolumeFailedRecycle No recycler plugin found for the volume!"],
  },
  {
    name: "no plugin can delete",
    spec: { persistentVolumeReclaimPolicy: "Delete", hostPath: undefined, local: { path: "/mnt" } },
    events: ['Warning VolumeFailedDelete error getting deleter volume plugin for volume "a": no deletable volume plugin matched'],
  },
  {
    name: "has a type that no plugin knows",
    spec: { persistentVolumeReclaimPolicy: "Delete", hostPath: undefined, cephfs: { monitors: [] } },
    events: ['Warning VolumeFailedDelete error getting deleter volume plugin for volume "a": no volume plugin matched'],
  },
  {
    name: "was made as a folder and is none",
    spec: { persistentVolumeReclaimPolicy: "Delete", hostPath: undefined, csi: { driver: "x", volumeHandle: "y" } },
    annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/host-path" },
    events: ['Warning VolumeFailedDelete Failed to create deleter for volume "a": spec.PersistentVolumeSource.HostPath is nil'],
  },
  {
    name: "is no folder below /tmp",
    spec: { persistentVolumeReclaimPolicy: "Delete", hostPath: { path: "/tmp/../srv/data" } },
    events: ["Warning VolumeFailedDelete host_path deleter only supports /tmp/.+ but received provided /tmp/../srv/data"],
    fails: "delete",
  },
  {
    name: "has an unknown policy",
    spec: { persistentVolumeReclaimPolicy: "Burn" },
    events: ["Warning VolumeUnknownReclaimPolicy Volume has unrecognized PersistentVolumeReclaimPolicy"],
  },
  {
    name: "its provisioner deletes",
    spec: { persistentVolumeReclaimPolicy: "Delete" },
    annotations: { "pv.kubernetes.io/provisioned-by": "disks.example.com" },
    events: [],
  },
  {
    name: "a CSI driver has taken over",
    spec: { persistentVolumeReclaimPolicy: "Delete" },
    annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs", [migratedTo]: "ebs.csi.aws.com" },
    events: [],
  },
] as {
  name: string;
  spec: Partial<PersistentVolumeSpec>;
  annotations?: Record<string, string>;
  events: string[];
  fails?: string;
}[]) {
  test(`leaves a released volume that ${name}`, async (t) => {
    const context = newTestContext(t);
    await released(context, spec, annotations);
    await waitFor(() => context.events.length === events.length, { what: "the event" });
    assert.deepEqual(context.events, events);
    assert.equal(volumeOf(context)?.status?.phase, events.length > 0 ? "Failed" : "Released");
    if (fails === undefined) return;
    const page = await context.ctx.registry.render();
    assert.ok(
      page.includes(`volume_operation_total_errors{plugin_name="kubernetes.io/host-path",operation_name="${fails}"} `),
      page,
    );
  });
}

test("gives a recycler a minimum of time, and more for each gibibyte", () => {
  const seconds = (storage: string) =>
    recyclerPod(aVolume("a", { capacity: { storage } }), {
      template: defaultRecyclerPod,
      minimumTimeoutSeconds: 300,
      timeoutIncrementSeconds: 30,
    }).spec.activeDeadlineSeconds;
  assert.deepEqual([seconds("1Gi"), seconds("10Gi"), seconds("20Gi"), seconds("20479Mi")], [300, 300, 600, 570]);
});

test("deletes folders below /tmp only, and through no link that leads out of it", async (t) => {
  const inside = mkdtempSync("/tmp/cox-folder-");
  const outside = mkdtempSync("/var/tmp/cox-folder-");
  t.after(() => {
    for (const path of [inside, outside]) rmSync(path, { recursive: true, force: true });
  });
  mkdirSync(join(inside, "data"));
  writeFileSync(join(inside, "data", "file"), "x");
  writeFileSync(join(outside, "file"), "x");
  symlinkSync(outside, join(inside, "link"));
  await deleteFolder(join(inside, "data"));
  assert.ok(!existsSync(join(inside, "data")));
  await assert.rejects(deleteFolder(join(inside, "link", "file")), /host_path deleter only supports/);
  await assert.rejects(deleteFolder("/tmp/"), /host_path deleter only supports/);
  await assert.rejects(deleteFolder(join(outside, "tmp/x")), /host_path deleter only supports/);
  await deleteFolder(join(inside, "link"));
  await deleteFolder("/tmp/cox-never-there/a");
  assert.ok(existsSync(join(outside, "file")));
});

test("a volume whose recycler still runs when the controller ends has not failed", async (t) => {
  const context = newTestContext(t);
  const stop = new AbortController();
  const binder = newPersistentVolumeBinder(context.ctx);
  const volume = aVolume("a", { claimRef, persistentVolumeReclaimPolicy: "Recycle" });
  context.client.put(persistentVolumes, { ...volume, status: { phase: "Bound" } });
  await context.run({ run: (signal) => binder.run(AbortSignal.any([signal, stop.signal])) });
  assert.ok(context.client.object(pods, recycler));
  stop.abort(new Error("the controller ends"));
  await settle(30);
  assert.deepEqual([volumeOf(context)?.status, context.events], [{ phase: "Released" }, []]);
});

test("the storage of a volume that is deleted itself is left alone, unless the feature gate has it follow the policy", async (t) => {
  for (const HonorPVReclaimPolicy of [false, true]) {
    const context = newTestContext(t, {}, { HonorPVReclaimPolicy });
    const spec = { claimRef, persistentVolumeReclaimPolicy: "Delete" as const, hostPath: { path: "/srv/data" } };
    const { metadata, ...volume } = aVolume("a", spec);
    const deleted = { ...metadata, deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["example.com/hold"] };
    context.client.put(persistentVolumes, { ...volume, metadata: deleted, status: { phase: "Bound" } });
    await context.run(newPersistentVolumeBinder(context.ctx));
    await settle(60);
    assert.equal(volumeOf(context)?.status?.phase, HonorPVReclaimPolicy ? "Failed" : "Released");
    assert.equal(context.events.length, HonorPVReclaimPolicy ? 1 : 0, context.events.join());
  }
});

test("does not empty a volume that a single pod uses", async (t) => {
  const context = newTestContext(t);
  const user = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] };
  context.client.put(pods, aPod({ name: "web", nodeName: "n", spec: user }));
  await released(context, { persistentVolumeReclaimPolicy: "Recycle" });
  assert.equal(context.events[0], "Normal VolumeFailedRecycle Volume is used by pods: default/web");
  assert.equal(context.client.object(pods, recycler), undefined);
});

test("does not empty a volume that was taken out of its claim's hands meanwhile", async (t) => {
  const context = newTestContext(t);
  context.client.react("get", "persistentvolumes", () => ({ ...aVolume("a"), status: { phase: "Available" } }));
  await released(context, { persistentVolumeReclaimPolicy: "Recycle" });
  assert.equal(context.client.object(pods, recycler), undefined);
});

test("does not take another pod of the recycler's name for the recycler", async (t) => {
  const context = newTestContext(t);
  await released(context, { persistentVolumeReclaimPolicy: "Recycle" });
  const pod = context.client.object<Pod>(pods, recycler) as Pod;
  context.client.endWatches();
  context.client.remove(pods, recycler);
  context.client.put(pods, { ...pod, metadata: { ...pod.metadata, uid: "another" }, status: { phase: "Succeeded" } });
  await settle(30);
  assert.ok(!context.events.includes("Normal VolumeRecycled Volume recycled"), context.events.join());
  assert.equal(volumeOf(context)?.status?.phase, "Failed");
});

test("a volume that could not be reclaimed stays Failed while that is tried again", async (t) => {
  const context = newTestContext(t);
  const csi = { hostPath: undefined, csi: { driver: "x", volumeHandle: "y" } } as unknown as Partial<PersistentVolumeSpec>;
  await released(context, { persistentVolumeReclaimPolicy: "Recycle", ...csi });
  assert.equal(volumeOf(context)?.status?.phase, "Failed");
  context.client.clearActions();
  await context.clock.advance(resyncMs);
  await settle(30);
  assert.ok(context.client.actions.some(({ verb, resource }) => verb === "get" && resource === "persistentvolumes"));
  assert.deepEqual(context.client.writes, []);
});

for (const policy of ["Recycle", "Delete"])
  test(`with the policy ${policy} a volume made anew under its name does not inherit the back-off of the former`, async (t) => {
    const context = newTestContext(t);
    context.client.react("get", "persistentvolumes", () => {
      throw serviceUnavailable("away");
    });
    const tries = () =>
      context.client.actions.filter(({ verb, resource }) => verb === "get" && resource === "persistentvolumes").length;
    await released(context, { persistentVolumeReclaimPolicy: policy });
    assert.equal(tries(), 1);
    context.client.remove(persistentVolumes, "a");
    const volume = aVolume("a", { claimRef, persistentVolumeReclaimPolicy: policy });
    context.client.put(persistentVolumes, { ...volume, metadata: { name: "a", uid: "second" }, status: { phase: "Bound" } });
    await settle(30);
    assert.equal(tries(), 2);
  });

test("the deletion by an external provisioner is measured under its name", async (t) => {
  const context = newTestContext(t);
  context.client.put(storageClasses, aStorageClass("fast"));
  const spec = { persistentVolumeReclaimPolicy: "Delete", storageClassName: "fast" };
  await released(context, spec, { "pv.kubernetes.io/provisioned-by": "disks.example.com" });
  await context.clock.advance(2000);
  context.client.remove(persistentVolumes, "a");
  await settle(30);
  assert.match(
    await context.ctx.registry.render(),
    /volume_operation_total_seconds_sum\{plugin_name="disks.example.com",operation_name="delete"\} 2\n/,
  );
});

test("a folder that cannot be looked up is not taken for deleted", async (t) => {
  const folder = mkdtempSync("/tmp/cox-folder-");
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "file"), "x");
  await assert.rejects(deleteFolder(join(folder, "file", "a", "b")), { code: "ENOTDIR" });
});
