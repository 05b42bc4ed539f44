import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import type { Node, PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { csiNodes, nodes, persistentVolumeClaims, volumeAttachments } from "@coxswain/apimachinery/schema/kinds/resources";
import type { CSIDriver, CSIDriverSpec, CSINode, VolumeAttachment } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newPluginRegistry, type PluginRegistry } from "../../plugins/plugin-registry.ts";
import type { NodePod } from "../../pods/pod.ts";
import { noObjects } from "../../sources/api-objects.ts";
import type { PodObjects } from "../../sources/pod-objects.ts";
import { aNodePod } from "../../testing/builders.ts";
import { startCsiDriver, type TestDriver, type TestDriverOptions } from "../../testing/csi-driver.ts";
import { systemMounter } from "../mount.ts";
import type { SetUpVolume } from "../volume.ts";
import { type Csi, newCsi } from "./csi.ts";

const driverName = "disk.example.com";
const isRoot = process.getuid?.() === 0;
const volumeId = `kubernetes.io/csi/${driverName}^handle-1`;

interface Bench {
  dir: string;
  csi: Csi;
  client: ReturnType<typeof newFakeClient>;
  events: string[];
  driver: TestDriver;
  clock: ReturnType<typeof newFakeClock>;
  /** What the cluster says of the driver. */
  describe(spec: Partial<CSIDriverSpec> | undefined): void;
  /** The controller's part: the volume is attached, and node and attachment say so. */
  attach(): void;
  startDriver(options?: Partial<TestDriverOptions>): Promise<TestDriver>;
  /** A new agent over the same disk. */
  restart(): Promise<Csi>;
  mounts(): Promise<string[]>;
}

const objects: PodObjects = {
  ...noObjects,
  secret: async (namespace, name) => {
    if (name === "missing") return noObjects.secret(namespace, name);
    return { metadata: { name }, data: { key: Buffer.from(`${namespace}/${name}`).toString("base64") } };
  },
  serviceAccountToken: async ({ serviceAccount, audience }) => ({
    token: `${serviceAccount} for ${audience}`,
    expirationTimestamp: "2030-01-01T00:00:00Z",
  }),
};

