import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Node, PersistentVolume, Secret, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aNode } from "@coxswain/apimachinery/testing/builders";
import { installFlexDriver, success } from "@coxswain/apimachinery/testing/flex-driver";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { noObjects } from "../../sources/api-objects.ts";
import { aNodePod } from "../../testing/builders.ts";
import type { Mounter } from "../mount.ts";
import { type FlexVolumes, newFlexVolumes } from "./flex.ts";

const noAttach = `echo '{"status":"Success","capabilities":{"attach":false}}'`;

interface Bench {
  readonly podsDir: string;
  /** The Pod's volume directory. */
  readonly dir: string;
  /** The global mount path. */
  readonly mountPath: string;
  readonly flex: FlexVolumes;
  /** A restarted agent on the same node. */
  open(): FlexVolumes;
  requested(): Promise<string[]>;
  /** Driver calls without `init` and options. */
  commands(): Promise<string[]>;
  /** Mount points created by the agent, or added by the test on behalf of a driver. */
  readonly mounted: string[];
  /** Arguments of the mount calls: source, target, options. */
  readonly mounts: unknown[];
  /** Observed operations and their results. */
  readonly operations: string[];
  /** Number of notices that the list of volumes in use has changed. */
  changes: number;
  /** Secrets that were read: namespace and name. */
  readonly secrets: string[];
  install(answers: Readonly<Record<string, string>>): Promise<void>;
  /** Status of the Node object in the API server. */
  status: Node["status"];
  readonly clock: FakeClock;
}

/** A driver directory and a Pod directory. */
async function setUp(
  t: TestContext,
  answers: Readonly<Record<string, string>>,
  { secret, byController = true }: { secret?: Secret; byController?: boolean } = {},
): Promise<Bench> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "cox-flex-")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const driverDir = join(dir, "exec/example.com~disk");
  const install: Bench["install"] = (some) => installFlexDriver(driverDir, "disk", some);
  await install(answers);
  const mounted: string[] = [];
  const mounts: unknown[] = [];
  const operations: string[] = [];
  const secrets: string[] = [];
  const mounter: Mounter = {
    async mount(source, target, options) {
      mounted.push(target);
      mounts.push([source, target, options]);
    },
    unmount: async (target) => void mounted.splice(mounted.indexOf(target), 1),
    mountsBelow: async (prefix) => mounted.filter((path) => path === prefix || path.startsWith(`${prefix}/`)),
  };
  const clock = newFakeClock();
  const open = (): FlexVolumes =>
    newFlexVolumes({
      pluginDir: join(dir, "exec"),
      pluginsDir: join(dir, "plugins"),
      podsDir: join(dir, "pods"),
      nodeName: "n1",
      node: () => ({ ...aNode({ name: "n1" }), status: bench.status ?? {} }),
      byController,
      objects: {
        ...noObjects,
        async secret(namespace, name) {
          secrets.push(`${namespace}/${name}`);
          return secret as Secret;
        },
      },
      mounter,
      clock,
      log: discardLogger,
      onInUseChange() {
        bench.changes++;
      },
      operations: (plugin, operation) => (failure) =>
        void operations.push(`${plugin} ${operation} ${failure === undefined ? "succeeded" : "failed"}`),
    });
  const requested = async (): Promise<string[]> => (await readFile(join(driverDir, "requested"), "utf8")).trimEnd().split("\n");
  const bench: Bench = {
    podsDir: join(dir, "pods"),
    dir: join(dir, "pods/uid1/volumes/example.com~disk/data"),
    mountPath: join(dir, "plugins/kubernetes.io/flexvolume/example.com/disk/mounts/data"),
    flex: open(),
    open,
    requested,
    commands: async () => (await requested()).filter((line) => line !== "init" && !line.startsWith("{")),
    mounted,
    mounts,
    operations,
    changes: 0,
    secrets,
    install,
    status: undefined,
    clock,
  };
  return bench;
}

const pod = aNodePod({ serviceAccountName: "sa" }, { name: "p", namespace: "ns", uid: "uid1" });
const volume = (more: object = {}): Volume => ({ name: "data", flexVolume: { driver: "example.com/disk", ...more } });

