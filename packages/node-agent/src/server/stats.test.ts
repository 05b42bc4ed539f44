import assert from "node:assert/strict";
import files, { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { NodePod } from "../pod/pod.ts";
import { type ContainerRuntime, containerState, sandboxState } from "../runtime/runtime.ts";
import { newCgroupReader } from "./cadvisor/cgroup-usage.ts";
import { ownCgroup } from "./kernel-usage.ts";
import { resourceMetrics } from "./metrics.ts";
import { newCpuSampler, type StatsContext, summary } from "./stats.ts";

const statOf = (uid: string, name: string, cpu: number, { timestamp = 5e9, writable = 0 } = {}) => ({
  attributes: {
    id: `${uid}-${name}`,
    labels: {
      "io.kubernetes.pod.uid": uid,
      "io.kubernetes.pod.name": uid,
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.container.name": name,
    },
  },
  cpu: { timestamp, usageCoreNanoSeconds: { value: cpu } },
  memory: { timestamp, workingSetBytes: { value: cpu * 10 } },
  writableLayer: { timestamp, usedBytes: { value: writable }, inodesUsed: { value: 1 } },
});
const podOf = (uid: string, volumes: object[] = []): NodePod =>
  ({ metadata: { name: uid, namespace: "default", uid }, spec: { containers: [], volumes } }) as unknown as NodePod;

/** @param sandboxes Pod-level statistics; undefined: the runtime is queried for containers only */
function summaryOf(
  pods: readonly NodePod[],
  containers: readonly object[],
  volumes: readonly string[] = [],
  sandboxes?: object[],
) {
  const runtime = {
    listContainerStats: async () => containers,
    listContainers: async () => [{ id: "a-one", createdAt: 3_500_000_000 }],
    listPodSandboxStats: async () => sandboxes,
    listPodSandboxes: async () => [
      ...["gone", "a"].map((id) => ({ id, state: sandboxState.ready })),
      { id: "stopped", state: sandboxState.notReady },
    ],
  } as unknown as ContainerRuntime;
  const usageOf = (name: string) => ({ name, at: 0, usedBytes: 100, inodesUsed: 10 });
  return summary(
    {
      ...fixed,
      ...{ runtime, ofSandboxes: sandboxes !== undefined },
      pods: () => pods,
      volumes: () => volumes.map(usageOf) as never,
    },
    newCpuSampler(),
  );
}

const fixed: Omit<StatsContext, "runtime" | "pods" | "volumes"> = {
  ...{ nodeName: "n", rootDir: tmpdir(), startedAt: 0, now: () => 0, ofSandboxes: false },
  cgroupParentOf: ({ metadata }) => `/kubepods/pod${metadata.uid}`,
  podLogsDir: "/none",
  systemCgroups: { kubelet: "/kubelet", runtime: "", misc: "/gone", pods: "/kubepods" },
};

test("a pod's usage is the sum of its containers'", async () => {
  const { pods } = await summaryOf([podOf("a")], [statOf("a", "one", 3), statOf("a", "two", 4)]);
  assert.deepEqual(
    pods.map(({ cpu, memory, containers }) => [cpu.usageCoreNanoSeconds, memory.workingSetBytes, containers.length]),
    [[7, 70, 2]],
  );
});

test("the usage of 20,000 volumes of a pod is that of each, found without a long turn", async (t) => {
  const names = Array.from({ length: 20_000 }, (_, at) => `v${at}`);
  const pod = podOf(
    "a",
    names.map((name) => ({ name, emptyDir: { medium: "Memory" } })),
  );
  const longest = await longestTurnOf(300, async () => {
    const { pods } = await summaryOf([pod], [statOf("a", "one", 3)], names);
    assert.equal(pods[0]?.volume?.length, names.length);
  });
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < 300, `${longest} ms`);
});

test("a container started when the runtime created it", async () => {
  const stats = await summaryOf([podOf("a")], [statOf("a", "one", 3), statOf("a", "gone", 4)]);
  assert.deepEqual(
    stats.pods[0]?.containers.map(({ startTime }) => Date.parse(startTime)),
    [3_000, 5_000], // whole seconds; of a container that is no longer listed, the time of its statistics
  );
  const lines = resourceMetrics(stats).split("\n");
  assert.ok(lines.includes('container_start_time_seconds{container="one",namespace="default",pod="a"} 3 3000'));
});