/** A node with one driver that has registered, over a fake API server and real mounts. */
async function bench(
  t: TestContext,
  { controllerAttaches = true, ...options }: Partial<TestDriverOptions> & { controllerAttaches?: boolean } = {},
): Promise<Bench> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "cox-csi-")));
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.put(nodes, { apiVersion: "v1", kind: "Node", metadata: { name: "n1", uid: "node-uid" }, spec: {}, status: {} } as Node);
  const events: string[] = [];
  let described: CSIDriver | undefined;
  const running: { csi?: Csi; driver?: TestDriver; registry?: PluginRegistry } = {};
  const registryDir = join(dir, "plugins_registry");
  const registryOf = (csi: Csi): PluginRegistry =>
    newPluginRegistry({ dir: registryDir, handlers: { CSIPlugin: csi.handler }, clock, log: discardLogger });
  const newAgent = (): Csi => {
    running.csi?.close();
    running.csi = newCsi({
      client,
      csiDrivers: { synced: true, lister: { get: () => described } } as unknown as Parameters<typeof newCsi>[0]["csiDrivers"],
      recorder: {
        event: (ref: { kind: string }, _: string, reason: string) => void events.push(`${ref.kind} ${reason}`),
      } as unknown as EventRecorder,
      tellPod: (_pod, _container, _type, reason, message) => void events.push(`${reason}: ${message}`),
      node: () => client.object<Node>(nodes, "n1"),
      nodeName: "n1",
      rootDir: dir,
      podsDir: join(dir, "pods"),
      controllerAttaches,
      featureGates: newFeatureGates("kubelet", {}),
      objects,
      mounter: systemMounter,
      clock,
      log: discardLogger,
      onChange() {
        const node = client.object<Node>(nodes, "n1") as Node;
        client.put(nodes, { ...node, status: { ...node.status, volumesInUse: [...(running.csi?.inUse() ?? [])] } });
      },
    });
    running.registry = registryOf(running.csi);
    return running.csi;
  };
  const register = async (): Promise<void> => {
    await running.registry?.reconcile();
    await waitFor(() => running.driver?.verdicts.length, { what: "the agent to answer the registration" });
  };
  t.after(async () => {
    running.csi?.close();
    await running.driver?.stop();
    for (const path of await systemMounter.mountsBelow(dir)) await systemMounter.unmount(path);
    await rm(dir, { recursive: true, force: true });
  });
  const made: Bench = {
    dir,
    client,
    events,
    clock,
    csi: newAgent(),
    driver: undefined as unknown as TestDriver,
    describe: (spec) => {
      const written = { volumeLifecycleModes: ["Persistent", "Ephemeral"], ...spec } as CSIDriverSpec;
      described = spec && { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: driverName }, spec: written };
    },
    attach() {
      const node = client.object<Node>(nodes, "n1") as Node;
      const volumesAttached = [{ name: volumeId, devicePath: "" }];
      client.put(nodes, { ...node, status: { ...node.status, volumesAttached } });
      client.put<VolumeAttachment>(volumeAttachments, {
        apiVersion: "storage.k8s.io/v1",
        kind: "VolumeAttachment",
        metadata: { name: "csi-8e88a5c2f5eaf45a4d0a1e8ebb0a3de6cb8b7b7ee19d0b42e1b1a6ba22d8fe0a" },
        spec: { attacher: driverName, nodeName: "n1", source: { persistentVolumeName: "pv1" } },
        status: { attached: true, attachmentMetadata: { lun: "7" } },
      });
    },
    async startDriver(more = {}) {
      await running.driver?.stop();
      running.driver = await startCsiDriver({ name: driverName, registryDir, dir: join(dir, "driver"), ...options, ...more });
      await register();
      made.driver = running.driver;
      return running.driver;
    },
    async restart() {
      made.csi = newAgent();
      await made.csi.restore();
      running.driver?.verdicts.splice(0);
      await register();
      return made.csi;
    },
    mounts: async () => (await systemMounter.mountsBelow(dir)).map((path) => path.slice(dir.length + 1)).toSorted(),
  };
  await made.startDriver();
  return made;
}

function aVolume(csi: Partial<NonNullable<PersistentVolume["spec"]["csi"]>> = {}): PersistentVolume {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "pv1" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "2Gi" },
      csi: { driver: driverName, volumeHandle: "handle-1", ...csi },
    },
  };
}

const aClaim = (capacity = "2Gi"): PersistentVolumeClaim => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "data", namespace: "default", uid: "claim-uid" },
  spec: { volumeName: "pv1" },
  status: { phase: "Bound", capacity: { storage: capacity } },
});

const mountIn = (uid: string): string => `pods/${uid}/volumes/kubernetes.io~csi/pv1/mount`;
const globalMount = "plugins/kubernetes.io/csi/pv/pv1/globalmount";

async function up({ csi }: { csi: Csi }, pod: NodePod = aNodePod(), volume = aVolume()): Promise<SetUpVolume> {
  const made = await csi.persistent(pod, volume, aClaim(), false);
  assert.ok(made);
  return made;
}