test("a driver mounts a volume once, with the pod, the volume's options and its secret as arguments", async (t) => {
  const secret = { type: "example.com/disk", data: { key: "czNjcjN0" } } as unknown as Secret;
  const { dir, flex, requested, mounted } = await setUp(t, { init: noAttach, mount: success }, { secret });
  const made = await flex.inline(
    pod,
    volume({ fsType: "ext4", readOnly: true, secretRef: { name: "s" }, options: { size: "1<2" } }),
  );
  assert.deepEqual([made?.path, made?.readOnly], [dir, true]);
  const [init, mount, target, options = "", ...more] = await requested();
  assert.deepEqual([init, mount, target, more], ["init", "mount", dir, []]);
  assert.deepEqual(JSON.parse(options), {
    "kubernetes.io/fsType": "ext4",
    "kubernetes.io/readwrite": "ro",
    "kubernetes.io/pvOrVolumeName": "data",
    "kubernetes.io/pod.name": "p",
    "kubernetes.io/pod.namespace": "ns",
    "kubernetes.io/pod.uid": "uid1",
    "kubernetes.io/serviceAccount.name": "sa",
    "kubernetes.io/secret/key": "czNjcjN0",
    size: "1<2",
  });
  mounted.push(dir);
  await flex.inline(pod, volume());
  assert.equal((await requested()).length, 4, "what is mounted is left alone");
});

test("a persistent volume is passed by its own name, read-only as its claim says", async (t) => {
  const { flex, requested } = await setUp(t, { init: noAttach, mount: success });
  const source = { metadata: { name: "pv1" }, spec: { flexVolume: { driver: "example.com/disk" } } } as PersistentVolume;
  const made = await flex.persistent(pod, source, true);
  assert.match(made?.path ?? "", /\/pods\/uid1\/volumes\/example\.com~disk\/pv1$/);
  assert.partialDeepStrictEqual(JSON.parse((await requested()).at(-1) ?? ""), {
    "kubernetes.io/pvOrVolumeName": "pv1",
    "kubernetes.io/readwrite": "ro",
  });
});

for (const { name, mount, message } of [
  {
    name: "says that it failed",
    mount: `echo '{"status":"Failure","message":"no disk"}'; exit 1`,
    message: "mount command failed, status: Failure, reason: no disk",
  },
  { name: "fails without saying so", mount: `${success}; exit 3`, message: "exit status 3" },
  { name: "writes what is no JSON", mount: "echo oops >&2", message: "invalid character 'o' looking for beginning of value" },
  { name: "writes nothing", mount: "exit 1", message: "unexpected end of JSON input" },
  { name: "does not know how to mount", mount: `echo '{"status":"Not supported"}'`, message: "Not supported" },
]) {
  test(`a driver that ${name}: the pod gets an event, and no folder is left`, async (t) => {
    const { dir, flex } = await setUp(t, { init: noAttach, mount });
    await assert.rejects(flex.inline(pod, volume()), { message, step: "MountVolume.SetUp failed", volume: "data" });
    assert.deepEqual(await readdir(join(dir, "..")), []);
  });
}

test("volumes of other plugins, and of drivers that are gone, do not prevent unmounting those of a driver", async (t) => {
  const { dir, flex, requested } = await setUp(t, { init: noAttach, mount: success, unmount: success });
  const others = ["kubernetes.io~secret", ...Array.from({ length: 9 }, (_, i) => `${"aemz"[i % 4]}-${i}~gone`)];
  const make = (names: string[]) => Promise.all(names.map((name) => mkdir(join(dir, "../..", name, "v"), { recursive: true })));
  await make(others.slice(0, 5));
  await flex.inline(pod, volume());
  await make(others.slice(5));
  await flex.tearDown("uid1");
  assert.deepEqual((await requested()).slice(-2), ["unmount", dir]);
  assert.deepEqual((await readdir(join(dir, "../.."))).toSorted(), ["example.com~disk", ...others].toSorted());
});

