import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import { claimNameOf } from "@coxswain/apimachinery/volumes/claims-of-pod";
import type { NodePod } from "../pod/pod.ts";
import { filesystemOf } from "../resources/machine.ts";
import { usageBelow } from "../resources/usage.ts";
import type { Cri } from "../runtime/cri-schema.ts";
import { labelNames } from "../runtime/labels.ts";
import { podLogDirectory } from "../runtime/pod-logs.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { VolumeUsage } from "../volumes/volume-usage.ts";
import { type CgroupReader, type CgroupUsage, interfacesOf } from "./cadvisor/cgroup-usage.ts";
import { type KernelUsage, kernelUsage, networkStats, ownCgroup } from "./kernel-usage.ts";
import { listSandboxStats, type SandboxSummary, sandboxSummary } from "./sandbox-stats.ts";
import type { CpuStats, MemoryStats } from "./usage-stats.ts";

export interface StatsContext {
  runtime: ContainerRuntime;
  nodeName: string;
  rootDir: string;
  pods: () => readonly NodePod[];
  /** Volume usage of a Pod, as of the last measurement. */
  volumes: (uid: string) => readonly VolumeUsage[];
  startedAt: number;
  now: () => number;
  /** Use Pod-level statistics of the runtime (PodAndContainerStatsFromCRI). */
  ofSandboxes: boolean;
  /** `""` when the runtime decides. */
  cgroupParentOf: (pod: NodePod) => string;
  podLogsDir: string;
  /** `""` is left out, except for the agent's own, which is then where the agent runs. */
  systemCgroups: Readonly<Record<"kubelet" | "runtime" | "misc" | "pods", string>>;
}

export interface Summary {
  node: Record<string, unknown> & { cpu: CpuStats; memory: MemoryStats };
  pods: PodSummary[];
}

interface PodSummary extends Pick<SandboxSummary, "network" | "process_stats"> {
  podRef: { name: string; namespace: string; uid: string };
  startTime: string;
  containers: ContainerSummary[];
  cpu: CpuStats;
  memory: MemoryStats;
  volume?: VolumeStats[];
  "ephemeral-storage"?: Omit<VolumeStats, "name">;
}

interface VolumeStats extends Omit<VolumeUsage, "at"> {
  time: string;
  pvcRef?: { name: string; namespace: string };
}

interface SystemContainer {
  name: string;
  startTime: string;
  cpu?: CpuStats;
  memory?: MemoryStats;
}

interface ContainerSummary {
  name: string;
  startTime: string;
  cpu: CpuStats;
  memory: MemoryStats;
  rootfs: FileUsage;
  logs?: FileUsage;
}

/** Usage, and the file system that it is part of. */
interface FileUsage extends Partial<Omit<VolumeStats, "name" | "time" | "usedBytes" | "inodesUsed" | "pvcRef">> {
  time: string;
  usedBytes: number;
  inodesUsed: number;
}

/**
 * The response of `/stats/summary`.
 * @param reader what runtimes and `/proc` do not tell is read from cgroups; left out where nobody reads it, `/metrics/resource`
 * Source: k8s.io/kubelet pkg/apis/stats/v1alpha1/types.go
 */
