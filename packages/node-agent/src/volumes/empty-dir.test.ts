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

/** A pod whose containers request huge pages of these sizes, the first of them in an init container. */
function pagesPod(medium: string, [first, ...others]: string[]) {
  const resources = (size: string) => {
    const pages = { [`hugepages-${size}`]: "1Gi" };
    return { limits: { memory: "1Gi", ...pages }, requests: { cpu: "1", ...pages } };
  };
  const pod = aPodWithVolumes([{ name: "v", emptyDir: { medium } }]);
  const [container = assert.fail()] = pod.spec.containers;
  const containers = [container, ...others.map((size, at) => ({ name: `c${at}`, image: "i", resources: resources(size) }))];
  const initContainers = first === undefined ? [] : [{ ...container, name: "init", resources: resources(first) }];
  return { ...pod, spec: { ...pod.spec, containers, initContainers } };
}

for (const { medium, requests, size } of [
  { medium: "HugePages", requests: ["2Mi"], size: "2M" },
  { medium: "HugePages", requests: ["1Gi", "1Gi", "1024Mi"], size: "1G" },
  { medium: "HugePages-2Mi", requests: ["2Mi", "1Gi"], size: "2M" },
  { medium: "HugePages-1Gi", requests: ["2Mi", "1Gi"], size: "1G" },
]) {
  test(`an emptyDir of ${medium} is a hugetlbfs, mounted once also across a restart of the agent: pages of ${requests}`, async (t) => {
    const { podsDir, mounts, open } = await bench(t);
    const pod = pagesPod(medium, requests);
    for (const manager of [open(), open()]) assert.deepEqual((await manager.setUp(pod, downward)).failures, []);
    assert.deepEqual(mounts, [["nodev", "hugetlbfs", [`pagesize=${size}`]]]);
    assert.equal((await stat(join(podsDir, "uid-1/volumes/kubernetes.io~empty-dir/v"))).mode & 0o777, 0o777);
  });
}

const noPages = "hugePages storage requested, but there is no resource request for huge pages";
for (const { medium, requests, message } of [
  { medium: "HugePages", requests: [], message: `medium HugePages: ${noPages}` },
  { medium: "HugePages-2Mi", requests: ["1Gi"], message: `medium HugePages-2Mi: ${noPages}` },
  { medium: "HugePages-2Mi", requests: [], message: `medium HugePages-2Mi: ${noPages}` },
  {
    medium: "HugePages",
    requests: ["2Mi", "1Gi"],
    message: "medium: HugePages can't be used if container requests multiple huge page sizes",
  },
  { medium: "Tape", requests: [], message: 'unknown storage medium "Tape"' },
  { medium: "HugePages2Mi", requests: ["2Mi"], message: 'unknown storage medium "HugePages2Mi"' },
]) {
  test(`an emptyDir of ${medium} is not set up for requests of [${requests}]`, async (t) => {
    const { mounts, open } = await bench(t);
    const { failures } = await open().setUp(pagesPod(medium, requests), downward);
    assert.deepEqual(
      failures.map(({ cause }) => cause instanceof Error && cause.message),
      [message],
    );
    assert.deepEqual(mounts, []);
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