test("a secret of another type is not passed to a driver", async (t) => {
  const secret = { type: "Opaque", data: { key: "eA==" } } as unknown as Secret;
  const { flex, requested } = await setUp(t, { init: noAttach, mount: success }, { secret });
  const message = "couldn't get secret ns/s err: cannot get secret of type example.com/disk";
  await assert.rejects(flex.inline(pod, volume({ secretRef: { name: "s" } })), { message });
  assert.deepEqual(await requested(), ["init"]);
});

test("a restarted agent calls the driver to unmount, or unmounts itself where the driver cannot", async (t) => {
  for (const [unmount, left] of [
    [success, 1],
    [`echo '{"status":"Not supported"}'`, 0],
  ] as const) {
    const { dir, flex, open, requested, mounted } = await setUp(t, { init: noAttach, mount: success, unmount });
    await flex.inline(pod, volume());
    mounted.push(dir);
    await open().tearDown("uid1");
    assert.deepEqual((await requested()).slice(-2), ["unmount", dir]);
    assert.equal(mounted.length, left);
    assert.deepEqual(await readdir(join(dir, "..")), []);
  }
});

test("a driver is found when it is installed, and initialised again when it is replaced", async (t) => {
  const { flex, install } = await setUp(t, { init: "exit 1" });
  assert.equal(await flex.inline(pod, volume()), undefined, "it does not answer");
  await install({ init: noAttach, mount: `echo '{"status":"Failure"}'` });
  await assert.rejects(flex.inline(pod, volume()), /mount command failed/);
  await install({ init: noAttach, mount: success });
  assert.ok(await flex.inline(pod, volume()));
});

for (const driver of ["example.com/none", "../exec/example.com/disk", "example.com~disk", "example.com/..", ""]) {
  test(`the driver name ${JSON.stringify(driver)} is not found`, async (t) => {
    const { flex } = await setUp(t, { init: noAttach, mount: success });
    assert.equal(await flex.inline(pod, volume({ driver })), undefined);
  });
}

const id = "example.com/disk/data";
const isAttached = { volumesInUse: [id], volumesAttached: [{ name: id, devicePath: "/dev/disk1" }] };
const attaches = `echo '{"status":"Success","device":"/dev/disk1"}'`;
const all = {
  init: success,
  getvolumename: success,
  attach: attaches,
  waitforattach: `echo '{"status":"Success","device":"/dev/disk1p1"}'`,
  mountdevice: success,
  mount: success,
  unmount: success,
  unmountdevice: success,
  detach: success,
};

test("a disk that the controller has attached is mounted once for the node, then for the pod", async (t) => {
  const bench = await setUp(t, all);
  bench.status = {};
  const notUsed = "Volume has not been added to the list of VolumesInUse in the node's volume status";
  await assert.rejects(bench.flex.inline(pod, volume()), { name: "Error", message: notUsed });
  assert.deepEqual(bench.flex.inUse(), [id], "so that the node can say that it uses the disk");
  bench.status = { volumesInUse: [id] };
  await assert.rejects(bench.flex.inline(pod, volume()), { message: "Volume not attached according to node status" });
  assert.deepEqual(await bench.commands(), []);
  bench.status = isAttached;
  await bench.flex.inline(pod, volume({ fsType: "xfs", options: { a: "b" } }));
  const commands = ["waitforattach", "/dev/disk1", "getvolumename", "mountdevice", bench.mountPath, "/dev/disk1p1"];
  assert.deepEqual(await bench.commands(), [...commands, "mount", bench.dir]);
  const requested = await bench.requested();
  assert.deepEqual(JSON.parse(requested[requested.indexOf("/dev/disk1p1") + 1] ?? ""), {
    "kubernetes.io/fsType": "xfs",
    "kubernetes.io/readwrite": "rw",
    "kubernetes.io/pvOrVolumeName": "data",
    a: "b",
  });
  bench.mounted.push(bench.mountPath, bench.dir);
  await bench.flex.inline(pod, volume());
  const other = aNodePod({}, { name: "q", namespace: "ns", uid: "uid2" });
  await bench.flex.inline(other, volume());
  assert.deepEqual(
    (await bench.commands()).slice(8),
    ["waitforattach", "/dev/disk1", "getvolumename", "mount", bench.dir.replace("uid1", "uid2")],
    "the other pod's is mounted, and no more",
  );
});