test("what the runtime does not report of a container is 0", async () => {
  const { pods } = await summaryOf([podOf("a")], [{ ...statOf("a", "one", 3), memory: null, writableLayer: null }]);
  const [container] = pods[0]?.containers ?? [];
  const time = formatTime(0);
  assert.deepEqual(container?.rootfs, { time, usedBytes: 0, inodesUsed: 0 });
  const { time: at, ...memory } = container.memory;
  assert.deepEqual([at, new Set(Object.values(memory))], [time, new Set([0])]);
});

test("a pod has the start time of its status; one that has none yet began at the look", async () => {
  const started = podOf("a");
  started.status = { startTime: "2022-01-01T00:00:00Z" };
  const { pods } = await summaryOf([started, podOf("b")], [statOf("a", "one", 3), statOf("b", "one", 3)]);
  assert.deepEqual(
    pods.map(({ startTime }) => startTime),
    ["2022-01-01T00:00:00Z", "1970-01-01T00:00:00Z"],
  );
});

test("the machine's CPU time, boot, memory, processes and disk are what the kernel counts", async () => {
  /** Nanoseconds of user, nice, system, irq, softirq and steal. */
  const cpuNs = async () => {
    const values = (await readFile("/proc/stat", "utf8")).split("\n")[0]?.split(/\s+/).slice(1).map(Number) ?? [];
    return [0, 1, 2, 5, 6, 7].reduce((sum, at) => sum + (values[at] ?? 0) * 1e7, 0);
  };
  const before = await cpuNs();
  const { node } = await summaryOf([], []);
  const after = await cpuNs();
  const used = node.cpu.usageCoreNanoSeconds ?? 0;
  assert.ok(before <= used && used <= after, `${before} <= ${used} <= ${after}`);
  const booted = Number(/^btime (\d+)$/m.exec(await readFile("/proc/stat", "utf8"))?.[1]);
  assert.equal(Date.parse(String(node.startTime)), booted * 1000);
  const memInfo = await readFile("/proc/meminfo", "utf8");
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(memInfo)?.[1]) * 1024;
  const { usageBytes = 0, workingSetBytes = 0, availableBytes } = node.memory;
  assert.equal(availableBytes, bytes("MemTotal") - workingSetBytes);
  const inactive = bytes("Inactive\\(file\\)");
  assert.ok(
    Math.abs(usageBytes - workingSetBytes - inactive) <= inactive / 4,
    `${usageBytes} - ${workingSetBytes} of ${inactive}`,
  );
  const { maxpid, curproc } = node.rlimit as { maxpid: number; curproc: number };
  const processes = Number((await readFile("/proc/loadavg", "utf8")).split(" ")[3]?.split("/")[1]);
  assert.equal(maxpid, Number(await readFile("/proc/sys/kernel/pid_max", "utf8")));
  assert.ok(curproc > processes / 2 && curproc < processes * 2, `${curproc} of ${processes}`);
});

test("blocks that are reserved for root are neither used nor available in the node's file system", async (t) => {
  t.mock.method(files, "statfs", async () => ({ blocks: 100, bsize: 10, bfree: 50, bavail: 45, files: 20, ffree: 8 }));
  t.after(syncBuiltinESMExports);
  syncBuiltinESMExports();
  const { node } = await summaryOf([], []);
  t.mock.restoreAll();
  const bytes = { capacityBytes: 1000, usedBytes: 500, availableBytes: 450 };
  for (const fs of [node.fs, (node.runtime as { imageFs: unknown }).imageFs])
    assert.partialDeepStrictEqual(fs, { ...bytes, inodes: 20, inodesUsed: 12, inodesFree: 8 });
});

test("pods that are not of the node and containers that do not run yet are not in the summary", async () => {
  const containers = [statOf("gone", "one", 3), statOf("a", "one", 4), statOf("a", "waiting", 5, { timestamp: 0 })];
  const { pods } = await summaryOf([podOf("a"), podOf("idle")], containers);
  assert.deepEqual(
    pods.map(({ podRef, containers }) => [podRef.uid, containers.map(({ name }) => name)]),
    [["a", ["one"]]],
  );
});