test("a driver that registers is in the node's CSINode and annotations, and leaves both when its socket goes", async (t) => {
  const { client, csi, driver } = await bench(t, { maxVolumes: 12, topology: { "example.com/zone": "a" } });
  const stop = new AbortController();
  await csi.start(stop.signal);
  assert.equal(csi.problem(), undefined);
  assert.deepEqual(driver.verdicts, [{ pluginRegistered: true, error: "" }]);
  const csiNode = client.object<CSINode>(csiNodes, "n1");
  const id = "disk.example.com-node";
  assert.deepEqual(csiNode?.spec.drivers, [
    { name: driverName, nodeID: id, topologyKeys: ["example.com/zone"], allocatable: { count: 12 } },
  ]);
  assert.deepEqual(csiNode?.metadata.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "node-uid" }]);
  const { metadata } = client.object<Node>(nodes, "n1") as Node;
  assert.equal(metadata.annotations?.["csi.volume.kubernetes.io/nodeid"], `{"${driverName}":"${id}"}`);
  assert.deepEqual(client.writes.find(({ resource, subresource }) => resource === "nodes" && subresource === "status")?.sent, {
    metadata: {
      annotations: { "csi.volume.kubernetes.io/nodeid": `{"${driverName}":"${id}"}` },
      labels: { "example.com/zone": "a" },
    },
  });

  await csi.handler.deregister(driverName);
  assert.deepEqual(client.object<CSINode>(csiNodes, "n1")?.spec.drivers ?? [], []);
  const after = (client.object<Node>(nodes, "n1") as Node).metadata.annotations ?? {};
  assert.equal(after["csi.volume.kubernetes.io/nodeid"], undefined);
});

for (const { name, versions, want } of [
  { name: "no version", versions: [], want: "Plugin returned an empty list for supported versions" },
  {
    name: "an old version",
    versions: ["0.3.0"],
    want: 'None of the versions specified ["0.3.0"] are supported. err=highest supported version reported by driver is 0.3.0, must be v1.x',
  },
]) {
  test(`a driver with ${name} is told that it is refused`, async (t) => {
    const { driver } = await bench(t, { versions });
    assert.deepEqual(driver.verdicts[0]?.pluginRegistered, false);
    assert.ok(
      driver.verdicts[0]?.error.endsWith(`kubernetes.io/csi: ValidatePlugin for CSI driver "${driverName}" failed. ${want}`),
    );
  });
}

test("the node is not ready before its CSINode is there", async (t) => {
  const { csi, client } = await bench(t);
  assert.equal(csi.problem(), "CSINode is not yet initialized");
  await csi.start(new AbortController().signal);
  assert.equal(csi.problem(), undefined);
  const migrated = client.object<CSINode>(csiNodes, "n1")?.metadata.annotations?.["storage.alpha.kubernetes.io/migrated-plugins"];
  assert.match(migrated ?? "", /kubernetes\.io\/gce-pd/);
});