test("a disk is unmounted from the node after the last pod, and reported in use until then", async (t) => {
  const bench = await setUp(t, all);
  bench.status = isAttached;
  for (const uid of ["uid1", "uid2"]) await bench.flex.inline(aNodePod({}, { name: uid, namespace: "ns", uid }), volume());
  bench.mounted.push(bench.mountPath);
  await bench.flex.tearDown("uid1");
  await bench.flex.collect();
  assert.deepEqual(bench.flex.inUse(), [id]);
  await bench.install({ ...all, unmountdevice: `echo '{"status":"Failure"}'` });
  await bench.flex.tearDown("uid2");
  await bench.flex.collect();
  assert.deepEqual(bench.flex.inUse(), [id], "it is mounted still");
  await bench.install(all);
  await bench.flex.collect();
  assert.deepEqual(bench.flex.inUse(), [id], "not tried again at once");
  await bench.clock.advance(500);
  await bench.flex.collect();
  assert.deepEqual(bench.flex.inUse(), []);
  assert.deepEqual((await bench.commands()).slice(-2), ["unmountdevice", bench.mountPath]);
  assert.deepEqual(await readdir(join(bench.mountPath, "..")), []);
});

test("operations that a disk driver does not support are done by the agent: bind mount and unmount", async (t) => {
  const bench = await setUp(t, { init: success });
  bench.status = { ...isAttached, volumesAttached: [{ name: id, devicePath: "" }] };
  await bench.flex.inline(pod, volume());
  assert.deepEqual(bench.mounts, [[bench.mountPath, bench.dir, { type: "auto", options: ["bind"] }]]);
  bench.mounted.push(bench.mountPath);
  await bench.flex.tearDown("uid1");
  await bench.flex.collect();
  assert.deepEqual([bench.mounted, bench.flex.inUse()], [[], []]);
});

test("without the attach-detach controller the agent calls the driver's attach and detach", async (t) => {
  const failing = { ...all, attach: `echo '{"status":"Failure","message":"no slot"}'` };
  const bench = await setUp(t, failing, { byController: false });
  const message = "attach command failed, status: Failure, reason: no slot";
  await assert.rejects(bench.flex.inline(pod, volume()), { step: "AttachVolume.Attach failed", message });
  await bench.install(all);
  await bench.flex.inline(pod, volume());
  assert.deepEqual((await bench.commands()).slice(2, 6), ["attach", "n1", "waitforattach", "/dev/disk1"]);
  await bench.flex.tearDown("uid1");
  await bench.flex.collect();
  assert.deepEqual((await bench.commands()).slice(-3), ["detach", "data", "n1"]);
  const operations = ["volume_attach failed", "volume_attach succeeded", "unmount_device succeeded", "volume_detach succeeded"];
  assert.deepEqual(
    bench.operations,
    operations.map((operation) => `example.com/disk ${operation}`),
  );
});

test("a restarted agent finds volumes in use by their folders, and unmounts them", async (t) => {
  const bench = await setUp(t, all);
  bench.status = isAttached;
  await bench.flex.inline(pod, volume());
  bench.mounted.push(bench.mountPath, bench.dir);
  // Drivers without leftovers, before and after this one in alphabetical order.
  for (const name of ["another", "zoned"]) {
    await installFlexDriver(join(dirname(bench.podsDir), `exec/example.com~${name}`), name, all);
  }
  const next = bench.open();
  await next.restore();
  assert.deepEqual(next.inUse(), [id]);
  const before = bench.changes;
  await next.inline(pod, volume());
  assert.equal(bench.changes, before, "the node is told once of what was found");
  await next.collect();
  assert.deepEqual(next.inUse(), [id], "the pod has it still");
  await next.tearDown("uid1");
  await next.collect();
  assert.deepEqual(next.inUse(), []);
  assert.deepEqual((await bench.commands()).slice(-4), ["unmount", bench.dir, "unmountdevice", bench.mountPath]);
});

