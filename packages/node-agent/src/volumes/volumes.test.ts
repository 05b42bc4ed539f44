import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { PodObjects } from "../pod/pod-objects.ts";
import { containerDevices } from "../pods/container-options.ts";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aNodePod, aPodWithVolumes } from "../testing/builders.ts";
import { writeAtomically } from "./atomic-writer.ts";
import { csiInline } from "./csi-inline.ts";
import { memorySize } from "./empty-dir.ts";
import { isMounted, type Mounter, mountPoints, systemMounter } from "./mount.ts";
import { bindSubPath, checkSubPath, makeSubPath } from "./sub-path.ts";
import { ClaimError } from "./volume.ts";
import { newVolumeManager } from "./volume-manager.ts";

async function tempDir(t: TestContext): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "cox-volumes-")));
  t.after(async () => {
    for (const path of await systemMounter.mountsBelow(dir)) await systemMounter.unmount(path);
    await rm(dir, { recursive: true, force: true });
  });
  return dir;
}

/** Records mounts instead of executing them. */
function fakeMounter(): Mounter & { mounted: string[] } {
  const mounted: string[] = [];
  return {
    mounted,
    mount: async (_, target) => void mounted.push(target),
    unmount: async (target) => void mounted.splice(mounted.indexOf(target), 1),
    mountsBelow: async (prefix) => mounted.filter((path) => path === prefix || path.startsWith(`${prefix}/`)).reverse(),
  };
}

const file = (text: string, mode = 0o644): { data: Buffer; mode: number } => ({ data: Buffer.from(text), mode });

test("a path to unmount is no flag", async () => {
  await assert.rejects(systemMounter.unmount("--version"));
});

test("files appear behind links, and change all at once", async (t) => {
  const dir = await tempDir(t);
  assert.equal(
    await writeAtomically(
      dir,
      new Map([
        ["a", file("1")],
        ["b/c", file("2", 0o400)],
      ]),
      0,
    ),
    true,
  );
  assert.equal(await readFile(join(dir, "b/c"), "utf8"), "2");
  assert.equal((await stat(join(dir, "b/c"))).mode & 0o777, 0o400);
  assert.equal(await readlink(join(dir, "a")), "..data/a");
  const first = await readlink(join(dir, "..data"));
  assert.match(first, /^\.\.\d/);

  assert.equal(
    await writeAtomically(
      dir,
      new Map([
        ["a", file("1")],
        ["b/c", file("2", 0o400)],
      ]),
      1,
    ),
    false,
    "nothing changed",
  );
  assert.equal(await readlink(join(dir, "..data")), first);

  assert.equal(await writeAtomically(dir, new Map([["a", file("3")]]), 2), true);
  assert.equal(await readFile(join(dir, "a"), "utf8"), "3");
  assert.deepEqual(
    (await readdir(dir)).filter((name) => !name.startsWith("..")),
    ["a"],
    "what is gone leaves no link",
  );
  assert.equal((await readdir(dir)).filter((name) => /^\.\.\d/.test(name)).length, 1, "the old folder is removed");
});

for (const path of ["/abs", "../up", "a/../../up", "..data", ""]) {
  test(`refuses to write the path ${JSON.stringify(path)}`, async (t) => {
    await assert.rejects(writeAtomically(await tempDir(t), new Map([[path, file("x")]]), 0), /invalid path/);
  });
}

test("reads mount points with escaped names, last mounted first", () => {
  const info =
    "22 1 0:1 / / rw - ext4 /dev/vda rw\n23 22 0:2 / /p/with\\040space rw - tmpfs tmpfs rw\n24 22 0:3 / /p/x rw - tmpfs tmpfs rw\n25 22 0:4 / /px rw - tmpfs x rw";
  assert.deepEqual(mountPoints(info, "/p"), ["/p/x", "/p/with space"]);
});

test("each escape of a mount point's path is read", () => {
  const info = String.raw`1 2 8:1 / /p/a\040b\011c\134d\012e rw - ext4 /dev/vda rw`;
  assert.deepEqual(mountPoints(info, "/p"), ["/p/a b\tc\\d\ne"]);
});

test("a path is no mount point though there is one below it", async () => {
  const mounter = { mountsBelow: async () => ["/p/x/y", "/p/z"] };
  assert.deepEqual([await isMounted("/p/x", mounter), await isMounted("/p/z", mounter)], [false, true]);
});

