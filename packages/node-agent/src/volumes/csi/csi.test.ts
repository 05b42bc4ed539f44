import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, volumeAttachments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { aNodePod } from "../../testing/builders.ts";
import { aVolume, csiBench, driverName, globalMount, isRoot, mountIn, up, volumeId } from "../../testing/csi-bench.ts";

test("a volume waits until the node says that it is in use and attached; then it is staged and published with all that belongs to it", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  const volume = aVolume({
    fsType: "ext4",
    volumeAttributes: { tier: "fast" },
    nodeStageSecretRef: { name: "stage", namespace: "vault" },
    nodePublishSecretRef: { name: "publish", namespace: "vault" },
  });
  volume.spec.mountOptions = ["noatime"];
  await assert.rejects(up(b, aNodePod(), volume), /not attached according to node status/);
  assert.deepEqual(b.csi.inUse(), [volumeId], "the controller knows before anything is mounted");
  assert.deepEqual((b.client.object<Node>(nodes, "n1") as Node).status?.volumesInUse, [volumeId]);
  assert.deepEqual(b.driver.calls, []);
  b.attach();
  b.client.react("get", "volumeattachments", ({ name }) => {
    assert.match(name, /^csi-[0-9a-f]{64}$/);
    return b.client.objects(volumeAttachments)[0];
  });
  const made = await up(b, aNodePod(), volume);
  assert.equal(made.path, join(b.dir, mountIn("uid-1")));
  const [stage, publish] = b.driver.calls;
  const capability = {
    mount: { fsType: "ext4", mountFlags: ["noatime"], volumeMountGroup: "" },
    block: null,
    accessMode: { mode: 1 },
  };
  assert.deepEqual(stage, {
    method: "NodeStageVolume",
    request: {
      volumeId: "handle-1",
      publishContext: { lun: "7" },
      stagingTargetPath: join(b.dir, globalMount),
      volumeCapability: capability,
      secrets: { key: "vault/stage" },
      volumeContext: { tier: "fast" },
    },
  });
  assert.partialDeepStrictEqual(publish, {
    method: "NodePublishVolume",
    request: {
      publishContext: { lun: "7" },
      stagingTargetPath: join(b.dir, globalMount),
      targetPath: made.path,
      volumeCapability: capability,
      readonly: false,
      secrets: { key: "vault/publish" },
      volumeContext: { tier: "fast" },
    },
  });
  assert.deepEqual(JSON.parse(await readFile(join(b.dir, "plugins/kubernetes.io/csi/pv/pv1/vol_data.json"), "utf8")), {
    driverName,
    volumeHandle: "handle-1",
  });
  const kept = JSON.parse(await readFile(join(made.path, "../vol_data.json"), "utf8"));
  assert.partialDeepStrictEqual(kept, { specVolID: "pv1", nodeName: "n1", volumeLifecycleMode: "Persistent" });
  await up(b, aNodePod(), volume);
  assert.equal(b.driver.calls.length, 2, "what is there is not made again");
});

for (const { name, status, want } of [
  { name: "is being taken off", status: { attached: true }, want: /^volume attachment is being deleted$/ },
  { name: "cannot be attached", status: { attached: false, attachError: { message: "no such disk" } }, want: /^no such disk$/ },
]) {
  test(`the error of a volume that ${name} names what it waits for`, async (t) => {
    const b = await csiBench(t);
    await assert.rejects(up(b), /not attached according/);
    b.attach();
    const deletionTimestamp = name.includes("taken off") ? "2030-01-01T00:00:00Z" : undefined;
    b.client.react("get", "volumeattachments", () => ({ metadata: { deletionTimestamp }, status }));
    await assert.rejects(up(b), (err: Error & { step: string }) => {
      assert.match(err.message, want);
      assert.equal(err.step, "MountVolume.WaitForAttach failed");
      return true;
    });
  });
}

test("with --enable-controller-attach-detach=false the agent creates and deletes VolumeAttachments itself", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t, { controllerAttaches: false });
  await assert.rejects(up(b), /attachment timeout for volume handle-1/);
  const [made] = b.client.objects<VolumeAttachment>(volumeAttachments);
  assert.deepEqual(made?.spec, { attacher: driverName, nodeName: "n1", source: { persistentVolumeName: "pv1" } });
  b.client.put(volumeAttachments, { ...made, status: { attached: true, attachmentMetadata: { lun: "1" } } });
  await up(b);
  assert.deepEqual(b.driver.calls[0]?.request.publishContext, { lun: "1" });
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(b.client.objects(volumeAttachments), []);
  assert.deepEqual(await b.mounts(), []);
});