test("a volume waits until the node says that it is in use and attached; then it is staged and published with all that belongs to it", {
  skip: !isRoot,
}, async (t) => {
  const b = await bench(t);
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
  test(`a volume that ${name} is told as what it waits for`, async (t) => {
    const b = await bench(t);
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

test("with --enable-controller-attach-detach=false the agent asks for volumes to be attached, and taken off, itself", {
  skip: !isRoot,
}, async (t) => {
  const b = await bench(t, { controllerAttaches: false });
  await assert.rejects(up(b), /attachment timeout for volume handle-1/);
  const [made] = b.client.objects<VolumeAttachment>(volumeAttachments);
  assert.deepEqual(made?.spec, { attacher: driverName, nodeName: "n1", source: { persistentVolumeName: "pv1" } });
  b.client.put(volumeAttachments, { ...made, status: { attached: true, attachmentMetadata: { lun: "1" } } } as VolumeAttachment);
  await up(b);
  assert.deepEqual(b.driver.calls[0]?.request.publishContext, { lun: "1" });
  await b.csi.tearDown("uid-1");
  await b.csi.collect();
  assert.deepEqual(b.client.objects(volumeAttachments), []);
  assert.deepEqual(await b.mounts(), []);
});

test("two pods share one staged volume; it is unstaged and no more in use when the last has gone", {
  skip: !isRoot,
}, async (t) => {
  const b = await bench(t);
  b.describe({ attachRequired: false });
  const first = await up(b);
  await up(b, aNodePod({}, { uid: "uid-2" }));
  await writeFile(join(first.path, "file"), "shared");
  assert.equal(await readFile(join(b.dir, mountIn("uid-2"), "file"), "utf8"), "shared");
  assert.deepEqual(await b.mounts(), [globalMount, mountIn("uid-1"), mountIn("uid-2")]);
  assert.deepEqual(b.csi.inUse(), [], "nobody attaches such volumes");
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

test("an agent that starts anew takes away what the one before it has mounted", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
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

test("while the driver is away a volume stays where it is; when it is back everything goes on", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
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

test("what fails for certain leaves nothing; what may still happen is undone", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
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

test("an unstage that fails is tried again after a while", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
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
});

test("an inline volume needs a driver that takes such, is told of its pod, and goes with it", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
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
  await b.csi.tearDown("uid-1");
  assert.deepEqual(await b.mounts(), []);
});

test("a volume without a file system is a device behind a link of its pod, until the pod has gone", {
  skip: !isRoot,
}, async (t) => {
  const b = await bench(t);
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
  assert.deepEqual(await readdir(join(folder, "staging")), []);
});

test("a disk of an in-tree plugin is its driver's, in a claim or in the pod itself", { skip: !isRoot }, async (t) => {
  const b = await bench(t, { name: "pd.csi.storage.gke.io" });
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

test("a driver that asks for it hears of a volume at each look", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
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
  test(`fsGroupPolicy ${policy} with file system "${fsType}" ${want === 0 ? "leaves files alone" : "gives files to the pod's group"}`, {
    skip: !isRoot,
  }, async (t) => {
    const b = await bench(t);
    b.describe({ attachRequired: false, fsGroupPolicy: policy });
    const { path } = await up(b, aNodePod({ securityContext: { fsGroup: 2000 } }), aVolume({ fsType }));
    assert.equal((await stat(path)).gid, want);
  });
}

test("a driver that sees to groups itself is told the pod's", { skip: !isRoot }, async (t) => {
  const b = await bench(t, { capabilities: ["mountGroup", "singleNodeMultiWriter"] });
  b.describe({ attachRequired: false });
  const { path } = await up(b, aNodePod({ securityContext: { fsGroup: 2000 } }), aVolume({ fsType: "ext4" }));
  assert.equal(b.driver.calls.length, 1, "it does not stage");
  assert.partialDeepStrictEqual(b.driver.calls[0]?.request.volumeCapability, {
    mount: { volumeMountGroup: "2000" },
    accessMode: { mode: 7 },
  });
  assert.equal((await stat(path)).gid, 0);
});

test("a secret that is not there is named", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
  b.describe({ attachRequired: false });
  await assert.rejects(
    up(b, aNodePod(), aVolume({ nodePublishSecretRef: { name: "missing", namespace: "vault" } })),
    /fetching NodePublishSecretRef vault\/missing failed: kubernetes\.io\/csi: failed to find the secret missing in the namespace vault with error: /,
  );
});

test("a claim that has grown is told when the driver has grown what is on its volume", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
  b.describe({ attachRequired: false });
  const conditions = [{ type: "FileSystemResizePending", status: "True" }];
  const claim = { ...aClaim("1Gi"), status: { ...aClaim("1Gi").status, conditions } } as PersistentVolumeClaim;
  b.client.put(persistentVolumeClaims, claim);
  const look = (): Promise<unknown> => b.csi.persistent(aNodePod(), aVolume(), claim, false);
  await look();
  const expand = b.driver.calls.find(({ method }) => method === "NodeExpandVolume");
  assert.partialDeepStrictEqual(expand?.request, {
    volumePath: join(b.dir, mountIn("uid-1")),
    stagingTargetPath: join(b.dir, globalMount),
    capacityRange: { requiredBytes: 2 * 1024 ** 3 },
  });
  const { status } = b.client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data") as PersistentVolumeClaim;
  assert.deepEqual([status?.capacity, status?.conditions ?? []], [{ storage: "2Gi" }, []]);
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

test("how full a volume is is what its driver says", { skip: !isRoot }, async (t) => {
  const b = await bench(t);
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