export async function summary(context: StatsContext, sampler: CpuSampler, reader?: CgroupReader): Promise<Summary> {
  const [{ containers, sandboxes }, listed, fs, { cpu, bootedMs }, memory] = await Promise.all([
    fromRuntime(context),
    context.runtime.listContainers(),
    filesystemOf(context.rootDir),
    nodeCpu(),
    nodeMemory(),
  ]);
  const now = context.now();
  const time = formatTime(now);
  const byPod = new Map<string, PodSummary>();
  const createdAt = new Map(listed.map((container) => [container.id, container.createdAt ?? 0]));
  const wanted = new Map(context.pods().map((pod) => [pod.metadata.uid, pod]));
  const parents = new Map([...wanted].map(([uid, pod]) => [uid, context.cgroupParentOf(pod)]));
  // Statistics of sandboxes are the runtime's alone.
  const kernel =
    reader === undefined || sandboxes !== undefined ? undefined : await kernelUsage(context.runtime, reader, parents);
  const podOf = (uid: string, name: string, namespace: string): PodSummary =>
    byPod.getOrInsertComputed(uid, () => ({
      podRef: { name, namespace, uid },
      startTime: wanted.get(uid)?.status?.startTime ?? time,
      containers: [],
      cpu: { time, usageNanoCores: 0, usageCoreNanoSeconds: 0 },
      memory: { time, workingSetBytes: 0, usageBytes: 0, rssBytes: 0 },
    }));
  for (const stat of containers) {
    const labels = stat.attributes?.labels ?? {};
    const uid = labels[labelNames.podUid];
    const name = labels[labelNames.containerName];
    const runs = (stat.cpu?.timestamp ?? 0) > 0;
    if (uid === undefined || name === undefined || !wanted.has(uid) || !runs) continue;
    const pod = podOf(uid, labels[labelNames.podName] ?? "", labels[labelNames.podNamespace] ?? "");
    const id = stat.attributes?.id ?? "";
    const container = containerSummary(stat, name, createdAt.get(id) ?? 0, sampler);
    Object.assign(container, measured(kernel?.containers.get(id), `cgroup ${id}`, now, sampler));
    pod.containers.push(container);
    for (const field of ["usageNanoCores", "usageCoreNanoSeconds"] as const)
      pod.cpu[field] = (pod.cpu[field] ?? 0) + (container.cpu[field] ?? 0);
    for (const field of ["workingSetBytes", "usageBytes", "rssBytes"] as const) {
      pod.memory[field] = (pod.memory[field] ?? 0) + (container.memory[field] ?? 0);
    }
  }
  for (const stat of sandboxes ?? []) {
    const of = stat.attributes?.metadata;
    if (of != null && wanted.has(of.uid)) Object.assign(podOf(of.uid, of.name, of.namespace), sandboxSummary(stat));
  }
  const storage = {
    time,
    availableBytes: fs.availableBytes,
    capacityBytes: fs.capacityBytes,
    usedBytes: fs.usedBytes,
    inodesFree: fs.inodesFree,
    inodes: fs.inodes,
    inodesUsed: fs.inodes - fs.inodesFree,
  };
  if (kernel !== undefined) for (const pod of byPod.values()) addKernelUsage(pod, kernel, now, sampler);
  const images = reader === undefined ? storage : await imageFs(context.runtime, storage);
  if (reader !== undefined) for (const pod of byPod.values()) await addFiles(pod, context.podLogsDir, storage, images);
  return {
    node: {
      nodeName: context.nodeName,
      ...(reader && { systemContainers: await systemContainers(context, sampler, reader) }),
      startTime: formatTime(bootedMs),
      cpu: { time, usageNanoCores: sampler.rate("node", cpu, now * 1e6), usageCoreNanoSeconds: cpu },
      memory: { time, ...memory, ...(reader && faults(await reader.usage("/"))) },
      ...(reader && { network: networkStats(time, await interfacesOf(1)) }),
      fs: storage,
      runtime: { imageFs: images },
      rlimit: await rlimit(time),
    },
    pods: [...byPod.values()].map((pod) => withVolumes(pod, wanted.get(pod.podRef.uid), context, storage)),
  };
}

/** What images use of their file system. Source: pkg/kubelet/stats/cri_stats_provider.go ImageFsStats */
async function imageFs(runtime: ContainerRuntime, node: FileUsage): Promise<FileUsage> {
  const [first] = await runtime.imageFilesystems();
  if (first === undefined) return node;
  const { fsId, usedBytes, inodesUsed } = first;
  const size = await filesystemOf(fsId?.mountpoint ?? "").catch(() => undefined);
  return {
    time: node.time,
    ...(size && {
      availableBytes: size.availableBytes,
      capacityBytes: size.capacityBytes,
      inodesFree: size.inodesFree,
      inodes: size.inodes,
    }),
    usedBytes: usedBytes?.value ?? 0,
    inodesUsed: inodesUsed?.value ?? 0,
  };
}

/** CPU and memory of a cgroup; nothing for a missing one. @param id of the samples of its CPU usage */
function measured(
  usage: CgroupUsage | undefined,
  id: string,
  nowMs: number,
  sampler: CpuSampler,
): { cpu?: CpuStats; memory?: MemoryStats } {
  const { cpu, memory } = usage ?? {};
  const time = formatTime(nowMs);
  const used = Math.round((cpu?.seconds ?? 0) * 1e9);
  return {
    ...(cpu && { cpu: { time, usageNanoCores: sampler.rate(id, used, nowMs * 1e6), usageCoreNanoSeconds: used } }),
    ...(memory && {
      memory: {
        time,
        ...(memory.limitBytes > 0 && { availableBytes: Math.max(0, memory.limitBytes - memory.workingSetBytes) }),
        usageBytes: memory.usageBytes,
        workingSetBytes: memory.workingSetBytes,
        rssBytes: memory.rssBytes,
        ...faults(usage),
      },
    }),
  };
}