for (const { subPath, want } of [
  { subPath: "a/b", want: undefined },
  { subPath: "/etc", want: "error SubPath `/etc` must not be an absolute path" },
  { subPath: "a/../b", want: "unable to provision SubPath `a/../b`: must not contain '..'" },
]) {
  test(`subPath ${subPath} is ${want === undefined ? "taken" : "refused"}`, () => assert.equal(checkSubPath(subPath), want));
}

test("a subPath is bound, missing folders are made", { skip: process.getuid?.() !== 0 && "needs root" }, async (t) => {
  const dir = await tempDir(t);
  const volume = join(dir, "volume");
  await mkdir(volume);
  await chmod(volume, 0o2777);
  await makeSubPath(volume, "x/y");
  assert.equal((await stat(join(volume, "x/y"))).mode & 0o7777, 0o2777, "as open as the volume is, whatever the umask is");
  await makeSubPath(volume, "./x/./y//");
  assert.deepEqual(await readdir(volume), ["x"]);
  await makeSubPath(volume, "x/new/./z");
  assert.deepEqual(await readdir(join(volume, "x/new")), ["z"]);
  const target = await bindSubPath(volume, "x/y", join(dir, "bound/0"), systemMounter);
  await writeFile(join(target, "f"), "inside");
  assert.equal(await readFile(join(volume, "x/y/f"), "utf8"), "inside");
  assert.equal(await bindSubPath(volume, "x/y", join(dir, "bound/0"), systemMounter), target, "a second time changes nothing");
  assert.equal((await systemMounter.mountsBelow(target)).length, 1);
  await writeFile(join(volume, "single"), "file");
  await assert.rejects(makeSubPath(volume, "single/below"), { code: "ENOTDIR" });
  assert.equal(await readFile(await bindSubPath(volume, "single", join(dir, "bound/1"), systemMounter), "utf8"), "file");
});

test("a file as a subPath is bound again after it was unmounted, e.g. by a restart of the machine", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const dir = await tempDir(t);
  const volume = join(dir, "volume");
  await mkdir(volume);
  await writeFile(join(volume, "file"), "inside");
  for (let start = 0; start < 2; start++) {
    const target = await bindSubPath(volume, "file", join(dir, "bound/0"), systemMounter);
    assert.equal(await readFile(target, "utf8"), "inside");
    await systemMounter.unmount(target);
  }
});

test("a volume is bound over a mount of another file system whose root has the same inode number", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const dir = await tempDir(t);
  const [volume, target] = [join(dir, "volume"), join(dir, "bound")];
  for (const path of [volume, target]) {
    await mkdir(path);
    await systemMounter.mount("tmpfs", path, { type: "tmpfs" });
  }
  assert.equal((await stat(volume)).ino, (await stat(target)).ino);
  await bindSubPath(volume, "", target, systemMounter);
  assert.equal((await stat(target)).dev, (await stat(volume)).dev);
});

test("a link out of the volume is not followed", { skip: process.getuid?.() !== 0 && "needs root" }, async (t) => {
  const dir = await tempDir(t);
  const volume = join(dir, "volume");
  await mkdir(volume);
  await mkdir(join(dir, "secret"));
  await symlink("/etc", join(volume, "absolute"));
  await symlink("../secret", join(volume, "relative"));
  await symlink("/etc/shadow", join(volume, "file"));
  for (const subPath of ["absolute", "relative", "file", "absolute/new", "relative/a/b"]) {
    await assert.rejects(makeSubPath(volume, subPath), /is not within the volume path/, subPath);
  }
  for (const subPath of ["absolute", "relative", "file", "absolute/hostname"]) {
    await assert.rejects(
      bindSubPath(volume, subPath, join(dir, "bound"), systemMounter),
      /is not within the volume path/,
      subPath,
    );
  }
  assert.deepEqual(await readdir(join(dir, "secret")), [], "nothing was made outside");
  assert.deepEqual(await systemMounter.mountsBelow(dir), []);
});

const objects: PodObjects = {
  ...noObjects,
  configMap: async (_, name) => {
    if (name !== "cm") return noObjects.configMap(_, name);
    return { metadata: { name }, data: { one: "1", two: "2" }, binaryData: { raw: Buffer.from([0, 255]).toString("base64") } };
  },
  secret: async (_, name) => ({ metadata: { name }, data: { key: Buffer.from("s3cret").toString("base64") } }),
  serviceAccountToken: async ({ serviceAccount, audience }) => ({
    token: `token of ${serviceAccount} for ${audience ?? "the API"}`,
    expirationTimestamp: "2030-01-01T00:00:00Z",
  }),
};
const downward = { nodeName: "n", hostIps: ["192.0.2.1"], podIps: ["10.0.0.1"], allocatable: { cpu: "4", memory: "8Gi" } };

