import assert from "node:assert/strict";
import { chown, mkdir, mkdtemp, realpath, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import { noObjects } from "../sources/api-objects.ts";
import { aPodWithVolumes } from "../testing/builders.ts";
import { newVolumeManager } from "./volume-manager.ts";
import { newVolumeOperations } from "./volume-operations.ts";

const rootOnly = { skip: process.getuid?.() !== 0 && "needs root" };
const downward = { nodeName: "n", hostIps: ["192.0.2.1"], podIps: ["10.0.0.1"], allocatable: { cpu: "4", memory: "8Gi" } };
const claim = { metadata: { uid: "c" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } } as PersistentVolumeClaim;

const aPod = (uid: string, fsGroup: number | undefined, readOnly = false): NodePod =>
  aPodWithVolumes(
    [{ name: `data-${uid}`, persistentVolumeClaim: { claimName: "data", readOnly } }],
    fsGroup === undefined ? {} : { securityContext: { fsGroup } },
    { uid },
  );

/** Managers of one node whose claim is bound to a local volume, and the group changes and events that they caused. */
async function bench(t: TestContext) {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "cox-local-")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const [path, podsDir] = [join(dir, "data"), join(dir, "pods")];
  await mkdir(path);
  const stored = { metadata: { name: "pv" }, spec: { claimRef: { uid: "c" }, local: { path } } };
  const seen = { walks: 0, events: [] as string[] };
  const operations = newVolumeOperations((_plugin, operation) => {
    if (operation === "volume_fsgroup_recursive_apply") seen.walks++;
    return () => undefined;
  });
  const mounter = { mount: async () => {}, unmount: async () => {}, mountsBelow: async () => [] };
  const node = () =>
    newVolumeManager({
      podsDir,
      objects: { ...noObjects, claim: async () => claim, persistentVolume: async () => stored as PersistentVolume },
      mounter,
      clock: newFakeClock(),
      log: discardLogger,
      operations,
      reportPodEvent: (pod, _container, type, reason, message) =>
        void seen.events.push(`${pod.metadata.uid} ${type} ${reason} ${message}`),
    });
  const group = async (): Promise<number> => (await stat(path)).gid;
  return { dir, path, stored, seen, node, group };
}

test("a local volume keeps the group of the pod that uses it first, and another group gets a warning", rootOnly, async (t) => {
  const { node, seen, group } = await bench(t);
  const before = node();
  assert.deepEqual((await before.setUp(aPod("a", 1001), downward)).failures, []);
  const after = node(); // the agent restarted: it has not seen the first pod yet
  for (const [uid, fsGroup] of [
    ["b", 1002],
    ["c", 1001],
  ] as const) {
    assert.deepEqual((await after.setUp(aPod(uid, fsGroup), downward)).failures, []);
    assert.equal(await group(), 1001);
  }
  assert.deepEqual(seen.events, [
    "b Warning AlreadyMountedVolume The requested fsGroup is 1002, but the volume pv has GID 1001. The volume may not be shareable.",
  ]);
  for (const uid of ["a", "b", "c"]) await after.remove(uid);
  await after.setUp(aPod("d", 1004), downward);
  assert.deepEqual([await group(), seen.walks, seen.events.length], [1004, 2, 1]);
});

test("a volume that its pod has already is not set up again", rootOnly, async (t) => {
  const { path, node, group } = await bench(t);
  const manager = node();
  await manager.setUp(aPod("a", 1001), downward);
  await chown(path, 0, 7);
  await manager.setUp(aPod("a", 1001), downward);
  assert.equal(await group(), 7);
});

test("of many pods that start at a time, by one path or another, one sets the group of a local volume", rootOnly, async (t) => {
  const { dir, path, stored, node, seen } = await bench(t);
  await symlink(path, join(dir, "link"));
  const manager = node();
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, i) => {
      stored.spec.local.path = i % 2 === 0 ? path : join(dir, "link");
      return manager.setUp(aPod(`p${i}`, 1001), downward);
    }),
  );
  assert.deepEqual([made.flatMap(({ failures }) => failures), seen.walks, seen.events], [[], 1, []]);
});

test("a pod that only reads a local volume uses it, but does not set its group", rootOnly, async (t) => {
  const { node, seen, group } = await bench(t);
  const manager = node();
  await manager.setUp(aPod("reader", 1001, true), downward);
  assert.deepEqual([await group(), seen.walks], [0, 0]);
  await manager.setUp(aPod("writer", 1002), downward);
  assert.deepEqual([await group(), seen.walks, seen.events.length], [0, 0, 1]);
});

test("a pod without fsGroup uses a local volume that another pod uses, without a warning", rootOnly, async (t) => {
  const { node, seen, group } = await bench(t);
  const manager = node();
  for (const [uid, fsGroup] of [
    ["a", 1001],
    ["b", undefined],
  ] as const)
    assert.deepEqual((await manager.setUp(aPod(uid, fsGroup), downward)).failures, []);
  assert.deepEqual([await group(), seen.events], [1001, []]);
});
