import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { noObjects } from "../sources/api-objects.ts";
import { aPodWithVolumes } from "../testing/builders.ts";
import type { Mounter } from "./mount.ts";
import { newVolumeManager } from "./volume-manager.ts";

const downward = { nodeName: "n", hostIps: [], podIps: [], allocatable: { memory: "8Gi" } };

/** Volume managers of one node, of which each is a restarted agent, and the mounts that they made: source, type, options. */
async function bench(t: TestContext) {
  const podsDir = await mkdtemp(join(tmpdir(), "cox-empty-"));
  t.after(() => rm(podsDir, { recursive: true, force: true }));
  const mounted: string[] = [];
  const mounts: unknown[] = [];
  const mounter: Mounter = {
    async mount(source, target, { type, options }) {
      mounted.push(target);
      mounts.push([source, type, options]);
    },
    unmount: async () => {},
    mountsBelow: async (prefix) => mounted.filter((path) => path === prefix || path.startsWith(`${prefix}/`)),
  };
  const open = (sizesMemory = true) =>
    newVolumeManager({ podsDir, objects: noObjects, mounter, clock: newFakeClock(), log: discardLogger, sizesMemory });
  const pod = (medium: string, sizeLimit?: string) =>
    aPodWithVolumes([{ name: "v", emptyDir: { medium, ...(sizeLimit !== undefined && { sizeLimit }) } }] as Volume[]);
  return { podsDir, mounts, open, pod };
}

for (const { medium, options } of [
  { medium: "HugePages", options: [] },
  { medium: "HugePages-2Mi", options: ["pagesize=2M"] },
  { medium: "HugePages-1Gi", options: ["pagesize=1G"] },
]) {
  test(`an emptyDir of ${medium} is a hugetlbfs, mounted once also across a restart of the agent`, async (t) => {
    const { mounts, open, pod } = await bench(t);
    for (const manager of [open(), open()]) assert.deepEqual((await manager.setUp(pod(medium), downward)).failures, []);
    assert.deepEqual(mounts, [["nodev", "hugetlbfs", options]]);
  });
}

test("an emptyDir in memory has its size as limit; without the gate SizeMemoryBackedVolumes the kernel's", async (t) => {
  const { mounts, open, pod } = await bench(t);
  await open().setUp(pod("Memory", "64Mi"), downward);
  assert.deepEqual(mounts, [["tmpfs", "tmpfs", ["size=67108864"]]]);
  const ungated = await bench(t);
  await ungated.open(false).setUp(ungated.pod("Memory", "64Mi"), downward);
  assert.deepEqual(ungated.mounts, [["tmpfs", "tmpfs", []]]);
});

test("the folder of an emptyDir is open to every user, also one that was left with another mode", async (t) => {
  const { podsDir, open, pod } = await bench(t);
  const dir = join(podsDir, "uid-1/volumes/kubernetes.io~empty-dir/v");
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await open().setUp(pod(""), downward);
  assert.equal((await stat(dir)).mode & 0o777, 0o777);
});