function manager(dir: string, mounter: Mounter): ReturnType<typeof newVolumeManager> {
  return newVolumeManager({ podsDir: dir, objects, mounter, clock: realClock, log: discardLogger });
}

test("each kind of volume has the expected files", async (t) => {
  const dir = await tempDir(t);
  const mounter = fakeMounter();
  const volumes: Volume[] = [
    { name: "scratch", emptyDir: {} },
    { name: "mem", emptyDir: { medium: "Memory" } },
    { name: "config", configMap: { name: "cm", items: [{ key: "one", path: "sub/uno", mode: 0o400 }] } },
    { name: "secret", secret: { secretName: "s", defaultMode: 0o440 } },
    {
      name: "info",
      downwardAPI: {
        items: [
          { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
          { path: "cpu", resourceFieldRef: { containerName: "main", resource: "limits.cpu", divisor: "1m" } },
        ],
      },
    },
    {
      name: "all",
      projected: {
        sources: [
          { configMap: { name: "cm" } },
          { serviceAccountToken: { path: "token", audience: "vault" } },
          { secret: { name: "s", items: [{ key: "key", path: "k" }] } },
        ],
      },
    },
  ] as Volume[];
  const pod = aPodWithVolumes(volumes, { serviceAccountName: "robot" }, { labels: { b: "2", a: 'q"' } });
  const { volumes: made, failures } = await manager(dir, mounter).setUp(pod, downward);
  assert.deepEqual(failures, []);
  const at = (volume: string, path: string): string => join(made.get(volume)?.path ?? "", path);
  for (const [volume, want] of Object.entries({
    scratch: 0o777,
    config: 0o777,
    mem: 0o1777,
    secret: 0o1777,
    info: 0o1777,
    all: 0o1777,
  }))
    assert.equal((await stat(at(volume, ""))).mode & 0o7777, want, volume);
  assert.match(at("config", ""), /volumes\/kubernetes\.io~configmap\/config/);
  assert.equal(await readFile(at("config", "sub/uno"), "utf8"), "1");
  assert.equal((await stat(at("config", "sub/uno"))).mode & 0o777, 0o400);
  assert.equal(await readFile(at("secret", "key"), "utf8"), "s3cret");
  assert.equal((await stat(at("secret", "key"))).mode & 0o777, 0o440);
  assert.equal(await readFile(at("info", "labels"), "utf8"), 'a="q\\""\nb="2"');
  assert.equal(await readFile(at("info", "cpu"), "utf8"), "4000");
  assert.equal(await readFile(at("all", "token"), "utf8"), "token of robot for vault");
  assert.deepEqual([...(await readFile(at("all", "raw")))], [0, 255]);
  assert.equal(await readFile(at("all", "k"), "utf8"), "s3cret");
  assert.ok(mounter.mounted.includes(at("mem", "").replace(/\/$/, "")), "memory and secrets are mounts");
  assert.ok(mounter.mounted.some((path) => path.endsWith("kubernetes.io~secret/secret")));

  await manager(dir, mounter).remove(pod.metadata.uid);
  assert.deepEqual(mounter.mounted, []);
  assert.deepEqual(await readdir(dir), []);
});

test("each missing object of a volume is reported, missing optional ones give empty volumes", async (t) => {
  const dir = await tempDir(t);
  const pod = aPodWithVolumes([
    { name: "missing", configMap: { name: "nope" } },
    { name: "key", configMap: { name: "cm", items: [{ key: "nope", path: "x" }] } },
    { name: "optional", configMap: { name: "nope", optional: true } },
    { name: "host", hostPath: { path: "/no-such-folder", type: "Directory" } },
  ] as Volume[]);
  const { volumes, failures } = await manager(dir, fakeMounter()).setUp(pod, downward);
  assert.deepEqual(Object.fromEntries(failures.map(({ volume, message }) => [volume, message])), {
    missing: 'configmap "nope" not found',
    key: "references non-existent config key: nope",
    host: "hostPath type check failed: /no-such-folder is not a directory",
  });
  assert.deepEqual([...volumes.keys()], ["optional"]);
});

test("a volume that no container uses is not mounted, and its errors do not matter", async (t) => {
  const dir = await tempDir(t);
  const volumes = [
    { name: "used", emptyDir: {} },
    { name: "unused", configMap: { name: "nope" } },
  ] as Volume[];
  const using = aContainer({ volumeMounts: [{ name: "used", mountPath: "/used" }] });
  const made = await manager(dir, fakeMounter()).setUp(aNodePod({ volumes, initContainers: [using] }), downward);
  assert.deepEqual([[...made.volumes.keys()], made.failures], [["used"], []]);
});

test("fsGroup owns the files and may read them", { skip: process.getuid?.() !== 0 && "needs root" }, async (t) => {
  const dir = await tempDir(t);
  const pod = aPodWithVolumes(
    [
      { name: "s", secret: { secretName: "s", defaultMode: 0o400 } },
      { name: "c", configMap: { name: "cm", defaultMode: 0o400 } },
      { name: "e", emptyDir: {} },
      { name: "m", emptyDir: { medium: "Memory" } },
    ] as Volume[],
    { securityContext: { fsGroup: 1234 } },
  );
  const { volumes } = await manager(dir, fakeMounter()).setUp(pod, downward);
  const secret = await stat(join(volumes.get("s")?.path ?? "", "key"));
  assert.deepEqual([secret.uid, secret.gid, secret.mode & 0o777], [0, 1234, 0o440]);
  const map = await stat(join(volumes.get("c")?.path ?? "", "..data/"));
  assert.deepEqual([map.uid, map.gid, map.mode & 0o7777], [0, 1234, 0o2755], "the group may not add files");
  const scratch = await stat(volumes.get("e")?.path ?? "");
  assert.deepEqual([scratch.gid, scratch.mode & 0o7777], [1234, 0o2777]);
  const memory = await stat(volumes.get("m")?.path ?? "");
  assert.deepEqual([memory.gid, memory.mode & 0o7777], [1234, 0o3777]);
});

test("repeated mounts keep a container's file modes", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const made = manager(await tempDir(t), fakeMounter());
  const pod = aPodWithVolumes([{ name: "e", emptyDir: {} }], { securityContext: { fsGroup: 1234 } });
  const { volumes } = await made.setUp(pod, downward);
  const key = join(volumes.get("e")?.path ?? "", "id_ed25519");
  await writeFile(key, "private", { mode: 0o600 });
  await made.setUp(pod, downward);
  assert.equal((await stat(key)).mode & 0o777, 0o600);
});

