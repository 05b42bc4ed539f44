import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { type CgroupOptions, type Cgroups, newCgroups } from "./cgroups.ts";
import { containerMemoryQos } from "./memory-qos.ts";

const mib = 1024 ** 2;
const aSizedContainer = (request?: string, limit?: string) =>
  aContainer({
    resources: { ...(request && { requests: { memory: request } }), ...(limit && { limits: { memory: limit } }) },
  });

for (const { name, request, limit, want } of [
  {
    name: "a request and a limit",
    request: "100Mi",
    limit: "200Mi",
    want: { "memory.min": String(100 * mib), "memory.high": String(160 * mib) },
  },
  {
    name: "a request alone: the node's memory is the limit",
    request: "100Mi",
    want: { "memory.min": String(100 * mib), "memory.high": String(800 * mib) },
  },
  { name: "a limit alone", limit: "200Mi", want: { "memory.high": String(160 * mib) } },
  { name: "neither", want: { "memory.high": String(800 * mib) } },
  {
    name: "a limit whose share is below the request",
    request: "100Mi",
    limit: "110Mi",
    want: { "memory.min": String(100 * mib) },
  },
  {
    name: "a request of just the share of the limit",
    request: "160Mi",
    limit: "200Mi",
    want: { "memory.min": String(160 * mib) },
  },
  { name: "a share that is no whole byte, rounded down", limit: "1001", want: { "memory.high": "800" } },
]) {
  test(`memory.min and memory.high of a container with ${name}`, () => {
    const node = { allocatableBytes: 1000 * mib, throttlingFactor: 0.8 };
    assert.deepEqual(containerMemoryQos(aSizedContainer(request, limit), node), want);
  });
}

/** A cgroup hierarchy as plain files: what is written to the kernel can be read back. */
async function aNode(t: TestContext, version: 1 | 2, options: Partial<CgroupOptions> = {}) {
  const mountPoint = await mkdtemp(join(tmpdir(), "cox-memory-qos-"));
  t.after(() => rm(mountPoint, { recursive: true, force: true }));
  const tree = version === 2 ? mountPoint : join(mountPoint, "memory");
  // Files that the kernel creates in each cgroup.
  const kernelFile = version === 2 ? "cgroup.controllers" : "cgroup.procs";
  for (const path of ["", "kubepods", "kubepods/burstable", "kubepods/poduid-1", "kubepods/burstable/poduid-2", "system"]) {
    await mkdir(join(tree, path), { recursive: true });
    await writeFile(join(tree, path, kernelFile), "");
  }
  const cgroups: Cgroups = await newCgroups({
    root: "/",
    perQos: true,
    cfsQuota: true,
    cfsPeriodUs: 100_000,
    podPidsLimit: -1,
    memoryThrottlingFactor: 0.8,
    log: discardLogger,
    mountPoint,
    ...options,
  });
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1000 * mib }, true);
  const kept = (path: string): Promise<number | undefined> =>
    readFile(join(tree, path, "memory.min"), "utf8").then(Number, () => undefined);
  return { cgroups, kept };
}

const sized = (uid: string, request: string, limit: string): NodePod => {
  const pod = aNodePod({
    containers: [aContainer({ resources: { requests: { cpu: "1", memory: request }, limits: { cpu: "1", memory: limit } } })],
  });
  return { ...pod, metadata: { ...pod.metadata, uid } };
};
const guaranteed = sized("uid-1", "100Mi", "100Mi");
const burstable = sized("uid-2", "50Mi", "200Mi");

test("MemoryQoS: memory.min of pods, QoS classes and reserved cgroups is what is requested", async (t) => {
  const { cgroups, kept } = await aNode(t, 2);
  for (const pod of [guaranteed, burstable]) await cgroups.ensure(pod);
  await cgroups.updateClasses([guaranteed, burstable, aNodePod()]);
  await cgroups.enforceReserved("/system", { memory: "30Mi" });
  const all = (): Promise<unknown> =>
    Promise.all(["kubepods", "kubepods/burstable", "kubepods/poduid-1", "kubepods/burstable/poduid-2", "system"].map(kept));
  assert.deepEqual(await all(), [150 * mib, 50 * mib, 100 * mib, 50 * mib, 30 * mib]);
  assert.equal(await kept("kubepods/besteffort"), undefined);
  await cgroups.updateClasses([guaranteed]);
  assert.deepEqual([await kept("kubepods"), await kept("kubepods/burstable")], [100 * mib, 0]);
  assert.deepEqual(cgroups.unifiedOf(aSizedContainer()), { "memory.high": String(800 * mib) });
});

for (const { name, version, options } of [
  { name: "version 1 of the hierarchy", version: 1, options: {} },
  { name: "MemoryQoS=false", version: 2, options: { memoryThrottlingFactor: undefined } },
] as const) {
  test(`with ${name} memory.min and memory.high are not set`, async (t) => {
    const { cgroups, kept } = await aNode(t, version, options);
    await cgroups.ensure(guaranteed);
    await cgroups.updateClasses([guaranteed, burstable]);
    await cgroups.enforceReserved("/system", { memory: "30Mi" });
    for (const path of ["kubepods", "kubepods/burstable", "kubepods/poduid-1", "system"])
      assert.equal(await kept(path), undefined);
    assert.deepEqual(cgroups.unifiedOf(aSizedContainer("100Mi", "200Mi")), {});
  });
}

test("MemoryQoS: memory.min of a reserved cgroup is left alone where no memory is reserved", async (t) => {
  const { cgroups, kept } = await aNode(t, 2);
  await cgroups.enforceReserved("/system", { cpu: "1" });
  assert.equal(await kept("system"), undefined);
  await cgroups.enforceReserved("/system", { memory: "0" });
  assert.equal(await kept("system"), 0);
});
