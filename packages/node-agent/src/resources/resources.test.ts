import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { allocatable } from "./allocatable.ts";
import { openCgroupTree } from "./cgroup-tree.ts";
import { type CgroupOptions, type Cgroups, newCgroups, podLimits } from "./cgroups.ts";
import { containerResources, cpuQuotaUs, cpuShares } from "./container-resources.ts";
import { oomScoreAdj } from "./oom-score.ts";

type Amounts = Record<string, string>;
const container = (requests?: Amounts, limits?: Amounts, name = "main"): Container =>
  aContainer({
    name,
    resources: { ...(requests === undefined ? {} : { requests }), ...(limits === undefined ? {} : { limits }) },
  });
const full = { cpu: "1", memory: "1Gi" };

test("oom_score_adj is higher the less of the node's memory a container requests", () => {
  const gi = 1024 ** 3;
  const score = (requests: Amounts, limits?: Amounts): number => {
    const one = container(requests, limits);
    return oomScoreAdj(aNodePod({ containers: [one] }), one, 8 * gi);
  };
  assert.equal(score(full, full), -997);
  assert.equal(score({}), 1000);
  assert.equal(score({ memory: "4Gi" }), 500);
  assert.equal(score({ memory: "1" }), 999);
  assert.equal(score({ memory: "8Gi" }), 3);
  const critical = aNodePod({ priorityClassName: "system-node-critical", priority: 2_000_001_000 });
  assert.equal(oomScoreAdj(critical, aContainer(), 8 * gi), -997);
});

test("shares and quota have the kernel's limits", () => {
  assert.deepEqual([0, 1, 500, 1000, 10_000_000].map(cpuShares), [2, 2, 512, 1024, 262_144]);
  assert.deepEqual(
    [0, 1, 5, 100, 2500].map((milli) => cpuQuotaUs(milli, 100_000)),
    [0, 1000, 1000, 10_000, 250_000],
  );
  assert.equal(cpuQuotaUs(2001, 1500), 3001, "a part of a microsecond does not count");
});

test("a container's resources reach the runtime", () => {
  const one = container({ memory: "64Mi" }, { cpu: "250m", memory: "128Mi" });
  const options = { memoryCapacityBytes: 1024 ** 3, cfsQuota: true, cfsPeriodUs: 100_000, pageSizes: ["2MB"] };
  const got = containerResources(aNodePod({ containers: [one] }), one, options);
  assert.partialDeepStrictEqual(got, {
    cpuShares: 256,
    cpuQuota: 25_000,
    cpuPeriod: 100_000,
    memoryLimitInBytes: 128 * 1024 ** 2,
  });
  assert.deepEqual(got.hugepageLimits, [{ pageSize: "2MB", limit: 0 }]);
  assert.partialDeepStrictEqual(containerResources(aNodePod(), one, { ...options, cfsQuota: false }), {
    cpuQuota: 0,
    cpuPeriod: 0,
  });
  const huge = container({}, { "hugepages-1Gi": "2Gi" });
  assert.deepEqual(containerResources(aNodePod(), huge, { ...options, pageSizes: ["2MB", "1GB"] }).hugepageLimits, [
    { pageSize: "2MB", limit: 0 },
    { pageSize: "1GB", limit: 2 * 1024 ** 3 },
  ]);
});

for (const { swap, want } of [
  { swap: undefined, want: undefined },
  { swap: "limited", want: 128 * 1024 ** 2 },
  { swap: "any", want: -1 },
] as const) {
  test(`with swap behavior ${swap ?? "off"} a container's memory and swap limit is ${want === -1 ? "unlimited" : (want ?? "unset")}`, () => {
    const one = container({ memory: "64Mi" }, { cpu: "250m", memory: "128Mi" });
    const options = { memoryCapacityBytes: 1024 ** 3, cfsQuota: true, cfsPeriodUs: 100_000, pageSizes: [], swap };
    assert.equal(containerResources(aNodePod({ containers: [one] }), one, options).memorySwapLimitInBytes, want);
  });
}

