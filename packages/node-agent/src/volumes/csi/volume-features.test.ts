import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aNodePod } from "../../testing/builders.ts";
import { aClaim, aVolume, csiBench, driverName, globalMount, isRoot, mountIn, up } from "../../testing/csi-bench.ts";

test("an inline volume needs a driver that supports it and gets the pod's data, and is removed with the pod", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  const volume = {
    name: "scratch",
    csi: { driver: driverName, volumeAttributes: { size: "1" }, nodePublishSecretRef: { name: "own" } },
  };
  const pod = aNodePod({ volumes: [volume], serviceAccountName: "robot" });
  const refused = (message: string) => (err: Error & { step: string }) => {
    assert.equal(err.message, message);
    assert.equal(err.step, "MountVolume.NewMounter initialization failed");
    return true;
  };
  const not = `volume mode "Ephemeral" not supported by driver ${driverName}`;
  await assert.rejects(b.csi.inline(pod, volume), refused(`${not} (no CSIDriver object)`));
  b.describe({ volumeLifecycleModes: ["Persistent"] });
  await assert.rejects(b.csi.inline(pod, volume), refused(`${not} (only supports ["Persistent"])`));
  b.describe({ podInfoOnMount: true, tokenRequests: [{ audience: "vault" }] });
  const made = await b.csi.inline(pod, volume);
  assert.equal(made?.path, join(b.dir, "pods/uid-1/volumes/kubernetes.io~csi/scratch/mount"));
  assert.equal(b.driver.calls.length, 1, "nothing is staged");
  const request = b.driver.calls[0]?.request ?? {};
  assert.match(String(request.volumeId), /^csi-[0-9a-f]{64}$/);
  assert.deepEqual(request.secrets, { key: "default/own" });
  assert.deepEqual(request.volumeContext, {
    size: "1",
    "csi.storage.k8s.io/pod.name": "web",
    "csi.storage.k8s.io/pod.namespace": "default",
    "csi.storage.k8s.io/pod.uid": "uid-1",
    "csi.storage.k8s.io/serviceAccount.name": "robot",
    "csi.storage.k8s.io/ephemeral": "true",
    "csi.storage.k8s.io/serviceAccount.tokens": JSON.stringify({
      vault: { token: "robot for vault", expirationTimestamp: "2030-01-01T00:00:00Z" },
    }),
  });
  assert.deepEqual(b.csi.inUse(), []);
  const again = await b.restart();
  assert.deepEqual(again.inUse(), [], "nor by the next agent");
  await again.tearDown("uid-1");
  assert.deepEqual(await b.mounts(), []);
});

test("inline volumes of the same name wait for calls of their own pod, not for those of another one", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const held = Promise.withResolvers<void>();
  const holds = (_: string, { targetPath }: Record<string, unknown>) =>
    String(targetPath).includes("/uid-1/") ? held.promise : undefined;
  const b = await csiBench(t, { holds });
  b.describe({ requiresRepublish: true });
  const volume = { name: "scratch", csi: { driver: driverName } };
  const publish = (uid: string) => b.csi.inline(aNodePod({}, { uid }), volume);
  const published = (uid: string) =>
    b.driver.calls.filter(({ method, request }) => method === "NodePublishVolume" && String(request["targetPath"]).includes(uid));
  const first = publish("uid-1");
  await waitFor(() => published("uid-1").length === 1, { what: "the first call" });
  const again = publish("uid-1");
  const end = b.csi.tearDown("uid-1");
  const other = publish("uid-2");
  await waitFor(() => published("uid-2").length === 1, { what: "the call for the other pod" });
  await other;
  const otherEnd = b.csi.tearDown("uid-2");
  const ended = () => b.driver.calls.some(({ method }) => method === "NodeUnpublishVolume");
  await waitFor(ended, { what: "the end of the other pod" });
  await otherEnd;
  assert.deepEqual(
    b.driver.calls.filter(({ request }) => String(request["targetPath"]).includes("/uid-1/")).map(({ method }) => method),
    ["NodePublishVolume"],
  );
  held.resolve();
  await Promise.all([first, again, end]);
  assert.deepEqual(await b.mounts(), []);
});