test("a driver call that hangs for one disk does not prevent unmounting others", async (t) => {
  const bench = await setUp(t, {
    ...all,
    unmountdevice: `case "$2" in */data) while [ -e "$2" ]; do sleep 0.05; done ;; esac; ${success}`,
  });
  bench.status = isAttached;
  await bench.flex.inline(pod, volume());
  bench.status = { volumesInUse: [`${id}2`], volumesAttached: [{ name: `${id}2`, devicePath: "/dev/disk2" }] };
  await bench.flex.inline(pod, { ...volume(), name: "data2" });
  bench.mounted.push(bench.mountPath);
  await bench.flex.tearDown("uid1");
  const looks = [bench.flex.collect()];
  await waitFor(async () => (await bench.commands()).includes("unmountdevice"));
  await waitFor(() => bench.flex.inUse().length === 1);
  assert.deepEqual(bench.flex.inUse(), [id]);
  looks.push(bench.flex.collect());
  await bench.flex.collect(); // only the volume whose driver hangs is left to release
  await rm(bench.mountPath, { recursive: true });
  await Promise.all(looks);
  assert.deepEqual(bench.flex.inUse(), []);
  assert.equal(
    (await bench.commands()).filter((command) => command === "unmountdevice").length,
    1,
    "it is not initialised again",
  );
});

test("a pod whose volumes cannot be inspected does not count as removed", async (t) => {
  const bench = await setUp(t, all);
  bench.status = isAttached;
  await bench.flex.inline(pod, volume());
  bench.mounted.push(bench.mountPath, bench.dir);
  const next = bench.open();
  await next.restore();
  await rename(bench.podsDir, `${bench.podsDir}.aside`);
  await symlink(bench.podsDir, bench.podsDir);
  await next.collect();
  assert.deepEqual([next.inUse(), bench.mounted], [[id], [bench.mountPath, bench.dir]]);
  await assert.rejects(bench.open().restore(), { code: "ELOOP" });
});

test("a mounted disk is in use though its driver was installed after the agent started", async (t) => {
  const bench = await setUp(t, all);
  bench.status = isAttached;
  await bench.flex.inline(pod, volume());
  bench.mounted.push(bench.mountPath, bench.dir);
  await bench.install({ init: "exit 1" });
  const next = bench.open();
  await next.restore();
  assert.deepEqual(next.inUse(), []);
  await bench.install(all);
  await next.inline(pod, volume());
  assert.deepEqual(next.inUse(), [id]);
});

test("a disk that cannot be detached is in use until a later attempt", async (t) => {
  const bench = await setUp(t, { ...all, detach: `echo '{"status":"Failure"}'` }, { byController: false });
  await bench.flex.inline(pod, volume());
  await bench.flex.tearDown("uid1");
  await bench.flex.collect();
  assert.deepEqual(bench.flex.inUse(), [id]);
  await bench.install(all);
  await bench.clock.advance(500);
  await bench.flex.collect();
  assert.deepEqual([bench.flex.inUse(), (await bench.commands()).slice(-3)], [[], ["detach", "data", "n1"]]);
});

test("a disk that a pod needs while it is being unmounted is in use again afterwards", async (t) => {
  const bench = await setUp(t, { ...all, unmountdevice: `while [ -e "$2" ]; do sleep 0.05; done; ${success}` });
  bench.status = isAttached;
  await bench.flex.inline(pod, volume());
  bench.mounted.push(bench.mountPath);
  await bench.flex.tearDown("uid1");
  const releasing = bench.flex.collect();
  await waitFor(async () => (await bench.commands()).includes("unmountdevice"));
  const mounting = bench.flex.inline(aNodePod({}, { name: "q", namespace: "ns", uid: "uid2" }), volume());
  await rm(bench.mountPath, { recursive: true });
  await Promise.all([releasing, mounting]);
  assert.deepEqual(bench.flex.inUse(), [id]);
});

