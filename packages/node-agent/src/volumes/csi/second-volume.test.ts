import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chown, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, volumeAttachments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aNodePod } from "../../testing/builders.ts";
import { aVolume, type CsiBench, csiBench, globalMount, isRoot, mountIn, up, volumeId } from "../../testing/csi-bench.ts";
import { systemMounter } from "../mount.ts";

const rootOnly = { skip: !isRoot && "needs root" };
const second = () => ({ ...aVolume({ volumeHandle: "handle-2" }), metadata: { name: "pv2" } });

test(
  "a volume that cannot be unpublished keeps no other of its pod mounted, and the next try takes the rest",
  rootOnly,
  async (t) => {
    const b = await csiBench(t);
    b.describe({ attachRequired: false });
    await up(b);
    await up(b, aNodePod(), second());
    b.driver.failures.set("NodeUnpublishVolume", [{ code: 14, details: "busy" }]);
    await assert.rejects(b.csi.tearDown("uid-1"), /^Error: UnmountVolume\.TearDown failed for volume "pv\d" : .*busy/);
    const ofPod = async () => (await b.mounts()).filter((path) => path.startsWith("pods/"));
    assert.equal((await ofPod()).length, 1);
    await b.csi.tearDown("uid-1");
    assert.deepEqual(await ofPod(), []);
    const requested = b.driver.calls
      .filter(({ method }) => method === "NodeUnpublishVolume")
      .map(({ request }) => request["volumeId"]);
    assert.deepEqual([...new Set(requested)].toSorted(), ["handle-1", "handle-2"]);
  },
);

test("the end of one pod does not affect another pod's volumes of the same driver", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await up(b);
  await up(b, aNodePod({}, { uid: "uid-2" }));
  await up(b, aNodePod({}, { uid: "uid-2" }), second());
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  const left = await b.mounts();
  assert.ok(!left.includes(mountIn("uid-1")) && left.includes(mountIn("uid-2")), left.join());
  assert.equal(left.filter((path) => path.startsWith("pods/uid-2/")).length, 2);
  assert.ok(!b.driver.calls.some(({ method }) => method === "NodeUnstageVolume"), "both are still used");
});

const methods = (b: CsiBench) => b.driver.calls.splice(0).map(({ method }) => method);

test(
  "a publication that failed for certain is not undone, unless it was published before; undone, it is made again",
  rootOnly,
  async (t) => {
    const b = await csiBench(t);
    b.describe({ attachRequired: false, requiresRepublish: true });
    const refuse = () => b.driver.failures.set("NodePublishVolume", [{ code: 3, details: "no" }]);
    refuse();
    await assert.rejects(up(b), /InvalidArgument/);
    methods(b);
    await b.csi.tearDown("uid-1");
    assert.ok(!methods(b).includes("NodeUnpublishVolume"), "nothing was published");
    await up(b);
    const target = join(b.dir, mountIn("uid-1"));
    await systemMounter.unmount(target); // by somebody else: what the driver keeps of it remains
    await rm(target, { recursive: true });
    refuse();
    await assert.rejects(up(b), /InvalidArgument/);
    methods(b);
    await b.csi.tearDown("uid-1");
    assert.ok(methods(b).includes("NodeUnpublishVolume"));
    b.describe({ attachRequired: false });
    await up(b);
    assert.ok(methods(b).includes("NodePublishVolume"), "what was undone is not there");
    assert.ok((await b.mounts()).includes(mountIn("uid-1")));
  },
);

test("a volume whose pod was removed before the attachment is no longer reported in use", async (t) => {
  const b = await csiBench(t);
  const inUse = () => b.client.object<Node>(nodes, "n1")?.status?.volumesInUse;
  await assert.rejects(up(b), /not attached according to node status/);
  assert.deepEqual(inUse(), [volumeId]);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(inUse(), []);
});

test("an unpublished volume is not unpublished again after a failed stage", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await up(b);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  b.driver.failures.set("NodeStageVolume", [{ code: 3, details: "no" }]);
  await assert.rejects(up(b), /InvalidArgument/);
  methods(b);
  await b.csi.tearDown("uid-1");
  assert.deepEqual(methods(b), []);
});

test("a stage of unknown outcome is undone, also by an agent that starts anew", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  b.driver.failures.set("NodeStageVolume", [{ code: 4, details: "slow" }]);
  await assert.rejects(up(b), /DeadlineExceeded/);
  const again = await b.restart();
  methods(b);
  await again.tearDown("uid-1");
  await again.collect();
  assert.ok(methods(b).includes("NodeUnstageVolume"));
});

test("a volume stays attached while it cannot be unstaged", rootOnly, async (t) => {
  const b = await csiBench(t, { controllerAttaches: false });
  await assert.rejects(up(b), /attachment timeout/);
  const [made] = b.client.objects<VolumeAttachment>(volumeAttachments);
  b.client.put(volumeAttachments, { ...made, status: { attached: true } } as VolumeAttachment);
  await up(b);
  b.driver.failures.set("NodeUnstageVolume", [{ code: 13, details: "busy" }]);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.equal(b.client.objects(volumeAttachments).length, 1);
  await b.clock.advance(501);
  await b.csi.collect();
  assert.deepEqual(b.client.objects(volumeAttachments), []);
});

