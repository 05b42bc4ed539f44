import assert from "node:assert/strict";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type {
  ConfigMap,
  PersistentVolume,
  PersistentVolumeClaim,
  Volume,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { failingStat, openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import type { PodObjects } from "../pod/pod-objects.ts";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aNodePod, aPodWithVolumes } from "../testing/builders.ts";
import { writeAtomically } from "./atomic-writer.ts";
import type { Csi } from "./csi/csi.ts";
import type { FlexVolumes } from "./flex/flex.ts";
import { checkHostPath } from "./host-path.ts";
import type { Mounter } from "./mount.ts";
import { commonUser, setVolumeOwnership } from "./ownership.ts";
import type { FolderQuotas } from "./quota/folder-quotas.ts";
import { bindSubPath } from "./sub-path.ts";
import { ClaimError, VolumeError } from "./volume.ts";
import { newVolumeManager, type VolumeManagerOptions } from "./volume-manager.ts";

const isRoot = process.getuid?.() === 0;
const rootOnly = { skip: !isRoot && "needs root" };
const downward = {
  nodeName: "n",
  hostIps: ["192.0.2.1"],
  podIps: ["10.0.0.1", "fd00::1"],
  allocatable: { cpu: "4", memory: "8Gi" },
};

async function tempDir(t: TestContext): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "cox-volumes-")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Records mounts and unmounts in order instead of executing them. */
function fakeMounter() {
  const mounted: string[] = [];
  const did: string[] = [];
  const busy = new Set<string>();
  const mounter: Mounter = {
    async mount(_, target) {
      did.push(`mount ${target}`);
      mounted.push(target);
    },
    async unmount(target) {
      did.push(`unmount ${target}`);
      if (busy.has(target)) throw new Error("busy");
      mounted.splice(mounted.lastIndexOf(target), 1);
    },
    mountsBelow: async (prefix) => mounted.filter((path) => path === prefix || path.startsWith(`${prefix}/`)).reverse(),
  };
  return { mounter, mounted, did, busy };
}

/** A volume manager; the test can change the config maps in `stored`. */
async function bench(t: TestContext, more: Partial<VolumeManagerOptions> = {}) {
  const dir = await tempDir(t);
  const stored = new Map<string, ConfigMap["data"]>([["cm", { one: "1", two: "2" }]]);
  const objects: PodObjects = {
    ...noObjects,
    async configMap(_, name) {
      const data = stored.get(name);
      if (data === undefined) throw notFound(configMaps, name);
      return { metadata: { name }, data };
    },
  };
  const fake = fakeMounter();
  const options = { podsDir: dir, objects, mounter: fake.mounter, clock: newFakeClock(), log: discardLogger, ...more };
  return { dir, stored, ...fake, volumes: newVolumeManager(options), another: () => newVolumeManager(options) };
}

const mapVolume = (name: string, map: string): Volume => ({ name, configMap: { name: map } });
const pathOf = (dir: string, plugin: string, name: string): string => join(dir, "uid-1/volumes", plugin, name);

test("a failed volume does not prevent mounting others, and is mounted once its object exists", async (t) => {
  const { volumes, stored } = await bench(t);
  const pod = aPodWithVolumes([mapVolume("a", "late"), mapVolume("b", "cm")]);
  const first = await volumes.setUp(pod, downward);
  assert.deepEqual([[...first.volumes.keys()], first.failures.map(({ volume }) => volume)], [["b"], ["a"]]);
  stored.set("late", { x: "y" });
  const second = await volumes.setUp(pod, downward);
  assert.deepEqual([[...second.volumes.keys()].toSorted(), second.failures], [["a", "b"], []]);
  assert.deepEqual([...volumes.of("uid-1").keys()].toSorted(), ["a", "b"]);
});

test("the next attempt mounts a failed volume from the start, beside one that is mounted", async (t) => {
  const { volumes, mounter, mounted, dir } = await bench(t);
  const mem = (name: string): Volume => ({ name, emptyDir: { medium: "Memory" } });
  const pod = aPodWithVolumes([mem("a"), mem("b")]);
  const { mount } = mounter;
  mounter.mount = async (source, target, ...rest) => {
    if (target.endsWith("/b")) throw new Error("no memory");
    return mount.call(mounter, source, target, ...rest);
  };
  assert.deepEqual([(await volumes.setUp(pod, downward)).failures.length, mounted.length], [1, 1]);
  mounter.mount = mount;
  assert.deepEqual((await volumes.setUp(pod, downward)).failures, []);
  assert.deepEqual(
    mounted,
    ["a", "b"].map((name) => pathOf(dir, "kubernetes.io~empty-dir", name)),
  );
});