test("two pods share one staged volume, which is unstaged and not in use after the last pod", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const first = await up(b);
  await up(b, aNodePod({}, { uid: "uid-2" }));
  await writeFile(join(first.path, "file"), "shared");
  assert.equal(await readFile(join(b.dir, mountIn("uid-2"), "file"), "utf8"), "shared");
  assert.deepEqual(await b.mounts(), [globalMount, mountIn("uid-1"), mountIn("uid-2")]);
  assert.deepEqual(b.csi.inUse(), [], "such volumes are not attached");
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(await b.mounts(), [globalMount, mountIn("uid-2")]);
  await b.csi.tearDown("uid-2");
  await b.csi.collect();
  assert.deepEqual(await b.mounts(), []);
  assert.deepEqual(await readdir(join(b.dir, "plugins/kubernetes.io/csi/pv")), []);
  assert.equal(await readFile(join(b.driver.volumeDir("handle-1"), "file"), "utf8"), "shared", "what is on it stays");
  assert.deepEqual(
    b.driver.calls.map(({ method }) => method),
    [
      "NodeStageVolume",
      "NodePublishVolume",
      "NodeStageVolume",
      "NodePublishVolume",
      "NodeUnpublishVolume",
      "NodeUnpublishVolume",
      "NodeUnstageVolume",
    ],
  );
});

test("a restarted agent unmounts volumes that the previous process mounted", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await up(b);
  const again = await b.restart();
  b.describe({});
  assert.deepEqual(again.inUse(), [volumeId], "it is in use from the first moment");
  b.describe({ attachRequired: false });
  await again.collect();
  assert.ok((await b.mounts()).includes(globalMount), "a pod has it");
  await again.tearDown("uid-1");
  await again.collect();
  assert.deepEqual(await b.mounts(), []);
  assert.deepEqual(again.inUse(), []);
});

test("a volume stays mounted while its driver is unreachable, and is unmounted once it is back", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const missing = `driver name ${driverName} not found in the list of registered CSI drivers`;
  await b.csi.handler.deregister(driverName);
  await assert.rejects(up(b), (err: Error & { step: string }) => {
    assert.equal(err.message, `kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: ${missing}`);
    assert.equal(err.step, "MountVolume.MountDevice failed");
    return true;
  });
  await b.startDriver();
  await up(b);
  await b.csi.handler.deregister(driverName);
  assert.ok((await up(b)).path.endsWith(mountIn("uid-1")), "what is mounted needs no driver");
  await assert.rejects(
    b.csi.tearDown("uid-1"),
    new RegExp(`UnmountVolume.TearDown failed for volume "pv1" : kubernetes.io/csi: .*${missing}`),
  );
  assert.deepEqual(await b.mounts(), [globalMount, mountIn("uid-1")]);
  await b.startDriver();
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(await b.mounts(), []);
});

test("a definite failure leaves no staged volume; a call of unknown outcome is undone", {
  skip: !isRoot && "needs root",
}, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  b.driver.failures.set("NodeStageVolume", [{ code: 3, details: "no such file system" }]);
  await assert.rejects(up(b), /rpc error: code = InvalidArgument desc = no such file system/);
  assert.deepEqual(await readdir(join(b.dir, "plugins/kubernetes.io/csi/pv")), []);
  b.driver.failures.set("NodePublishVolume", [{ code: 4, details: "slow" }]);
  await assert.rejects(up(b), /code = DeadlineExceeded desc = slow/);
  b.driver.calls.splice(0);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(
    b.driver.calls.map(({ method }) => method),
    ["NodeUnpublishVolume", "NodeUnstageVolume"],
  );
});

test("a failed unstage is retried with back-off", { skip: !isRoot && "needs root" }, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await up(b);
  b.driver.failures.set("NodeUnstageVolume", [{ code: 13, details: "busy" }]);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  await b.csi.collect();
  const unstages = (): number => b.driver.calls.filter(({ method }) => method === "NodeUnstageVolume").length;
  assert.equal(unstages(), 1);
  assert.deepEqual(await b.mounts(), [globalMount]);
  await b.clock.advance(501);
  await b.csi.collect();
  assert.equal(unstages(), 2);
  assert.deepEqual(await b.mounts(), []);
  const plugin = `kubernetes.io/csi:${driverName}`;
  assert.deepEqual(b.operations, [`${plugin} unmount_device failed`, `${plugin} unmount_device succeeded`]);
});