test("a pod is limited only where every container is", () => {
  const settings = { cfsQuota: true, cfsPeriodUs: 100_000, podPidsLimit: 100 };
  const both = aNodePod({ containers: [container(full, full), container(full, { cpu: "2" }, "b")] });
  assert.deepEqual(podLimits(both, settings), { shares: 2048, quotaUs: 300_000, pids: 100 });
  assert.deepEqual(podLimits(aNodePod(), settings), { shares: 2, pids: 100 }, "one that asks for nothing");
  for (const limits of [{ memory: "1Gi" }, { cpu: "0", memory: "1Gi" }] as Record<string, string>[]) {
    const one = aNodePod({ containers: [container(full, full), container(full, limits, "b")] });
    assert.equal(podLimits(one, settings).quotaUs, undefined, "the other one has no limit of CPU");
    assert.equal(podLimits(one, settings).memoryBytes, 2 * 1024 ** 3);
  }
  assert.deepEqual(podLimits(aNodePod(), { ...settings, podPidsLimit: -1 }), { shares: 2 }, "-1 is no limit of processes");
});

test("allocatable is the capacity minus reservations and hard eviction thresholds", () => {
  const got = allocatable(
    { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" },
    {
      kube: { cpu: "200m", memory: "1Gi" },
      system: { cpu: "100m" },
      evictionHard: { "memory.available": "100Mi", "nodefs.available": "10%" },
    },
  );
  assert.deepEqual(got, { cpu: "3700m", memory: "7068Mi", pods: "110", "ephemeral-storage": "90Gi" });
});

test("a threshold's share of the capacity is rounded down; what is reserved beyond the capacity leaves nothing", () => {
  const of = (evictionHard: Amounts, kube: Amounts = {}) =>
    allocatable({ memory: "15" }, { kube, system: { memory: "1" }, evictionHard })["memory"];
  assert.deepEqual(
    [of({ "memory.available": "10%" }), of({ "memory.available": "19.9%" }), of({}, { memory: "1Gi" })],
    ["13", "12", "0"],
  );
});

test("huge pages of every size are taken off the allocatable memory", () => {
  const capacity = { memory: "8Gi", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "2Gi" };
  assert.equal(allocatable(capacity, { kube: {}, system: {}, evictionHard: {} })["memory"], "5Gi");
});

/** Controllers as plain directories: what is written to the kernel can be read back. */
async function cgroupsIn(
  t: TestContext,
  options: Partial<CgroupOptions> = {},
): Promise<{ cgroups: Cgroups; mountPoint: string; read(path: string): Promise<string> }> {
  const mountPoint = await mkdtemp(join(tmpdir(), "cox-cgroups-"));
  t.after(() => rm(mountPoint, { recursive: true, force: true }));
  for (const controller of ["cpu", "memory", "pids"]) {
    await mkdir(join(mountPoint, controller));
    await writeFile(join(mountPoint, controller, "cgroup.procs"), "");
  }
  const settings = { root: "/test", perQos: true, cfsQuota: true, cfsPeriodUs: 100_000, podPidsLimit: 50 };
  const cgroups = await newCgroups({ ...settings, log: discardLogger, mountPoint, ...options });
  return { cgroups, mountPoint, read: (path) => readFile(join(mountPoint, path), "utf8") };
}

test("the available memory of all pods ignores inactive file cache; a pod's process count is the kernel's", async (t) => {
  const { cgroups, mountPoint } = await cgroupsIn(t);
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1000 }, false);
  const write = (path: string, text: string): Promise<void> => writeFile(join(mountPoint, path), text);
  await write("memory/test/kubepods/memory.usage_in_bytes", "700\n");
  await write("memory/test/kubepods/memory.stat", "cache 5\ninactive_file 1\ntotal_inactive_file 200\n");
  await write("memory/test/kubepods/memory.limit_in_bytes", "9223372036854771712\n");
  assert.equal(await cgroups.memoryOfPods(), undefined, "no limit");
  await assert.rejects(readFile(join(mountPoint, "cpu/test/kubepods/cpu.shares")), { code: "ENOENT" }, "nothing is enforced");
  await write("memory/test/kubepods/memory.limit_in_bytes", "1000\n");
  assert.deepEqual(await cgroups.memoryOfPods(), { available: 500, capacity: 1000 });
  await write("memory/test/kubepods/memory.usage_in_bytes", "1700\n");
  assert.deepEqual(await cgroups.memoryOfPods(), { available: 0, capacity: 1000 }, "more than there is is nothing");
  const pod = aNodePod();
  await cgroups.ensure(pod);
  assert.equal(await cgroups.tasksOf("uid-1"), 0);
  await write(`pids${cgroups.parentOf(pod)}/pids.current`, "12\n");
  assert.deepEqual([await cgroups.tasksOf("uid-1"), await cgroups.tasksOf("nobody")], [12, 0]);
});