test("a pod without a folder has no volumes, and only volumes with API data are refreshed", async (t) => {
  const { volumes, dir } = await bench(t);
  const followed = [
    mapVolume("a", "cm"),
    { name: "a", secret: { secretName: "s" } },
    { name: "a", downwardAPI: { items: [] } },
    { name: "a", projected: { sources: [] } },
  ];
  const refreshed = [...followed, { name: "b", emptyDir: {} }].map((volume) => volumes.isRefreshed(aPodWithVolumes([volume])));
  assert.deepEqual(refreshed, [true, true, true, true, false]);
  assert.equal(await volumes.exists("uid-1"), false);
  await mkdir(join(dir, "uid-1"));
  assert.equal(await volumes.exists("uid-1"), true);
});

test("files follow their object: changed, added and removed keys", async (t) => {
  const { volumes, stored } = await bench(t);
  const pod = aPodWithVolumes([mapVolume("c", "cm")]);
  const at = (await volumes.setUp(pod, downward)).volumes.get("c")?.path ?? "";
  stored.set("cm", { one: "changed", three: "3" });
  await volumes.setUp(pod, downward);
  const seen = (await readdir(at)).filter((name) => !name.startsWith(".."));
  assert.deepEqual([seen.toSorted(), await readFile(join(at, "one"), "utf8")], [["one", "three"], "changed"]);
});

test("a tmpfs is mounted once, also across a restart of the agent", async (t) => {
  const { volumes, another, mounted } = await bench(t);
  const pod = aPodWithVolumes([
    { name: "mem", emptyDir: { medium: "Memory" } },
    { name: "info", downwardAPI: { items: [] } },
  ]);
  await volumes.setUp(pod, downward);
  const before = mounted.toSorted();
  assert.equal(before.length, 2);
  await volumes.setUp(pod, downward);
  await another().setUp(pod, downward);
  assert.deepEqual(mounted.toSorted(), before);
});

test("subPath mounts are unmounted before the mounts of drivers, and these before the others", async (t) => {
  const did: string[] = [];
  const csi = { tearDown: async (uid: string) => void did.push(`driver ${uid}`) } as unknown as Csi;
  const flex = { tearDown: async (uid: string) => void did.push(`flex ${uid}`) } as unknown as FlexVolumes;
  const made = await bench(t, { csi, flex });
  const unmount = made.mounter.unmount;
  made.mounter.unmount = async (target) => {
    did.push(target.slice(made.dir.length + 1));
    await unmount(target);
  };
  for (const name of ["volumes/x/a", "volume-subpaths/a/main/0", "volume-subpaths/a/main/1"])
    made.mounted.push(join(made.dir, "uid-1", name));
  await made.volumes.remove("uid-1");
  assert.deepEqual(did, [
    "uid-1/volume-subpaths/a/main/1",
    "uid-1/volume-subpaths/a/main/0",
    "driver uid-1",
    "flex uid-1",
    "uid-1/volumes/x/a",
  ]);
});

test("a busy mount does not prevent other unmounts, no file is removed, and the next attempt completes", async (t) => {
  const { volumes, mounted, busy, dir } = await bench(t);
  const pod = aPodWithVolumes([
    { name: "a", emptyDir: { medium: "Memory" } },
    { name: "b", emptyDir: { medium: "Memory" } },
  ]);
  await volumes.setUp(pod, downward);
  const stuck = pathOf(dir, "kubernetes.io~empty-dir", "b");
  busy.add(stuck);
  await assert.rejects(volumes.unmount("uid-1"), /1 mounts are left below/);
  assert.deepEqual([mounted, (await stat(stuck)).isDirectory()], [[stuck], true]);
  busy.clear();
  await volumes.unmount("uid-1");
  assert.deepEqual([mounted, await readdir(join(dir, "uid-1"))], [[], []]);
});

test("bind mounts of subPaths are removed with the volumes, other content of the pod's folder stays", async (t) => {
  const { volumes, dir } = await bench(t);
  for (const name of ["volumes/x/a", "volume-subpaths/a/main/0", "containers/main"])
    await mkdir(join(dir, "uid-1", name), { recursive: true });
  await volumes.unmount("uid-1");
  assert.deepEqual(await readdir(join(dir, "uid-1")), ["containers"]);
});