test("a persistent volume's secret is read in the namespace that it names, else in the pod's", async (t) => {
  const secret = { type: "example.com/disk", data: {} } as unknown as Secret;
  const { flex, secrets } = await setUp(t, { init: noAttach, mount: success }, { secret });
  for (const [name, secretRef] of [
    ["pv1", { name: "s", namespace: "vault" }],
    ["pv2", { name: "s" }],
  ] as const) {
    const spec = { flexVolume: { driver: "example.com/disk", secretRef } };
    await flex.persistent(pod, { metadata: { name }, spec } as PersistentVolume, false);
  }
  assert.deepEqual(secrets, ["vault/s", "ns/s"]);
});

const gid = process.getgid?.() ?? 0;
for (const { name, capabilities = {}, readOnly = false, isOwned } of [
  { name: "that can be written", isOwned: true },
  { name: "that is only read", readOnly: true, isOwned: false },
  { name: "of a driver that does not want it", capabilities: { fsGroup: false }, isOwned: false },
]) {
  test(`fsGroup ${isOwned ? "owns" : "does not own"} the files of a volume ${name}; its driver knows the group`, async (t) => {
    const init = `echo '${JSON.stringify({ status: "Success", capabilities: { attach: false, ...capabilities } })}'`;
    const { dir, flex, requested } = await setUp(t, { init, mount: success });
    const grouped = aNodePod({ securityContext: { fsGroup: gid } }, { name: "p", namespace: "ns", uid: "uid1" });
    await flex.inline(grouped, volume({ readOnly }));
    assert.equal(((await stat(dir)).mode & 0o2020) === 0o2020, isOwned);
    assert.equal(JSON.parse((await requested()).at(-1) ?? "")["kubernetes.io/mounterArgs.FsGroup"], String(gid));
  });
}

test("the usage of a volume is that of its file system, if its driver supports metrics", async (t) => {
  const { flex } = await setUp(t, { init: noAttach, mount: success });
  assert.equal((await flex.inline(pod, volume()))?.measure, undefined);
  const init = `echo '{"status":"Success","capabilities":{"attach":false,"supportsMetrics":true}}'`;
  const measuring = await setUp(t, { init, mount: success });
  const size = await (await measuring.flex.inline(pod, volume()))?.measure?.();
  assert.ok(size !== undefined && size.capacityBytes > 0);
  assert.ok(size.usedBytes <= size.capacityBytes - size.availableBytes, `${size.usedBytes} of ${size.capacityBytes}`);
  assert.equal(size.inodesUsed, size.inodes - size.inodesFree);
});

for (const name of ["..", ".", "", "a/b"]) {
  test(`a volume of the name ${JSON.stringify(name)} is not passed to a driver`, async (t) => {
    const { flex, commands } = await setUp(t, { init: noAttach, mount: success });
    await assert.rejects(flex.inline(pod, { ...volume(), name }), { message: /cannot be the name of a folder/ });
    assert.deepEqual(await commands(), []);
  });
}

test("all volumes of a pod are unmounted, and only mounts of its own", async (t) => {
  const { flex, commands, mounted, podsDir } = await setUp(t, { init: noAttach, mount: success, unmount: success });
  for (const name of ["data", "data2"]) await flex.inline(pod, { ...volume(), name });
  await flex.tearDown("uid1");
  assert.equal((await commands()).filter((command) => command === "unmount").length, 2);
  assert.deepEqual(await readdir(join(podsDir, "uid1/volumes/example.com~disk")), []);
  const unable = await setUp(t, { init: noAttach, mount: success });
  await unable.flex.inline(pod, volume());
  unable.mounted.push("/elsewhere");
  await unable.flex.tearDown("uid1");
  assert.deepEqual([mounted, unable.mounted], [[], ["/elsewhere"]], "what is not mounted is not unmounted");
});

test("a driver that refuses to name a disk does not get to mount it", async (t) => {
  const bench = await setUp(t, { ...all, getvolumename: `echo '{"status":"Failure","message":"which one"}'` });
  bench.status = isAttached;
  await assert.rejects(bench.flex.inline(pod, volume()), {
    step: "MountVolume.MountDevice failed",
    message: "GetVolumeName failed from getDeviceMountPath: getvolumename command failed, status: Failure, reason: which one",
  });
  assert.ok(!(await bench.commands()).includes("mountdevice"));
});

