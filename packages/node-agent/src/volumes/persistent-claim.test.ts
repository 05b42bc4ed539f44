import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, realpath, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import type { MeasuredVolume } from "./measure.ts";
import { newVolumeManager } from "./volume-manager.ts";
import { newVolumeOperations } from "./volume-operations.ts";

const downward = { nodeName: "n", hostIps: [], podIps: [], allocatable: {} };
const claim = { metadata: { uid: "c" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } } as PersistentVolumeClaim;
const mountIt = { volumeMounts: [{ name: "data", mountPath: "/d" }] };
const mapIt = { volumeDevices: [{ name: "data", devicePath: "/d" }] };

/** Sets up a volume of a Pod by its claim, whose persistent volume has this spec. */
async function bench(t: TestContext) {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "cox-claim-")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const observed: string[] = [];
  const measured: (MeasuredVolume | undefined)[] = [];
  const setUp = async (
    spec: Partial<PersistentVolume["spec"]>,
    pod: Partial<PodSpec>,
    readOnly?: boolean,
    annotations: Record<string, string> = {},
  ) => {
    const stored = { metadata: { name: "pv", annotations }, spec: { claimRef: { uid: "c" }, ...spec } } as PersistentVolume;
    const manager = newVolumeManager({
      podsDir: join(dir, "pods"),
      objects: { ...noObjects, claim: async () => claim, persistentVolume: async () => stored },
      mounter: { mount: async () => {}, unmount: async () => {}, mountsBelow: async () => [] },
      clock: newFakeClock(),
      log: discardLogger,
      operations: newVolumeOperations((plugin, operation) => () => void observed.push(`${plugin} ${operation}`)),
    });
    const source = { claimName: "data", ...(readOnly !== undefined && { readOnly }) };
    const volumes = [{ name: "data", persistentVolumeClaim: source }];
    const { volumes: made, failures } = await manager.setUp(aNodePod({ volumes, ...pod }), downward);
    const { measure, ...rest } = made.get("data") ?? {};
    measured.push(await measure?.());
    return failures[0]?.message ?? rest;
  };
  return { dir, setUp, observed, measured };
}

test("a volume that is bound to an earlier claim of the same name is not used", async (t) => {
  const { dir, setUp } = await bench(t);
  const pod = { containers: [aContainer(mountIt)] };
  const claimRef = { namespace: "default", name: "data" };
  assert.match(
    String(await setUp({ hostPath: { path: dir }, claimRef: { ...claimRef, uid: "earlier" } }, pod)),
    /PV\.Spec\.ClaimRef does not match PVC default\/data$/,
  );
  const made = await setUp({ hostPath: { path: dir }, claimRef: { ...claimRef, uid: "c" } }, pod);
  assert.deepEqual(made, { path: dir, readOnly: false });
});

test("a persistent hostPath is used as its claim says, and has to be of its type", async (t) => {
  const { dir, setUp } = await bench(t);
  const pod = { containers: [aContainer(mountIt)] };
  const file = join(dir, "file");
  await writeFile(file, "");
  assert.deepEqual(await setUp({ hostPath: { path: dir } }, pod), { path: dir, readOnly: false });
  assert.deepEqual(await setUp({ hostPath: { path: dir, type: "Directory" } }, pod, true), { path: dir, readOnly: true });
  const problem = `hostPath type check failed: ${file} is not a directory`;
  assert.equal(await setUp({ hostPath: { path: file, type: "Directory" } }, pod), problem);
});

for (const [text, gid] of [
  ["1234", 1234],
  ["0", 0],
  ["+5", 5],
  ["staff", undefined],
  ["12a", undefined],
  ["", undefined],
] as const) {
  test(`the group ${JSON.stringify(text)} in a persistent volume's annotation is ${gid ?? "none"}`, async (t) => {
    const { dir, setUp } = await bench(t);
    const pod = { containers: [aContainer(mountIt)] };
    const made = await setUp({ hostPath: { path: dir } }, pod, undefined, { "pv.beta.kubernetes.io/gid": text });
    assert.deepEqual(made, { path: dir, readOnly: false, ...(gid !== undefined && { gid }) });
  });
}

test("a local volume of mode Block has to be a block device, and is passed as one", async (t) => {
  const { dir, setUp, observed } = await bench(t);
  const pod = { initContainers: [aContainer({ name: "init", ...mapIt })] };
  const problem = "hostPath type check failed: /dev/null is not a block device";
  assert.equal(await setUp({ volumeMode: "Block", local: { path: "/dev/null" } }, pod), problem);
  assert.deepEqual(observed, ["kubernetes.io/local-volume map_volume"], "also for an init container alone");
  const path = join(dir, "disk");
  try {
    execFileSync("mknod", [path, "b", "7", "99"], { stdio: "ignore" });
  } catch {
    return t.diagnostic("block devices cannot be made here");
  }
  assert.deepEqual(await setUp({ volumeMode: "Block", local: { path } }, pod, true), { path, readOnly: true, device: true });
});

test("an init container that uses a volume with files as a device is reported", async (t) => {
  const { dir, setUp } = await bench(t);
  const pod = { initContainers: [aContainer({ name: "init", ...mapIt })] };
  const problem = "volume data has volumeMode Filesystem, but is specified in volumeDevices";
  assert.equal(await setUp({ local: { path: dir } }, pod), problem);
});

test("the usage of a local volume of files is that of its file system; that of a path of the host is not known", async (t) => {
  const { dir, setUp, measured } = await bench(t);
  const pod = { containers: [aContainer(mountIt)] };
  assert.deepEqual(await setUp({ local: { path: dir } }, pod, true), { path: dir, readOnly: true });
  const { blocks, bsize } = await statfs(dir);
  assert.equal(measured.at(-1)?.capacityBytes, blocks * bsize);
  await setUp({ hostPath: { path: dir } }, pod);
  assert.equal(measured.at(-1), undefined);
});