test("a driver that cannot unmount its volumes is an error, and no file of the pod is removed", async (t) => {
  const csi = { tearDown: () => Promise.reject(new Error("driver is away")) } as unknown as Csi;
  const { volumes, dir } = await bench(t, { csi });
  await volumes.setUp(aPodWithVolumes([{ name: "a", emptyDir: {} }]), downward);
  await assert.rejects(volumes.remove("uid-1"), /driver is away/);
  assert.ok((await stat(pathOf(dir, "kubernetes.io~empty-dir", "a"))).isDirectory());
});

test("each emptyDir on disk has a quota until its pod is removed, one in memory has none", async (t) => {
  const did: string[] = [];
  const last = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
  const quotas = {
    assign: async (path: string, limited: boolean) => void did.push(`assign ${last(path)} ${limited}`),
    clear: async (path: string) => void did.push(`clear ${last(path)}`),
  } as unknown as FolderQuotas;
  const { volumes } = await bench(t, { quotas });
  const pod = aPodWithVolumes([
    { name: "a", emptyDir: {} },
    { name: "b", emptyDir: { sizeLimit: "1Mi" } },
    { name: "m", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
  ]);
  await volumes.setUp(pod, downward);
  await volumes.setUp(pod, downward);
  assert.deepEqual(did.splice(0).toSorted(), ["assign a false", "assign b true"]);
  await volumes.unmount("uid-1");
  assert.ok(
    ["clear a", "clear b"].every((one) => did.includes(one)),
    did.join(),
  );
});

test("all failing projected sources are reported, and the previous files stay", async (t) => {
  const { volumes, stored } = await bench(t);
  const sources = ["cm", "x", "y"].map((name) => ({ configMap: { name } }));
  for (const name of ["x", "y"]) stored.set(name, { [name]: name });
  const pod = aPodWithVolumes([{ name: "all", projected: { sources } }]);
  const path = (await volumes.setUp(pod, downward)).volumes.get("all")?.path ?? "";
  for (const name of ["x", "y"]) stored.delete(name);
  const { failures } = await volumes.setUp(pod, downward);
  assert.equal(failures[0]?.message, '[configmaps "x" not found, configmaps "y" not found]');
  assert.equal(await readFile(join(path, "y"), "utf8"), "y");
});

test("the later of two projected sources with one path wins, and a missing optional key is skipped", async (t) => {
  const { volumes, stored } = await bench(t);
  stored.set("over", { one: "later" });
  const items = ["none", "two"].map((key) => ({ key, path: `sub/${key}` }));
  const sources = [
    { configMap: { name: "cm" } },
    { configMap: { name: "over" } },
    { configMap: { name: "cm", optional: true, items } },
  ];
  const { volumes: made, failures } = await volumes.setUp(aPodWithVolumes([{ name: "all", projected: { sources } }]), downward);
  const path = made.get("all")?.path ?? "";
  assert.deepEqual(
    [failures, await readFile(join(path, "one"), "utf8"), await readdir(join(path, "sub"))],
    [[], "later", ["two"]],
  );
});

const bytes = (text: string) => ({ data: Buffer.from(text), mode: 0o644 });

test("files of an interrupted write are not visible, and are removed by the next write", async (t) => {
  const dir = await tempDir(t);
  await writeAtomically(dir, new Map([["a", bytes("1")]]), 0);
  await mkdir(join(dir, "..2020_01_01_left"));
  await writeFile(join(dir, "..2020_01_01_left/a"), "half");
  await symlink("..2020_01_01_left", join(dir, "..data_tmp"));
  assert.equal(await readFile(join(dir, "a"), "utf8"), "1");
  await writeAtomically(dir, new Map([["a", bytes("2")]]), 1);
  assert.equal(await readFile(join(dir, "a"), "utf8"), "2");
  assert.deepEqual((await readdir(dir)).toSorted(), [await readlink(join(dir, "..data")), "..data", "a"].toSorted());
});

test("a failed write keeps the previous files and leaves no partial ones", async (t) => {
  const dir = await tempDir(t);
  await writeAtomically(dir, new Map([["a", bytes("1")]]), 0);
  const before = (await readdir(dir)).toSorted();
  const clash = new Map([
    ["a", bytes("2")],
    ["a/b", bytes("3")],
  ]);
  for (const now of [1, 2]) await assert.rejects(writeAtomically(dir, clash, now));
  assert.deepEqual([await readFile(join(dir, "a"), "utf8"), (await readdir(dir)).toSorted()], ["1", before]);
});

test("a removed or replaced link is restored though the data is unchanged", async (t) => {
  const dir = await tempDir(t);
  const payload = new Map([
    ["a", bytes("1")],
    ["b", bytes("2")],
  ]);
  await writeAtomically(dir, payload, 0);
  await rm(join(dir, "a"));
  await rm(join(dir, "b"));
  await writeFile(join(dir, "b"), "mine");
  assert.equal(await writeAtomically(dir, payload, 1), true);
  assert.deepEqual([await readlink(join(dir, "a")), await readlink(join(dir, "b"))], ["..data/a", "..data/b"]);
});

test("files of the same names and lengths with other bytes are written again", async (t) => {
  const dir = await tempDir(t);
  await writeAtomically(
    dir,
    new Map([
      ["a", bytes("1")],
      ["sub/b", bytes("2")],
    ]),
    0,
  );
  assert.equal(
    await writeAtomically(
      dir,
      new Map([
        ["a", bytes("1")],
        ["sub/b", bytes("3")],
      ]),
      1,
    ),
    true,
  );
  assert.equal(await readFile(join(dir, "sub/b"), "utf8"), "3");
});

test("a subPath is mounted again when the volume was recreated, and no file descriptor stays open", async (t) => {
  const dir = await tempDir(t);
  const volume = join(dir, "volume");
  await mkdir(join(volume, "x"), { recursive: true });
  const { mounter, did } = fakeMounter();
  const target = join(dir, "bound/0");
  // Nothing is actually mounted, so the target is never the same inode as the volume's subdirectory.
  for (const _ of [1, 2]) assert.equal(await bindSubPath(volume, "x", target, mounter), target);
  assert.deepEqual(did, [`mount ${target}`, `unmount ${target}`, `mount ${target}`]);
  mounter.mount = () => Promise.reject(new Error("no"));
  await assert.rejects(bindSubPath(volume, "x", target, mounter), /^Error: no$/);
  await assert.rejects(bindSubPath(volume, "none", target, mounter), /ENOENT/);
  await failingStat(t);
  await assert.rejects(bindSubPath(volume, "x", target, mounter), /ESTALE/);
  assert.deepEqual(await openFilesBelow(dir), []);
});

test(
  "the group of files at every depth is changed, but not that of links' targets outside of the volume",
  rootOnly,
  async (t) => {
    const dir = await tempDir(t);
    const volume = join(dir, "volume");
    await mkdir(join(volume, "a/b"), { recursive: true });
    await writeFile(join(volume, "a/b/deep"), "", { mode: 0o600 });
    await writeFile(join(dir, "outside"), "", { mode: 0o600 });
    await symlink("../outside", join(volume, "link"));
    const pod = aNodePod({ securityContext: { fsGroup: 1234 } });
    const options = { policy: false, plugin: "p", operations: () => () => undefined, log: discardLogger };
    await setVolumeOwnership(volume, pod, { ...options, readOnly: false });
    const deep = await stat(join(volume, "a/b/deep"));
    const outside = await stat(join(dir, "outside"));
    assert.deepEqual([deep.gid, deep.mode & 0o777, outside.gid, outside.mode & 0o777], [1234, 0o660, 0, 0o600]);
    assert.equal((await lstat(join(volume, "link"))).gid, 1234);
    assert.equal((await stat(join(volume, "a"))).mode & 0o7770, 0o2770);
  },
);

test(
  "a volume's own folder is looked at for each thing that has to be right before the walk is left out",
  rootOnly,
  async (t) => {
    const dir = await tempDir(t);
    let walks = 0;
    const operations = () => {
      walks++;
      return () => undefined;
    };
    const own = (fsGroupChangePolicy: string, policy = true) =>
      setVolumeOwnership(dir, aNodePod({ securityContext: { fsGroup: 1234, fsGroupChangePolicy } }), {
        readOnly: false,
        policy,
        plugin: "p",
        operations,
        log: discardLogger,
      });
    await own("OnRootMismatch");
    await own("OnRootMismatch");
    assert.equal(walks, 1);
    await chmod(dir, 0o770);
    await own("OnRootMismatch");
    assert.equal(walks, 2, "folders did not hand their group on");
    await chmod(dir, 0o2750);
    await own("OnRootMismatch");
    assert.equal(walks, 3, "the group could not write");
    await own("Always");
    await own("OnRootMismatch", false);
    assert.equal(walks, 5);
  },
);

test("a token belongs to the user of all containers, if it is one", () => {
  const user = (runAsUser?: number) => aContainer(runAsUser === undefined ? {} : { securityContext: { runAsUser } });
  const common = (containers: ReturnType<typeof user>[], initContainers: ReturnType<typeof user>[] = [], ofPod?: number) =>
    commonUser(aNodePod({ containers, initContainers, ...(ofPod !== undefined && { securityContext: { runAsUser: ofPod } }) }));
  assert.deepEqual(
    [
      common([user(1), user(1)]),
      common([user(1), user(2)]),
      common([user(1), user()]),
      common([user(1)], [user(2)]),
      common([user(1), user()], [], 1),
      common([user(0)]),
    ],
    [1, undefined, undefined, undefined, 1, 0],
  );
});

test("a hostPath must match its type, is created where the type allows it, and is never replaced", async (t) => {
  const dir = await tempDir(t);
  await writeFile(join(dir, "file"), "kept");
  for (const [name, type, problem] of [
    ["file", "", undefined],
    ["none", "", undefined],
    ["file", "File", undefined],
    ["file", "FileOrCreate", undefined],
    ["file", "Directory", "a directory"],
    ["file", "DirectoryOrCreate", "a directory"],
    ["", "FileOrCreate", "a file"],
    ["", "File", "a file"],
    ["none", "File", "a file"],
    ["file", "Socket", "a socket file"],
    ["none", "Socket", "a socket file"],
    ["file", "CharDevice", "a character device"],
    ["file", "BlockDevice", "a block device"],
    ["new-file", "FileOrCreate", undefined],
    ["new-folder", "DirectoryOrCreate", undefined],
  ] as const) {
    const path = join(dir, name);
    const checked = checkHostPath(path, type);
    if (problem === undefined) await checked;
    else await assert.rejects(checked, { message: `hostPath type check failed: ${path} is not ${problem}` }, `${name} ${type}`);
  }
  await checkHostPath("/dev/null", "CharDevice");
  await assert.rejects(checkHostPath("/dev/null", "BlockDevice"), { message: /is not a block device$/ });
  await assert.rejects(checkHostPath(dir, "Folder"), { message: "Folder is an invalid volume type" });
  assert.equal(await readFile(join(dir, "file"), "utf8"), "kept");
  assert.deepEqual(
    [(await stat(join(dir, "new-file"))).isFile(), (await stat(join(dir, "new-folder"))).isDirectory()],
    [true, true],
  );
});

test("a file or folder that is created for a hostPath may be read by everyone and written by its owner", async (t) => {
  const dir = await tempDir(t);
  const before = process.umask(0);
  t.after(() => void process.umask(before));
  const modeAfter = async (name: string, type: string): Promise<number> => {
    await checkHostPath(join(dir, name), type);
    return (await stat(join(dir, name))).mode & 0o777;
  };
  assert.equal(await modeAfter("file", "FileOrCreate"), 0o644);
  assert.equal(await modeAfter("folder", "DirectoryOrCreate"), 0o755);
});

const bound: PersistentVolumeClaim = {
  metadata: { uid: "c", namespace: "default", name: "data" },
  spec: { volumeName: "pv" },
  status: { phase: "Bound" },
};
const elsewhere = { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] }] } };
for (const { name, claim = bound, spec = {}, problem, kind } of [
  {
    name: "that is not bound",
    claim: { ...bound, status: { phase: "Pending" } },
    problem: "error processing PVC default/data: PVC is not bound",
    kind: ClaimError,
  },
  {
    name: "that names no volume",
    claim: { ...bound, spec: {} },
    problem: "error processing PVC default/data: PVC is not bound",
    kind: ClaimError,
  },
  {
    name: "that is being deleted, without a finalizer",
    claim: { ...bound, metadata: { ...bound.metadata, deletionTimestamp: "2022-01-01T00:00:00Z" } },
    problem: "error processing PVC default/data: PVC is being deleted",
    kind: ClaimError,
  },
  {
    name: "whose volume belongs to another of its name",
    spec: { claimRef: { uid: "other", name: "data", namespace: "default" } },
    problem:
      "error processing PVC default/data: failed to fetch PV pv from API server: PV.Spec.ClaimRef does not match PVC default/data",
    kind: ClaimError,
  },
  {
    name: "whose volume is of another zone",
    spec: { nodeAffinity: elsewhere },
    problem: "no matching NodeSelectorTerms",
    kind: VolumeError,
  },
  {
    name: "whose folder is not there",
    spec: { local: { path: "/no-such-folder" } },
    problem: "hostPath type check failed: /no-such-folder is not a directory",
    kind: VolumeError,
  },
  {
    name: "of an unknown kind",
    spec: { local: undefined },
    problem: "no volume plugin matched the source of persistent volume pv",
    kind: Error,
  },
] as {
  name: string;
  claim?: PersistentVolumeClaim;
  spec?: Partial<PersistentVolume["spec"]>;
  problem: string;
  kind: typeof Error;
}[]) {
  test(`a claim ${name} gets an event, and another volume of the pod comes up`, async (t) => {
    const path = await tempDir(t);
    const stored = { metadata: { name: "pv" }, spec: { claimRef: { uid: "c" }, local: { path }, ...spec } } as PersistentVolume;
    const objects = { ...noObjects, claim: async () => claim, persistentVolume: async () => stored };
    const { volumes } = await bench(t, { objects, nodeLabels: () => ({ zone: "a" }) });
    const pod = aPodWithVolumes([
      { name: "data", persistentVolumeClaim: { claimName: "data" } },
      { name: "e", emptyDir: {} },
    ]);
    const made = await volumes.setUp(pod, downward);
    assert.deepEqual([made.failures.map(({ message }) => message), [...made.volumes.keys()]], [[problem], ["e"]]);
    assert.ok(made.failures[0]?.cause instanceof kind);
  });
}