test("without cgroups per QoS class nothing is made for a pod", async (t) => {
  const { cgroups, mountPoint } = await cgroupsIn(t, { perQos: false });
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1000 }, true);
  await cgroups.ensure(aNodePod());
  assert.deepEqual(await readdir(join(mountPoint, "cpu")), ["cgroup.procs"]);
  assert.deepEqual([await cgroups.exists("uid-1"), cgroups.parentOf(aNodePod())], [false, ""]);
});

test("the cgroup of all pods is limited to allocatable, and reserved cgroups to their reservations", async (t) => {
  const { cgroups, mountPoint, read } = await cgroupsIn(t);
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1024 ** 3, pids: 1000 }, true);
  assert.deepEqual(
    [
      await read("memory/test/kubepods/memory.limit_in_bytes"),
      await read("cpu/test/kubepods/cpu.shares"),
      await read("pids/test/kubepods/pids.max"),
      await read("cpu/test/kubepods/besteffort/cpu.shares"),
    ],
    [String(1024 ** 3), "2048", "1000", "2"],
  );
  const reserved = { cpu: "500m", memory: "256Mi", pid: "100" };
  await assert.rejects(cgroups.enforceReserved("/system", reserved), { message: '["system"] cgroup does not exist' });
  for (const controller of ["cpu", "memory", "pids"]) await mkdir(join(mountPoint, controller, "system"));
  await cgroups.enforceReserved("/system", reserved);
  assert.deepEqual(
    [await read("cpu/system/cpu.shares"), await read("memory/system/memory.limit_in_bytes"), await read("pids/system/pids.max")],
    ["512", String(256 * 1024 ** 2), "100"],
  );
  for (const controller of ["cpu", "memory", "pids"]) await mkdir(join(mountPoint, controller, "kube"));
  await cgroups.enforceReserved("/kube", { memory: "1Mi" });
  assert.equal(await read("memory/kube/memory.limit_in_bytes"), String(1024 ** 2));
  for (const file of ["cpu/kube/cpu.shares", "pids/kube/pids.max"])
    await assert.rejects(read(file), { code: "ENOENT" }, "what is not reserved is not limited");
});

test("one limit of a reserved cgroup that the kernel refuses is an error, and the others are set", async (t) => {
  const { cgroups, mountPoint, read } = await cgroupsIn(t);
  for (const controller of ["cpu", "memory", "pids"]) await mkdir(join(mountPoint, controller, "system"));
  await mkdir(join(mountPoint, "memory/system/memory.limit_in_bytes"));
  await assert.rejects(cgroups.enforceReserved("/system", { cpu: "500m", memory: "256Mi", pid: "100" }), {
    message: 'the limits of cgroup ["system"] cannot be set',
  });
  assert.deepEqual([await read("cpu/system/cpu.shares"), await read("pids/system/pids.max")], ["512", "100"]);
});

test("a cgroup is populated while one below it has processes", async (t) => {
  const { mountPoint } = await cgroupsIn(t);
  const tree = await openCgroupTree({ cfsPeriodUs: 100_000, log: discardLogger, mountPoint });
  for (const path of ["pod", "pod/a", "pod/b"]) {
    await mkdir(join(mountPoint, "memory", path));
    await writeFile(join(mountPoint, "memory", path, "cgroup.procs"), path === "pod/b" ? "42\n" : "");
  }
  assert.deepEqual([await tree.isPopulated("/pod"), await tree.isPopulated("/pod/a")], [true, false]);
});