/** Page faults of the cgroup alone, as cadvisor counts them. */
function faults(usage: CgroupUsage | undefined): Pick<MemoryStats, "pageFaults" | "majorPageFaults"> {
  const own = usage?.memory?.faults.container;
  return own === undefined ? {} : { pageFaults: own.pgfault, majorPageFaults: own.pgmajfault };
}

/** Source: pkg/kubelet/stats/cri_stats_provider.go addPodNetworkStats, addPodCPUMemoryStats, addProcessStats */
function addKernelUsage(pod: PodSummary, kernel: KernelUsage, nowMs: number, sampler: CpuSampler): void {
  const { cgroup, interfaces, processes } = kernel.pods.get(pod.podRef.uid)!;
  Object.assign(pod, measured(cgroup, `pod ${pod.podRef.uid}`, nowMs, sampler));
  if (interfaces !== undefined) pod.network = networkStats(formatTime(nowMs), interfaces);
  pod.process_stats = { process_count: processes };
}

/** The size of a Pod's logs, and the file systems of its logs and writable layers. */
async function addFiles(pod: PodSummary, podLogsDir: string, node: FileUsage, images: FileUsage): Promise<void> {
  const logs = podLogDirectory(podLogsDir, { metadata: pod.podRef });
  for (const container of pod.containers) {
    const { bytes, inodes } = await usageBelow(join(logs, container.name));
    container.logs = { ...node, usedBytes: bytes, inodesUsed: inodes };
    container.rootfs = { ...images, ...container.rootfs };
  }
}

/** Usage by daemons and by all Pods together. Source: pkg/kubelet/server/stats/summary_sys_containers.go */
async function systemContainers(
  { systemCgroups, startedAt, now }: StatsContext,
  sampler: CpuSampler,
  reader: CgroupReader,
): Promise<SystemContainer[]> {
  const found: SystemContainer[] = [];
  const cgroups = { ...systemCgroups, kubelet: systemCgroups.kubelet || ((await ownCgroup()) ?? "") };
  for (const [name, path] of Object.entries(cgroups)) {
    const usage = path === "" ? undefined : measured(await reader.usage(path), `system ${name}`, now(), sampler);
    if (usage?.cpu === undefined && usage?.memory === undefined) continue;
    found.push({ name, startTime: formatTime(name === "kubelet" ? startedAt : await reader.createdMs(path)), ...usage });
  }
  return found;
}

/** Container statistics, and sandbox statistics when the runtime supports them. */
async function fromRuntime({
  runtime,
  ofSandboxes,
}: StatsContext): Promise<{ containers: Cri<"ContainerStats">[]; sandboxes: Cri<"PodSandboxStats">[] | undefined }> {
  const sandboxes = ofSandboxes ? await listSandboxStats(runtime) : undefined;
  if (sandboxes === undefined) return { containers: await runtime.listContainerStats(), sandboxes };
  return { containers: sandboxes.flatMap(({ linux }) => linux?.containers ?? []), sandboxes };
}

/** Adds volume usage and ephemeral storage: writable layers, logs and the volumes that are deleted with the Pod. */
function withVolumes(
  summary: PodSummary,
  pod: NodePod | undefined,
  context: StatsContext,
  node: Omit<VolumeStats, "name">,
): PodSummary {
  const byName = new Map(pod?.spec.volumes?.map((volume) => [volume.name, volume])); // a Pod may have 20,000
  const volume = context.volumes(summary.podRef.uid).map(({ at, ...usage }): VolumeStats => {
    const volume = byName.get(usage.name);
    const claim = volume && claimNameOf(pod!, volume);
    const pvcRef = claim === undefined ? {} : { pvcRef: { name: claim, namespace: summary.podRef.namespace } };
    return { time: formatTime(at), ...usage, ...pvcRef };
  });
  const inMemory = new Set(pod?.spec.volumes?.filter(({ emptyDir }) => emptyDir?.medium === "Memory").map(({ name }) => name));
  const own = [
    ...volume.filter(({ name, pvcRef }) => pvcRef === undefined && !inMemory.has(name)),
    ...summary.containers.flatMap(({ rootfs, logs }) => (logs === undefined ? [rootfs] : [rootfs, logs])),
  ];
  const sum = (field: "usedBytes" | "inodesUsed"): number => own.reduce((total, one) => total + one[field], 0);
  return {
    ...summary,
    ...(volume.length > 0 && { volume }),
    "ephemeral-storage": { ...node, usedBytes: sum("usedBytes"), inodesUsed: sum("inodesUsed") },
  };
}