test("the agent itself mounts the disk that the node's status names, for a driver that cannot", async (t) => {
  const bench = await setUp(t, { init: success });
  bench.status = { volumesInUse: [id], volumesAttached: [{ name: id, devicePath: "/dev/cox-no-such-disk" }] };
  await assert.rejects(bench.flex.inline(pod, volume({ readOnly: true })), {
    step: "MountVolume.MountDevice failed",
    message: /disk \/dev\/cox-no-such-disk/,
  });
});

test("without the attach-detach controller a driver may lack attach and detach, too", async (t) => {
  const bench = await setUp(t, { init: success }, { byController: false });
  await bench.flex.inline(pod, volume());
  await bench.flex.tearDown("uid1");
  await bench.flex.collect();
  assert.deepEqual([bench.mounts.length, bench.flex.inUse()], [1, []]);
});

test("a disk that a pod waits for is in use though the pod has no folder yet; the node hears of each change", async (t) => {
  const bench = await setUp(t, all);
  bench.status = { volumesInUse: [id] };
  await assert.rejects(bench.flex.inline(pod, volume()), { message: "Volume not attached according to node status" });
  assert.equal(bench.changes, 1);
  await bench.flex.collect();
  assert.deepEqual([bench.flex.inUse(), bench.changes], [[id], 1]);
  await bench.flex.tearDown("uid1");
  await bench.flex.collect();
  assert.deepEqual([bench.flex.inUse(), bench.changes], [[], 2]);
  assert.deepEqual(await bench.commands(), [], "it was not mounted");
});

test("a restarted agent finds a disk by either of its folders; a volume without a disk is not one in use", async (t) => {
  for (const left of ["dir", "mountPath"] as const) {
    const bench = await setUp(t, all);
    bench.status = isAttached;
    await bench.flex.inline(pod, volume());
    await rm(bench[left === "dir" ? "mountPath" : "dir"], { recursive: true });
    const next = bench.open();
    await next.restore();
    assert.deepEqual(next.inUse(), [id], left);
  }
  const bench = await setUp(t, { init: noAttach, mount: success });
  await bench.flex.inline(pod, volume());
  const next = bench.open();
  await next.restore();
  assert.deepEqual(next.inUse(), []);
});

test("a driver that cannot mount a disk for the node, or unmount it, is asked again; nothing is removed before", async (t) => {
  const fails = `echo '{"status":"Failure","message":"bad disk"}'`;
  const bench = await setUp(t, { ...all, mountdevice: fails });
  bench.status = isAttached;
  const said = (command: string) => `${command} command failed, status: Failure, reason: bad disk`;
  await assert.rejects(bench.flex.inline(pod, volume()), {
    step: "MountVolume.MountDevice failed",
    message: said("mountdevice"),
  });
  assert.ok(!(await bench.commands()).includes("mount"));
  await bench.install({ ...all, unmount: fails });
  await bench.flex.inline(pod, volume());
  await assert.rejects(bench.flex.tearDown("uid1"), { message: new RegExp(said("unmount")) });
  assert.deepEqual(await readdir(join(bench.dir, "..")), ["data"]);
  await bench.install({ ...all, unmountdevice: fails });
  await bench.flex.tearDown("uid1");
  assert.deepEqual(await readdir(join(bench.dir, "..")), []);
  bench.mounted.push(bench.mountPath);
  await bench.flex.collect();
  assert.deepEqual([bench.flex.inUse(), bench.operations.at(-1)], [[id], "example.com/disk unmount_device failed"]);
  await rm(join(bench.podsDir, "../exec"), { recursive: true });
  await bench.clock.advance(60_000);
  await bench.flex.collect();
  assert.deepEqual(bench.flex.inUse(), [id], "there is no driver to call");
  await bench.install(all);
  await bench.clock.advance(60_000);
  await bench.flex.collect();
  assert.deepEqual(bench.flex.inUse(), []);
});