test("a claim that is being deleted, but kept by a finalizer while pods use it, is mounted", async (t) => {
  const path = await tempDir(t);
  const metadata = { ...bound.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", finalizers: ["kubernetes.io/pvc-protection"] };
  const stored = { metadata: { name: "pv" }, spec: { claimRef: { uid: "c" }, local: { path } } } as PersistentVolume;
  const objects = { ...noObjects, claim: async () => ({ ...bound, metadata }), persistentVolume: async () => stored };
  const { volumes } = await bench(t, { objects });
  const pod = aPodWithVolumes([{ name: "data", persistentVolumeClaim: { claimName: "data" } }]);
  assert.equal((await volumes.setUp(pod, downward)).volumes.get("data")?.path, path);
});

test("a claim that was not made for the pod's ephemeral volume is not used", async (t) => {
  const objects = { ...noObjects, claim: async () => ({ ...bound, metadata: { ...bound.metadata, name: "web-data" } }) };
  const { volumes } = await bench(t, { objects });
  const { failures } = await volumes.setUp(aPodWithVolumes([{ name: "data", ephemeral: {} }]), downward);
  assert.match(failures[0]?.message ?? "", /PVC default\/web-data was not created for pod default\/web \(pod is not owner\)$/);
});

test("an optional object that cannot be read is a failure of its volume; only one that does not exist is empty", async (t) => {
  const objects = { ...noObjects, secret: () => Promise.reject(new Error("connect ECONNREFUSED")) };
  const { volumes } = await bench(t, { objects });
  const pod = aPodWithVolumes([
    { name: "s", secret: { secretName: "s", optional: true } },
    { name: "c", configMap: { name: "c", optional: true } },
  ]);
  const made = await volumes.setUp(pod, downward);
  assert.deepEqual([made.failures.map(({ volume }) => volume), [...made.volumes.keys()]], [["s"], ["c"]]);
});

test("files of a local volume keep the modes that a pod set, also after a restart of the agent", async (t) => {
  const path = await tempDir(t);
  const stored = { metadata: { name: "pv" }, spec: { claimRef: { uid: "c" }, local: { path } } } as PersistentVolume;
  const objects = { ...noObjects, claim: async () => bound, persistentVolume: async () => stored };
  const podsDir = await tempDir(t);
  const manager = () =>
    newVolumeManager({ podsDir, objects, mounter: fakeMounter().mounter, clock: newFakeClock(), log: discardLogger });
  const fsGroup = process.getgid?.() ?? 0;
  const pod = aPodWithVolumes([{ name: "data", persistentVolumeClaim: { claimName: "data" } }], { securityContext: { fsGroup } });
  const mode = async (): Promise<number> => (await stat(path)).mode & 0o7777;
  const first = manager();
  assert.deepEqual((await first.setUp(pod, downward)).failures, []);
  assert.equal((await mode()) & 0o2070, 0o2070);
  await chmod(path, 0o700);
  for (const volumes of [first, manager()]) {
    assert.deepEqual((await volumes.setUp(pod, downward)).failures, []);
    assert.equal(await mode(), 0o700);
  }
  const last = manager();
  await last.remove(pod.metadata.uid);
  await last.setUp(pod, downward);
  assert.equal((await mode()) & 0o2070, 0o2070, "set anew for the next pod");
});