test("sandboxes of pods that are not of the node, and stopped ones, are not in the summary", async () => {
  const sandbox = (uid: string, id = uid) => ({
    attributes: { id, metadata: { uid, name: uid, namespace: "default" } },
    linux: { containers: [] },
  });
  const { pods } = await summaryOf([podOf("a"), podOf("b")], [], [], [sandbox("gone"), sandbox("a"), sandbox("b", "stopped")]);
  assert.deepEqual(
    pods.map(({ podRef }) => podRef.uid),
    ["a"],
  );
});

test("ephemeral storage counts writable layers and volumes on the node's disk", async () => {
  const volumes = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "claimed", persistentVolumeClaim: { claimName: "c" } },
    { name: "config", configMap: { name: "c" } },
  ];
  const containers = [statOf("a", "one", 0, { writable: 7 }), statOf("a", "two", 0, { writable: 8 })];
  const { pods } = await summaryOf([podOf("a", volumes)], containers, ["disk", "memory", "claimed", "config"]);
  const { usedBytes, inodesUsed } = pods[0]?.["ephemeral-storage"] ?? {};
  assert.deepEqual([usedBytes, inodesUsed], [215, 22]);
  assert.deepEqual(
    pods[0]?.volume?.map(({ name, pvcRef }) => [name, pvcRef?.name]),
    [
      ["disk", undefined],
      ["memory", undefined],
      ["claimed", "c"],
      ["config", undefined],
    ],
  );
});

test("samples of containers that are gone are forgotten when there are too many; rates begin anew", () => {
  const { rate } = newCpuSampler();
  const second = 1e9;
  for (let i = 0; i < 10_000; i++) rate(`${i}`, 0, second);
  assert.equal(rate("0", 4 * second, 3 * second), 2 * second, "ten thousand are kept");
  rate("another", 0, second);
  assert.equal(rate("1", 4 * second, 3 * second), 2 * second, "the last rate that is one since its sample");
  assert.deepEqual([rate("2", 4 * second, 3 * second), rate("1", 5 * second, 4 * second)], [0, second]);
});

test("rates are between the samples of one container, at least a second apart, and never negative", () => {
  const { rate } = newCpuSampler();
  const second = 1e9;
  assert.deepEqual(
    [
      rate("a", 0, second),
      rate("a", 4 * second, 3 * second),
      rate("b", 9 * second, 3 * second),
      rate("a", 9 * second, 3.9 * second), // less than a second later: the rate measured last
      rate("a", 5 * second, 4 * second), // since the last sample, not the first
      rate("a", 0, 6 * second), // the counter was reset
      rate("a", 2 * second, 7 * second),
    ],
    [0, 2 * second, 0, 2 * second, second, 0, 2 * second],
  );
});