test(
  "a volume that its driver does not stage is in use from the first moment of an agent that starts anew",
  rootOnly,
  async (t) => {
    const b = await csiBench(t, { capabilities: [] });
    b.describe({ attachRequired: false });
    await up(b);
    const again = await b.restart();
    b.describe({});
    assert.deepEqual(again.inUse(), [volumeId]);
  },
);

test("two pods that mount one volume at the same time are served one after the other", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await Promise.all([up(b), up(b, aNodePod({}, { uid: "uid-2" }))]);
  assert.deepEqual(methods(b), ["NodeStageVolume", "NodePublishVolume", "NodeStageVolume", "NodePublishVolume"]);
});

test("republishing a volume keeps group changes that containers made to its files", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false, requiresRepublish: true, fsGroupPolicy: "File" });
  const pod = aNodePod({ securityContext: { fsGroup: 1234 } });
  const { path } = await up(b, pod);
  assert.equal((await stat(path)).gid, 1234);
  await writeFile(join(path, "own"), "");
  await chown(join(path, "own"), 0, 77);
  await up(b, pod);
  assert.deepEqual(methods(b).filter((method) => method === "NodePublishVolume").length, 2);
  assert.equal((await stat(join(path, "own"))).gid, 77);
});

test("a stage that failed after it had mounted something is undone by the driver", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const staged = join(b.dir, globalMount);
  await mkdir(staged, { recursive: true });
  await systemMounter.mount("tmpfs", staged, { type: "tmpfs" });
  b.driver.failures.set("NodeStageVolume", [{ code: 13, details: "half done" }]);
  await assert.rejects(up(b), /half done/);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(await b.mounts(), []);
});

test("a restarted agent keeps a block volume without pods in use until it is unstaged", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const volume = aVolume();
  volume.spec.volumeMode = "Block";
  await up(b, aNodePod(), volume);
  b.driver.failures.set("NodeUnstageVolume", [{ code: 13, details: "busy" }]);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  const again = await b.restart();
  b.describe({});
  assert.deepEqual(again.inUse(), [volumeId]);
  b.describe({ attachRequired: false });
  await again.collect();
  assert.deepEqual([await b.mounts(), again.inUse()], [[], []]);
});

for (const folder of ["pv/pv9", "volumeDevices/pv9/data"]) {
  test(`the folder ${folder} of a stage that was interrupted before it wrote its data is removed`, async (t) => {
    const b = await csiBench(t);
    const path = join(b.dir, "plugins/kubernetes.io/csi", folder);
    await mkdir(path, { recursive: true });
    await b.csi.collect();
    assert.ok(!existsSync(path));
  });
}

test("a volume is unstaged as soon as its last pod has ended, without waiting for the next check", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await up(b);
  await b.csi.tearDown("uid-1");
  await waitFor(async () => (await b.mounts()).length === 0, { what: "the volume to be unstaged" });
});

test("the attachment of a driver that attaches nothing is not deleted", rootOnly, async (t) => {
  const b = await csiBench(t, { controllerAttaches: false });
  b.describe({ attachRequired: false });
  await up(b);
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(
    b.client.actions.filter(({ resource }) => resource === "volumeattachments"),
    [],
  );
});

test("a volume whose stored data cannot be read does not hide the others from an agent that starts anew", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  await up(b);
  const broken = join(b.dir, "plugins/kubernetes.io/csi/pv/pv0");
  await mkdir(broken, { recursive: true });
  await writeFile(join(broken, "vol_data.json"), "{");
  const again = await b.restart();
  b.describe({});
  assert.deepEqual(again.inUse(), [volumeId]);
});

test(
  "a volume that stays mounted though its driver says otherwise is neither removed from its pod nor from the node",
  rootOnly,
  async (t) => {
    let stuck = "/pods/";
    const unmount = async (path: string): Promise<void> => {
      if (!path.includes(stuck)) await systemMounter.unmount(path);
    };
    const b = await csiBench(t, { mounter: { ...systemMounter, unmount } });
    b.describe({ attachRequired: false });
    await up(b);
    const all = await b.mounts();
    const of = (path: string) => `kubernetes.io/csi: ${join(b.dir, path)} is still mounted`;
    await assert.rejects(b.csi.tearDown("uid-1"), {
      message: `UnmountVolume.TearDown failed for volume "pv1" : ${of(mountIn("uid-1"))}`,
    });
    assert.deepEqual(await b.mounts(), all);
    stuck = "/globalmount";
    await b.csi.tearDown("uid-1");
    await b.csi.collect();
    assert.deepEqual(await b.mounts(), [globalMount]);
    stuck = "nothing";
    await b.clock.advance(60_000);
    await b.csi.collect();
    assert.deepEqual([await b.mounts(), existsSync(join(b.dir, globalMount))], [[], false]);
  },
);

test("a device that cannot be unpublished is reported as one that stays mapped", rootOnly, async (t) => {
  const b = await csiBench(t);
  b.describe({ attachRequired: false });
  const volume = aVolume();
  await up(b, aNodePod(), { ...volume, spec: { ...volume.spec, volumeMode: "Block" } });
  b.driver.failures.set("NodeUnpublishVolume", [{ code: 14, details: "busy" }]);
  await assert.rejects(b.csi.tearDown("uid-1"), /^Error: UnmapVolume\.UnmapPodDevice failed for volume "pv1" : .*busy$/);
  await b.csi.tearDown("uid-1");
});