test("a volume waits until the CSIDrivers are known, and so does what the node tells of volumes in use", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  b.describe({});
  b.hasDrivers = false;
  const unknown = { message: "CSIDrivers has not been synced yet" };
  await assert.rejects(b.csi.inline(aNodePod(), { name: "scratch", csi: { driver: driverName } }), unknown);
  await assert.rejects(up(b, aNodePod(), aVolume()), unknown);
  assert.deepEqual(b.driver.calls, []);
  b.hasDrivers = true;
  await assert.rejects(up(b, aNodePod(), aVolume()), /not attached according to node status/);
  assert.equal(b.csi.inUse()?.length, 1);
  b.hasDrivers = false;
  assert.equal(b.csi.inUse(), undefined);
  await b.csi.tearDown("uid-1");
});

test("a driver is told that an inline volume is read-only", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t);
  b.describe({ volumeLifecycleModes: ["Ephemeral"] });
  const made = await b.csi.inline(aNodePod(), { name: "scratch", csi: { driver: driverName, readOnly: true } });
  assert.deepEqual([made?.readOnly, b.driver.calls.map(({ request }) => request.readonly)], [true, [true]]);
  await b.csi.tearDown("uid-1");
});

test("inline volumes are none of the agent's without the gate CSIInlineVolume", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t, { gates: { CSIInlineVolume: false } });
  b.describe({});
  assert.equal(await b.csi.inline(aNodePod(), { name: "scratch", csi: { driver: driverName } }), undefined);
});

test("a block volume is a device behind a link in its pod's folder until the pod is removed", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const volume = aVolume();
  volume.spec.volumeMode = "Block";
  b.driver.failures.set("NodePublishVolume", [{ code: 3, details: "not today" }]);
  await assert.rejects(up(b, aNodePod(), volume), (err: Error & { step: string }) => {
    assert.deepEqual(
      [err.message, err.step],
      ["rpc error: code = InvalidArgument desc = not today", "MapVolume.MapPodDevice failed"],
    );
    return true;
  });
  b.driver.calls.splice(0);
  const made = await up(b, aNodePod(), volume);
  const link = join(b.dir, "pods/uid-1/volumeDevices/kubernetes.io~csi/pv1");
  assert.deepEqual([made.path, made.device], [link, true]);
  assert.ok((await stat(link)).isCharacterDevice(), "the link leads to the device");
  await up(b, aNodePod(), volume);
  const [stage, publish] = b.driver.calls;
  const folder = join(b.dir, "plugins/kubernetes.io/csi/volumeDevices");
  assert.partialDeepStrictEqual(stage?.request, {
    stagingTargetPath: join(folder, "staging/pv1"),
    volumeCapability: { block: {}, mount: null },
  });
  assert.equal(publish?.request["targetPath"], join(folder, "publish/pv1/uid-1"));
  const kept = JSON.parse(await readFile(join(folder, "pv1/data/vol_data.json"), "utf8"));
  assert.partialDeepStrictEqual(kept, { specVolID: "pv1", volumeHandle: "handle-1" });
  assert.deepEqual(b.events, [
    `SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv1" volumeMapPath "${dirname(link)}"`,
  ]);
  const again = await b.restart();
  await again.collect();
  assert.equal((await b.mounts()).length, 2, "a pod has it");
  await again.tearDown("uid-1");
  await again.collect();
  assert.deepEqual(await b.mounts(), []);
  assert.deepEqual(await readdir(folder), ["publish", "staging"]);
  for (const rest of ["publish", "staging"]) assert.deepEqual(await readdir(join(folder, rest)), [], rest);
});

test("a disk of a migrated in-tree plugin is mounted by its CSI driver, from a claim or inline", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t, { name: "pd.csi.storage.gke.io" });
  b.describe({ attachRequired: false });
  const stored = aVolume();
  const { csi: _, ...spec } = stored.spec;
  await up(b, aNodePod(), { ...stored, spec: { ...spec, gcePersistentDisk: { pdName: "own", fsType: "ext4" } } });
  const made = await b.csi.inline(aNodePod({}, { uid: "uid-2" }), { name: "disk", gcePersistentDisk: { pdName: "other" } });
  const handle = (disk: string): string => `projects/UNSPECIFIED/zones/UNSPECIFIED/disks/${disk}`;
  assert.deepEqual(
    b.driver.calls.filter(({ method }) => method === "NodeStageVolume").map(({ request }) => request["volumeId"]),
    [handle("own"), handle("other")],
  );
  assert.ok(made?.path.endsWith(`/pd.csi.storage.gke.io-${handle("other").replaceAll("/", "~")}/mount`));
  for (const uid of ["uid-1", "uid-2"]) await b.csi.tearDown(uid);
  await b.csi.collect();
  assert.deepEqual(await b.mounts(), []);
});