test("cgroups, network and logs complete what the runtime reports of containers", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-stats-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  };
  await write("cgroup.controllers", "cpu memory");
  const cgroup = async (path: string, usedUs: number, max: string, processes = ""): Promise<void> => {
    await write(`${path}/cpu.stat`, `usage_usec ${usedUs}\n`);
    await write(`${path}/memory.stat`, "anon 100\ninactive_file 50\npgfault 7\npgmajfault 1\n");
    await write(`${path}/memory.current`, "1000\n");
    await write(`${path}/memory.max`, max);
    await write(`${path}/cgroup.procs`, processes);
  };
  await cgroup("kubelet", 10, "max");
  await cgroup("kubepods", 20, "4096");
  await cgroup("kubepods/poda", 30, "max");
  await cgroup("kubepods/poda/sandbox", 1, "max", `${process.pid}\n`);
  await cgroup("kubepods/poda/a-one", 40, "2000", "8\n9\n");
  for (const ended of ["a-old", "old-sandbox"]) await cgroup(`kubepods/poda/${ended}`, 5, "max", "10\n");
  const own = await ownCgroup();
  if (own !== undefined && own !== "/") await cgroup(own, 50, "max");
  await write("logs/default_a_a/one/0.log", "some lines");
  const labels = { "io.kubernetes.pod.uid": "a" };
  const runtime = {
    listContainerStats: async () => [statOf("a", "one", 3, { writable: 5 })],
    listContainers: async () => [
      { id: "a-one", state: containerState.running, labels },
      { id: "a-old", state: containerState.exited, labels },
    ],
    listPodSandboxes: async () => [
      { id: "sandbox", state: sandboxState.ready, metadata: { uid: "a" } },
      { id: "old-sandbox", state: sandboxState.notReady, metadata: { uid: "a" } },
    ],
    imageFilesystems: async () => imageFilesystems,
  } as unknown as ContainerRuntime;
  let imageFilesystems: object[] = [];
  let nowMs = 0;
  const files = { podLogsDir: join(dir, "logs"), now: () => nowMs };
  const context = { ...fixed, ...files, runtime, pods: () => [podOf("a")], volumes: () => [] };
  const [sampler, reader] = [newCpuSampler(), await newCgroupReader(dir)];
  const { node, pods } = await summary(context, sampler, reader);

  const time = "1970-01-01T00:00:00Z";
  const faults = { pageFaults: 7, majorPageFaults: 1 };
  const memory = { time, usageBytes: 1000, workingSetBytes: 950, rssBytes: 100, ...faults };
  const cpu = (usedUs: number) => ({ time, usageNanoCores: 0, usageCoreNanoSeconds: usedUs * 1000 });
  const created = formatTime((await stat(join(dir, "kubepods/cgroup.procs"))).mtimeMs);
  assert.deepEqual(node.systemContainers, [
    { name: "kubelet", startTime: time, cpu: cpu(10), memory },
    { name: "pods", startTime: created, cpu: cpu(20), memory: { ...memory, availableBytes: 3146 } },
  ]);
  assert.ok(node.network);
  const [pod] = pods;
  assert.deepEqual([pod?.cpu, pod?.memory, pod?.process_stats], [cpu(30), memory, { process_count: 3 }]);
  assert.ok(pod?.network);
  const [container] = pod.containers;
  assert.deepEqual([container?.cpu, container?.memory], [cpu(40), { ...memory, availableBytes: 1050 }]);
  assert.equal(container?.rootfs.usedBytes, 5);
  assert.ok(container.rootfs.capacityBytes);
  assert.equal(container.logs?.inodesUsed, 2);
  assert.equal(pod["ephemeral-storage"]?.usedBytes, 5 + container.logs.usedBytes);

  assert.deepEqual(node.runtime, { imageFs: node.fs }, "the runtime tells of none");

  nowMs = 2_000;
  const usage = { usedBytes: { value: 77 }, inodesUsed: { value: 7 } };
  imageFilesystems = [
    { fsId: { mountpoint: "/proc" }, ...usage },
    { fsId: { mountpoint: dir }, usedBytes: { value: 1 } },
  ];
  for (const [path, used] of Object.entries({ kubelet: 1010, "kubepods/poda": 2030, "kubepods/poda/a-one": 4040 }))
    await write(`${path}/cpu.stat`, `usage_usec ${used}\n`);
  const later = await summary(context, sampler, reader);
  const [system] = later.node.systemContainers as { cpu: { usageNanoCores: number } }[];
  const rates = [system, later.pods[0], later.pods[0]?.containers[0]].map((one) => one?.cpu.usageNanoCores);
  assert.deepEqual(rates, [500_000, 1_000_000, 2_000_000], "of each cgroup by itself");
  const [size, images] = [
    { capacityBytes: 0, availableBytes: 0, inodes: 0, inodesFree: 0 },
    { usedBytes: 77, inodesUsed: 7 },
  ];
  assert.deepEqual(later.node.runtime, { imageFs: { time: "1970-01-01T00:00:02Z", ...size, ...images } });
  assert.partialDeepStrictEqual(later.pods[0]?.containers[0]?.rootfs, { ...size, usedBytes: 5 });
  assert.ok(later.pods[0]?.containers[0]?.logs?.capacityBytes);
  imageFilesystems = [{ fsId: { mountpoint: join(dir, "none") }, ...usage }];
  const unknown = (await summary(context, sampler, reader)).node.runtime;
  assert.deepEqual(unknown, { imageFs: { time: "1970-01-01T00:00:02Z", ...images } }, "it cannot be read");
  if (own === undefined || own === "/") return;
  const systemCgroups = { ...fixed.systemCgroups, kubelet: "" };
  const [agent] = (await summary({ ...context, systemCgroups }, newCpuSampler(), reader)).node.systemContainers as {
    name: string;
    cpu: { usageCoreNanoSeconds: number };
  }[];
  assert.deepEqual([agent?.name, agent?.cpu.usageCoreNanoSeconds], ["kubelet", 50_000], "where the agent runs");
});