test("with --qos-reserved lower QoS classes cannot use memory that higher ones requested", async (t) => {
  const gi = 1024 ** 3;
  const { cgroups, read } = await cgroupsIn(t, { memoryReservePercent: 50 });
  await cgroups.start({ milliCpu: 2000, memoryBytes: 8 * gi }, true);
  const limits = async (): Promise<number[]> =>
    Promise.all(
      ["burstable", "besteffort"].map(async (name) => Number(await read(`memory/test/kubepods/${name}/memory.limit_in_bytes`))),
    );
  await cgroups.updateClasses([
    aNodePod({ containers: [container(full, full)] }),
    aNodePod({ containers: [container({ cpu: "250m", memory: "1Gi" })] }),
    aNodePod({ containers: [container({ cpu: "250m", memory: "1Gi" })] }),
  ]);
  assert.deepEqual(await limits(), [7.5 * gi, 6.5 * gi]);
  assert.equal(await read("cpu/test/kubepods/burstable/cpu.shares"), "512");
});

test("a QoS class that uses more memory than its new limit is limited to what it uses", async (t) => {
  const tried: unknown[] = [];
  const log = { ...discardLogger, warn: (_: string, { value }: { value?: unknown } = {}) => void tried.push(value) };
  const { cgroups, mountPoint } = await cgroupsIn(t, { memoryReservePercent: 50, log });
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1000 }, true);
  const burstable = join(mountPoint, "memory/test/kubepods/burstable");
  await mkdir(join(burstable, "memory.limit_in_bytes")); // what the kernel refuses
  await writeFile(join(burstable, "memory.usage_in_bytes"), "1234\n");
  await cgroups.updateClasses([]);
  assert.deepEqual(tried, [1000, 1234]);
});

test("folders beside those of pods are no pods", async (t) => {
  const { cgroups, mountPoint } = await cgroupsIn(t);
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1000 }, false);
  for (const name of ["pod", "tripod1", "poduid-2", "burstable/poduid-3", "besteffort/other"])
    await mkdir(join(mountPoint, "memory/test/kubepods", name));
  assert.deepEqual((await cgroups.list()).toSorted(), ["uid-2", "uid-3"]);
});

test("a cgroup that cannot be accessed does not exist, and reserved resources for it are refused", async (t) => {
  const { cgroups } = await cgroupsIn(t);
  const name = "a".repeat(300); // longer than a file's name may be
  await assert.rejects(cgroups.enforceReserved(`/${name}`, { memory: "1Gi" }), { message: `["${name}"] cgroup does not exist` });
});

test("pods get cgroups below their QoS class in every hierarchy, and they are removed with the pod", async (t) => {
  const { cgroups, mountPoint } = await cgroupsIn(t);
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1024 ** 3 }, true);
  const pod = aNodePod({ containers: [container(full, full)] });
  assert.equal(cgroups.parentOf(pod), "/test/kubepods/poduid-1");
  assert.equal(cgroups.parentOf(aNodePod()), "/test/kubepods/besteffort/poduid-1");
  await cgroups.ensure(pod);
  assert.equal(await readFile(join(mountPoint, "cpu/test/kubepods/poduid-1/cpu.cfs_quota_us"), "utf8"), "100000");
  assert.equal(await readFile(join(mountPoint, "pids/test/kubepods/poduid-1/pids.max"), "utf8"), "50");
  assert.deepEqual([await cgroups.list(), await cgroups.exists("uid-1")], [["uid-1"], true]);
  // The kernel removes a cgroup's files with it; here they are plain files.
  for (const controller of ["memory", "pids", "cpu"]) {
    assert.equal(await cgroups.remove("uid-1"), false, "something is left in a tree");
    // A tree whose removal fails does not prevent the removal of the others.
    if (controller === "cpu") await assert.rejects(readdir(join(mountPoint, "pids/test/kubepods/poduid-1")), { code: "ENOENT" });
    assert.deepEqual(await cgroups.list(), ["uid-1"], "so that it is tried again");
    const dir = join(mountPoint, controller, "test/kubepods/poduid-1");
    for (const name of await readdir(dir)) await rm(join(dir, name));
  }
  assert.equal(await cgroups.remove("uid-1"), true);
  assert.deepEqual(await cgroups.list(), []);
  for (const controller of ["cpu", "memory", "pids"])
    await assert.rejects(readdir(join(mountPoint, controller, "test/kubepods/poduid-1")), { code: "ENOENT" });
  await cgroups.ensure(pod);
  assert.equal(await readFile(join(mountPoint, "pids/test/kubepods/poduid-1/pids.max"), "utf8"), "50", "limited anew");
});