test("a mounted volume stays when its object becomes unreadable, and the error is reported", async (t) => {
  let problem: Error | undefined;
  const own: PodObjects = {
    ...objects,
    configMap: (...requested) => (problem === undefined ? objects.configMap(...requested) : Promise.reject(problem)),
  };
  const dir = await tempDir(t);
  const made = newVolumeManager({ podsDir: dir, objects: own, mounter: fakeMounter(), clock: realClock, log: discardLogger });
  const pod = aPodWithVolumes([{ name: "c", configMap: { name: "cm" } }]);
  problem = new Error("connection refused");
  assert.deepEqual([...(await made.setUp(pod, downward)).volumes.keys()], [], "it was never there");
  problem = undefined;
  await made.setUp(pod, downward);
  problem = new Error("connection refused");
  const { volumes, failures } = await made.setUp(pod, downward);
  assert.deepEqual([[...volumes.keys()], failures.map(({ message }) => message)], [["c"], ["connection refused"]]);
  await made.unmount("uid-1");
  assert.deepEqual([...(await made.setUp(pod, downward)).volumes.keys()], [], "what was taken away is not there");
});

const limited = (memory: string) => aContainer({ resources: { limits: { memory } } });
for (const { name, containers, sizeLimit, want } of [
  {
    name: "the node's allocatable memory",
    containers: [limited("1Gi"), aContainer({ name: "b" })],
    sizeLimit: undefined,
    want: 8 * 1024,
  },
  { name: "the limits of all containers", containers: [limited("1Gi")], sizeLimit: "2Gi", want: 1024 },
  { name: "the volume's sizeLimit", containers: [limited("1Gi")], sizeLimit: "64Mi", want: 64 },
  { name: "the limits of all containers when sizeLimit is 0", containers: [limited("1Gi")], sizeLimit: "0", want: 1024 },
]) {
  test(`the size of a volume in memory is limited to ${name}`, () =>
    assert.equal(memorySize(aNodePod({ containers }), sizeLimit, downward.allocatable), want * 1024 ** 2));
}

test("nothing is removed while something is mounted", async (t) => {
  const dir = await tempDir(t);
  const stuck: Mounter = {
    mount: async () => undefined,
    unmount: async () => Promise.reject(new Error("busy")),
    mountsBelow: async (prefix) => [`${prefix}/volumes/x`],
  };
  await mkdir(join(dir, "uid-1/volumes/x"), { recursive: true });
  await assert.rejects(manager(dir, stuck).remove("uid-1"), /1 mounts are left/);
  assert.deepEqual(await readdir(join(dir, "uid-1/volumes")), ["x"]);
});

