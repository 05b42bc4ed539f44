import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { PersistentVolume, Secret, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { noObjects } from "../../sources/api-objects.ts";
import { aNodePod } from "../../testing/builders.ts";
import type { Mounter } from "../mount.ts";
import { type FlexVolumes, newFlexVolumes } from "./flex.ts";

/** Answers what the line of its answers for a command says, and notes what it was asked. */
const program = (answers: Readonly<Record<string, string>>): string => {
  const cases = Object.entries(answers).map(([command, script]) => `${command}) ${script} ;;`);
  return `#!/bin/sh\nprintf '%s\\n' "$@" >> "$(dirname "$0")/asked"\ncase "$1" in\n${cases.join("\n")}\n*) echo '{"status":"Not supported"}' ; exit 1 ;;\nesac\n`;
};
const success = `echo '{"status":"Success"}'`;
const noAttach = `echo '{"status":"Success","capabilities":{"attach":false}}'`;

/** A folder of drivers and one of pods; `mounted` is what the agent itself mounted or the test says that a driver did. */
async function setUp(t: TestContext, answers: Readonly<Record<string, string>>, secret?: Secret) {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "cox-flex-")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const driverDir = join(dir, "exec/example.com~disk");
  await mkdir(driverDir, { recursive: true });
  const install = async (text: string): Promise<void> => {
    await writeFile(join(driverDir, "disk"), text);
    await chmod(join(driverDir, "disk"), 0o755);
  };
  await install(program(answers));
  const mounted: string[] = [];
  const mounter: Mounter = {
    mount: async (_, target) => void mounted.push(target),
    unmount: async (target) => void mounted.splice(mounted.indexOf(target), 1),
    mountsBelow: async (prefix) => mounted.filter((path) => path === prefix || path.startsWith(`${prefix}/`)),
  };
  const objects = { ...noObjects, secret: async () => secret as Secret };
  const open = (): FlexVolumes => newFlexVolumes({ pluginDir: join(dir, "exec"), podsDir: join(dir, "pods"), objects, mounter });
  const asked = async (): Promise<string[]> => (await readFile(join(driverDir, "asked"), "utf8")).trimEnd().split("\n");
  return { dir: join(dir, "pods/uid1/volumes/example.com~disk/data"), flex: open(), open, asked, mounted, install };
}

const pod = aNodePod({ serviceAccountName: "sa" }, { name: "p", namespace: "ns", uid: "uid1" });
const volume = (more: object = {}): Volume => ({ name: "data", flexVolume: { driver: "example.com/disk", ...more } });

test("a driver mounts a volume once, told of the pod, the volume's options and its secret", async (t) => {
  const secret = { type: "example.com/disk", data: { key: "czNjcjN0" } } as unknown as Secret;
  const { dir, flex, asked, mounted } = await setUp(t, { init: noAttach, mount: success }, secret);
  const made = await flex.inline(
    pod,
    volume({ fsType: "ext4", readOnly: true, secretRef: { name: "s" }, options: { size: "1<2" } }),
  );
  assert.deepEqual([made?.path, made?.readOnly], [dir, true]);
  const [init, mount, target, options = "", ...more] = await asked();
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
  assert.equal((await asked()).length, 4, "what is mounted is left alone");
});

test("a persistent volume has its own name, and the claim says whether it is only read", async (t) => {
  const { flex, asked } = await setUp(t, { init: noAttach, mount: success });
  const source = { metadata: { name: "pv1" }, spec: { flexVolume: { driver: "example.com/disk" } } } as PersistentVolume;
  const made = await flex.persistent(pod, source, true);
  assert.match(made?.path ?? "", /\/pods\/uid1\/volumes\/example\.com~disk\/pv1$/);
  assert.partialDeepStrictEqual(JSON.parse((await asked()).at(-1) ?? ""), {
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
  test(`a driver that ${name}: the pod is told, and no folder is left`, async (t) => {
    const { dir, flex } = await setUp(t, { init: noAttach, mount });
    await assert.rejects(flex.inline(pod, volume()), { message, step: "MountVolume.SetUp failed", volume: "data" });
    assert.deepEqual(await readdir(join(dir, "..")), []);
  });
}

test("a secret of another type is not shown to a driver", async (t) => {
  const { flex, asked } = await setUp(t, { init: noAttach, mount: success }, {
    type: "Opaque",
    data: { key: "eA==" },
  } as unknown as Secret);
  const message = "couldn't get secret ns/s err: cannot get secret of type example.com/disk";
  await assert.rejects(flex.inline(pod, volume({ secretRef: { name: "s" } })), { message });
  assert.deepEqual(await asked(), ["init"]);
});

test("an agent that knows nothing of the mount has the driver take it away, or does it where the driver cannot", async (t) => {
  for (const [unmount, left] of [
    [success, 1],
    [`echo '{"status":"Not supported"}'`, 0],
  ] as const) {
    const { dir, flex, open, asked, mounted } = await setUp(t, { init: noAttach, mount: success, unmount });
    await flex.inline(pod, volume());
    mounted.push(dir);
    await open().tearDown("uid1");
    assert.deepEqual((await asked()).slice(-2), ["unmount", dir]);
    assert.equal(mounted.length, left);
    assert.deepEqual(await readdir(join(dir, "..")), []);
  }
});

test("a driver is found when it comes, asked anew when it was replaced, and refused where it wants to attach", async (t) => {
  const { flex, install } = await setUp(t, { init: "exit 1" });
  assert.equal(await flex.inline(pod, volume()), undefined, "it does not answer");
  await install(program({ init: success, mount: success }));
  await assert.rejects(flex.inline(pod, volume()), /attaches volumes, which is not built/);
  await install(program({ init: noAttach, mount: success }));
  assert.ok(await flex.inline(pod, volume()));
});

for (const driver of ["example.com/none", "../exec/example.com/disk", "example.com~disk", "example.com/..", ""]) {
  test(`there is no driver ${JSON.stringify(driver)}`, async (t) => {
    const { flex } = await setUp(t, { init: noAttach, mount: success });
    assert.equal(await flex.inline(pod, volume({ driver })), undefined);
  });
}