for (const csiMigrationRBD of [true, false]) {
  const whose = csiMigrationRBD ? "its driver's, with the pod's secret" : "no driver's";
  test(`csiMigrationRBD=${csiMigrationRBD}: an image of Ceph in a pod is ${whose}`, {
    skip: !isRoot && "needs root",
  }, async (t) => {
    const b = await csiBench(t, { name: "rbd.csi.ceph.com", gates: { csiMigrationRBD } });
    b.describe({ attachRequired: false });
    const rbd = { monitors: ["10.0.0.1"], image: "i", pool: "p", secretRef: { name: "ceph" } };
    const made = await b.csi.inline(aNodePod(), { name: "disk", rbd });
    const staged = b.driver.calls.find(({ method }) => method === "NodeStageVolume")?.request;
    if (!csiMigrationRBD) return assert.deepEqual([made, staged], [undefined, undefined]);
    assert.ok(made?.path.endsWith("/rbd.csi.ceph.com-i/mount"));
    assert.partialDeepStrictEqual(staged, {
      volumeId: "i",
      secrets: { key: "default/ceph" },
      volumeContext: { pool: "p", imageFeatures: "layering" },
    });
    await b.csi.tearDown("uid-1");
    await b.csi.collect();
  });
}

test("a driver without requiresRepublish gets it once", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t);
  for (const more of [{ requiresRepublish: false }, {}]) {
    b.describe({ attachRequired: false, ...more });
    await up(b);
  }
  assert.equal(b.driver.calls.filter(({ method }) => method === "NodePublishVolume").length, 1);
});

test("a driver with requiresRepublish gets NodePublishVolume at each sync", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false, requiresRepublish: true });
  await up(b);
  await up(b);
  assert.equal(b.driver.calls.filter(({ method }) => method === "NodePublishVolume").length, 2);
  b.driver.failures.set("NodePublishVolume", [{ code: 3, details: "no" }]);
  await assert.rejects(up(b), /desc = no/);
  assert.ok((await b.mounts()).includes(mountIn("uid-1")), "what is in use stays");
});

for (const { policy, fsType, want } of [
  { policy: "ReadWriteOnceWithFSType", fsType: "ext4", want: 2000 },
  { policy: "ReadWriteOnceWithFSType", fsType: "", want: 0 },
  { policy: "File", fsType: "", want: 2000 },
  { policy: "None", fsType: "ext4", want: 0 },
] as const) {
  test(`fsGroupPolicy ${policy} with file system "${fsType}" ${want === 0 ? "does not change files" : "gives files to the pod's group"}`, {
    skip: !isRoot && "needs root",
  }, async (t) => {
    const b = await csiBench(t);
    b.describe({ attachRequired: false, fsGroupPolicy: policy });
    const { path } = await up(b, aNodePod({ securityContext: { fsGroup: 2000 } }), aVolume({ fsType }));
    assert.equal((await stat(path)).gid, want);
  });
}

for (const fsGroup of [2000, 0]) {
  test(`a driver with VOLUME_MOUNT_GROUP gets the pod's group ${fsGroup}, and the first of the volume's access modes`, {
    skip: !isRoot && "needs root",
  }, async (t) => {
    const b = await csiBench(t, { capabilities: ["mountGroup", "singleNodeMultiWriter"] });
    b.describe({ attachRequired: false });
    const volume = aVolume({ fsType: "ext4" });
    volume.spec.accessModes = ["ReadWriteOnce", "ReadOnlyMany"];
    const { path } = await up(b, aNodePod({ securityContext: { fsGroup } }), volume);
    assert.equal(b.driver.calls.length, 1, "it does not stage");
    assert.partialDeepStrictEqual(b.driver.calls[0]?.request.volumeCapability, {
      mount: { volumeMountGroup: String(fsGroup) },
      accessMode: { mode: 7 },
    });
    assert.equal((await stat(path)).gid, 0);
  });
}