test("a uid or volume name with path separators cannot leave the folder of pods", async (t) => {
  const dir = await tempDir(t);
  await assert.rejects(manager(dir, fakeMounter()).remove(".."), /cannot be the name of a folder/);
  const { failures } = await manager(dir, fakeMounter()).setUp(
    aPodWithVolumes([{ name: "../../x", emptyDir: {} }] as Volume[]),
    downward,
  );
  assert.match(failures[0]?.message ?? "", /cannot be the name of a folder/);
});

for (const { volumeMode, use, want } of [
  { volumeMode: "Block", use: { volumeMounts: [{ name: "data", mountPath: "/d" }] }, want: "is specified in volumeMounts" },
  { volumeMode: undefined, use: { volumeDevices: [{ name: "data", devicePath: "/d" }] }, want: "is specified in volumeDevices" },
]) {
  test(`a claim with volumeMode ${volumeMode ?? "Filesystem"} but ${want} is reported at once`, async (t) => {
    const dir = await tempDir(t);
    const claim = { metadata: { uid: "c" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
    const stored = { metadata: { name: "pv" }, spec: { claimRef: { uid: "c" }, volumeMode, local: { path: dir } } };
    const own = { ...objects, claim: async () => claim, persistentVolume: async () => stored } as unknown as PodObjects;
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    const pod = aNodePod({ volumes, containers: [aContainer(use)] });
    const made = newVolumeManager({ podsDir: dir, objects: own, mounter: fakeMounter(), clock: realClock, log: discardLogger });
    const [failure] = (await made.setUp(pod, downward)).failures;
    assert.equal(failure?.message, `volume data has volumeMode ${volumeMode ?? "Filesystem"}, but ${want}`);
    assert.ok(failure?.cause instanceof ClaimError);
  });
}

test("fsGroup owns a local volume whose path is a link", { skip: process.getuid?.() !== 0 && "needs root" }, async (t) => {
  const dir = await tempDir(t);
  await mkdir(join(dir, "data"));
  await writeFile(join(dir, "data", "file"), "", { mode: 0o600 });
  await symlink("data", join(dir, "link"));
  const claim = { metadata: { uid: "c" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  const stored = { metadata: { name: "pv" }, spec: { claimRef: { uid: "c" }, local: { path: join(dir, "link") } } };
  const own = { ...objects, claim: async () => claim, persistentVolume: async () => stored } as unknown as PodObjects;
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  const pod = aPodWithVolumes(volumes, { securityContext: { fsGroup: 1234 } });
  const podsDir = join(dir, "pods");
  const made = newVolumeManager({ podsDir, objects: own, mounter: fakeMounter(), clock: realClock, log: discardLogger });
  assert.deepEqual((await made.setUp(pod, downward)).failures, []);
  for (const [name, mode] of [
    ["data", 0o2770],
    ["data/file", 0o660],
  ] as const) {
    const found = await stat(join(dir, name));
    assert.deepEqual([found.gid, found.mode & 0o7770], [1234, mode], name);
  }
});

test("a container gets its volumeDevices, read-only where the volume is", () => {
  const volumes = new Map([
    ["disk", { path: "/dev/disk", readOnly: false, device: true }],
    ["rom", { path: "/dev/rom", readOnly: true, device: true }],
    ["folder", { path: "/folder", readOnly: false }],
  ]);
  const using = (...names: string[]) =>
    aContainer({ volumeDevices: names.map((name) => ({ name, devicePath: `/mine/${name}` })) });
  assert.deepEqual(containerDevices(using("disk", "rom"), volumes), [
    { hostPath: "/dev/disk", containerPath: "/mine/disk", permissions: "mrw" },
    { hostPath: "/dev/rom", containerPath: "/mine/rom", permissions: "r" },
  ]);
  assert.throws(
    () => containerDevices(using("folder"), volumes),
    /^Error: cannot find volume "folder" to pass into container "main"$/,
  );
});

test("volumes of CSI drivers in a pod are ephemeral ones, and those of plugins that were migrated", () => {
  const sources = [
    { csi: { driver: "d" } },
    { awsElasticBlockStore: { volumeID: "v" } },
    { emptyDir: {} },
    { hostPath: { path: "/" } },
  ];
  assert.deepEqual(
    sources.map((source) => csiInline.supports({ name: "v", ...source })),
    [true, true, false, false],
  );
});