/** @param createdAt in ns since the epoch; 0 when the container has gone since its statistics were read */
function containerSummary(stat: Cri<"ContainerStats">, name: string, createdAt: number, sampler: CpuSampler): ContainerSummary {
  const cpuTime = formatTime((stat.cpu?.timestamp ?? 0) / 1e6);
  const used = stat.cpu?.usageCoreNanoSeconds?.value ?? 0;
  const { memory } = stat;
  const id = stat.attributes?.id ?? "";
  return {
    name,
    startTime: createdAt > 0 ? formatTime(createdAt / 1e6) : cpuTime,
    cpu: { time: cpuTime, usageNanoCores: sampler.rate(id, used, stat.cpu?.timestamp ?? 0), usageCoreNanoSeconds: used },
    memory: {
      time: formatTime((memory?.timestamp ?? 0) / 1e6),
      usageBytes: memory?.usageBytes?.value ?? 0,
      workingSetBytes: memory?.workingSetBytes?.value ?? 0,
      rssBytes: memory?.rssBytes?.value ?? 0,
      pageFaults: memory?.pageFaults?.value ?? 0,
      majorPageFaults: memory?.majorPageFaults?.value ?? 0,
    },
    rootfs: {
      time: formatTime((stat.writableLayer?.timestamp ?? 0) / 1e6),
      usedBytes: stat.writableLayer?.usedBytes?.value ?? 0,
      inodesUsed: stat.writableLayer?.inodesUsed?.value ?? 0,
    },
  };
}

/** Computes CPU usage rates from cumulative counters; at most one new sample per second and ID. */
interface CpuSampler {
  rate(id: string, usedNs: number, atNs: number): number;
}

/** Creates a sampler without samples: the first rate of an ID is 0. */
export function newCpuSampler(): CpuSampler {
  const samples = new Map<string, { usedNs: number; atNs: number; rate: number }>();
  return {
    rate(id, usedNs, atNs) {
      const before = samples.get(id);
      if (before !== undefined && atNs - before.atNs < 1e9) return before.rate;
      const rate = before === undefined ? 0 : Math.max(0, Math.round(((usedNs - before.usedNs) * 1e9) / (atNs - before.atNs)));
      if (samples.size > 10_000) samples.clear();
      samples.set(id, { usedNs, atNs, rate });
      return rate;
    },
  };
}

const nsPerTick = 1e7;

/** CPU time used since boot in nanoseconds: user, nice, system, irq, softirq, steal. */
async function nodeCpu(): Promise<{ cpu: number; bootedMs: number }> {
  const text = await readFile("/proc/stat", "utf8");
  const line = text.split("\n")[0] ?? "";
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(/\s+/).slice(1).map(Number);
  const bootedMs = Number(/^btime (\d+)$/m.exec(text)?.[1] ?? 0) * 1000;
  return { cpu: (user + nice + system + irq + softirq + steal) * nsPerTick, bootedMs };
}

async function nodeMemory(): Promise<Omit<MemoryStats, "time">> {
  const text = await readFile("/proc/meminfo", "utf8");
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0) * 1024;
  const total = bytes("MemTotal");
  const inactive = bytes("Inactive\\(file\\)");
  const usageBytes = total - bytes("MemFree");
  const workingSetBytes = Math.max(0, usageBytes - inactive);
  return { availableBytes: total - workingSetBytes, usageBytes, workingSetBytes, rssBytes: bytes("AnonPages") };
}

async function rlimit(time: string): Promise<Record<string, unknown>> {
  const maxpid = Number((await readFile("/proc/sys/kernel/pid_max", "utf8").catch(() => "0")).trim());
  const load = await readFile("/proc/loadavg", "utf8").catch(() => "");
  const curproc = Number(load.split(" ")[3]?.split("/")[1] ?? 0);
  return { time, maxpid, curproc };
}