test("a missing secret is named in the error", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await assert.rejects(
    up(b, aNodePod(), aVolume({ nodePublishSecretRef: { name: "missing", namespace: "vault" } })),
    /fetching NodePublishSecretRef vault\/missing failed: kubernetes\.io\/csi: failed to find the secret missing in the namespace vault with error: /,
  );
});

test("a claim's status shows its new size once the driver has expanded the file system", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const conditions = ["Resizing", "FileSystemResizePending", "Other"].map((type) => ({ type, status: "True" }));
  const claim = { ...aClaim("1Gi"), status: { ...aClaim("1Gi").status, conditions } } as PersistentVolumeClaim;
  b.client.put(persistentVolumeClaims, claim);
  const look = (uid = "uid-1"): Promise<unknown> => b.csi.persistent(aNodePod({}, { uid }), aVolume(), claim, false);
  b.driver.failures.set("NodeExpandVolume", [{ code: 13, details: "bad block" }]);
  await assert.rejects(look("uid-2"), {
    step: "MountVolume.Setup failed while expanding volume",
    volume: "pv1",
    message: "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = bad block",
  });
  b.driver.calls.splice(0);
  await look();
  const expand = b.driver.calls.find(({ method }) => method === "NodeExpandVolume");
  assert.partialDeepStrictEqual(expand?.request, {
    volumePath: join(b.dir, mountIn("uid-1")),
    stagingTargetPath: join(b.dir, globalMount),
    capacityRange: { requiredBytes: 2 * 1024 ** 3 },
  });
  const { status } = b.client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data") as PersistentVolumeClaim;
  assert.deepEqual([status?.capacity, status?.conditions], [{ storage: "2Gi" }, [{ type: "Other", status: "True" }]]);
  assert.deepEqual(b.events, [
    'FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv1" n1',
    "PersistentVolumeClaim FileSystemResizeSuccessful",
  ]);
  b.client.put(persistentVolumeClaims, claim);
  b.events.splice(0);
  b.driver.failures.set("NodeExpandVolume", [{ code: 13, details: "bad block" }]);
  await look();
  assert.deepEqual(b.events, [
    'VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume "pv1" : Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = bad block',
  ]);
  assert.equal(b.driver.calls.filter(({ method }) => method === "NodeExpandVolume").length, 2);
});

test("a read-only claim is not expanded on its node, and one event says so", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const claim = aClaim("1Gi");
  b.client.put(persistentVolumeClaims, claim);
  for (let look = 0; look < 2; look++) await b.csi.persistent(aNodePod(), aVolume(), claim, true);
  assert.deepEqual(b.events, [
    'FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume "pv1" requested read-only file system',
    "PersistentVolumeClaim FileSystemResizeFailed",
  ]);
  assert.equal(b.driver.calls.filter(({ method }) => method === "NodeExpandVolume").length, 0);
});

for (const { said, answer, want } of [
  { said: { resizeStatus: "NodeExpansionPending" }, want: { grown: true, calls: 1, says: "" } },
  { said: { resizeStatus: "NodeExpansionInProgress" }, want: { grown: true, calls: 1, says: "" } },
  { said: { allocatedResources: { storage: "2Gi" } }, want: { grown: true, calls: 1, says: "" } },
  { said: {}, want: { grown: true, calls: 1, says: "" } },
  { said: { resizeStatus: "NodeExpansionFailed" }, want: { grown: false, calls: 0, says: "NodeExpansionFailed" } },
  { said: { resizeStatus: "ControllerExpansionFailed" }, want: { grown: false, calls: 0, says: "ControllerExpansionFailed" } },
  { said: { resizeStatus: "NodeExpansionPending" }, answer: 13, want: { grown: false, calls: 1, says: "NodeExpansionFailed" } },
  { said: { resizeStatus: "NodeExpansionPending" }, answer: 9, want: { grown: false, calls: 1, says: "NodeExpansionFailed" } },
  // Unavailable is not final: the outcome is unknown, so the status stays "in progress".
  {
    said: { resizeStatus: "NodeExpansionPending" },
    answer: 14,
    want: { grown: false, calls: 1, says: "NodeExpansionInProgress" },
  },
  { said: {}, answer: 13, want: { grown: false, calls: 1, says: undefined } },
]) {
  const about = `says ${JSON.stringify(said)}${answer === undefined ? "" : ` and whose driver answers with code ${answer}`}`;
  test(`RecoverVolumeExpansionFailure: a claim that ${about} ${want.grown ? "grows" : "does not grow"}`, {
    skip: !isRoot && "needs root",
  }, async (t) => {
    let during: string | undefined;
    const b = await csiBench(t, {
      gates: { RecoverVolumeExpansionFailure: true },
      onCall(method) {
        if (method === "NodeExpandVolume") during = stored()?.resizeStatus;
      },
    });
    b.describe({ attachRequired: false });
    const claim = { ...aClaim("1Gi"), status: { ...aClaim("1Gi").status, ...said } } as PersistentVolumeClaim;
    const stored = (): PersistentVolumeClaim["status"] =>
      b.client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data")?.status;
    b.client.put(persistentVolumeClaims, claim);
    await b.csi.persistent(aNodePod(), aVolume(), { ...claim, status: aClaim("2Gi").status }, false);
    if (answer !== undefined) b.driver.failures.set("NodeExpandVolume", [{ code: answer, details: "no" }]);
    await b.csi.persistent(aNodePod(), aVolume(), claim, false);
    const calls = b.driver.calls.filter(({ method }) => method === "NodeExpandVolume").length;
    const grown = stored()?.capacity?.["storage"] === "2Gi";
    assert.deepEqual({ grown, calls, says: stored()?.resizeStatus }, want);
    const tracked = Object.keys(said).length > 0 && calls > 0;
    assert.equal(during, tracked ? "NodeExpansionInProgress" : undefined);
  });
}

test("a volume's usage is what its driver reports", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  assert.deepEqual(await (await up(b)).measure?.(), {
    capacityBytes: 1000,
    usedBytes: 300,
    availableBytes: 700,
    inodes: 10,
    inodesUsed: 3,
    inodesFree: 7,
  });
  await b.csi.tearDown("uid-1");
  await b.startDriver({ capabilities: [] });
  assert.equal(await (await up(b)).measure?.(), undefined, "a driver need not say");
});

test("a volume of which its driver reports no usage cannot be measured, one of a part of it has zeros", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t, { usage: [] });
  b.describe({ attachRequired: false });
  const measuring = (await up(b)).measure?.();
  await assert.rejects(async () => measuring, { message: "failed to get usage from response. usage is nil" });
  await b.csi.tearDown("uid-1");
  await b.startDriver({ usage: [{ unit: 1, total: 1000, used: 300, available: 700 }] });
  const none = { inodes: 0, inodesUsed: 0, inodesFree: 0 };
  assert.deepEqual(await (await up(b)).measure?.(), { capacityBytes: 1000, usedBytes: 300, availableBytes: 700, ...none });
});

const sick = { abnormal: true, message: "the disk is gone" };
for (const { on, capabilities, condition, want } of [
  { on: true, capabilities: ["volumeStats", "condition"], condition: sick, want: "the disk is gone" },
  { on: true, capabilities: ["volumeStats", "condition"], condition: { ...sick, message: "" }, want: "" },
  { on: true, capabilities: ["volumeStats", "condition"], condition: { ...sick, abnormal: false }, want: undefined },
  { on: true, capabilities: ["volumeStats", "condition"], condition: undefined, want: undefined },
  { on: true, capabilities: ["volumeStats"], condition: sick, want: undefined },
  { on: false, capabilities: ["volumeStats", "condition"], condition: sick, want: undefined },
] as const) {
  const driver = `${capabilities.join(" and ")} that says ${JSON.stringify(condition)}`;
  test(`CSIVolumeHealth=${on}: a volume of a driver with ${driver} is ${want === undefined ? "not " : ""}abnormal`, {
    skip: !isRoot && "needs root",
  }, async (t) => {
    const b = await csiBench(t, { gates: { CSIVolumeHealth: on }, capabilities, ...(condition && { condition }) });
    b.describe({ attachRequired: false });
    const measured = await (await up(b)).measure?.();
    assert.equal(measured?.usedBytes, 300);
    assert.equal(measured?.abnormal, want);
  });
}
