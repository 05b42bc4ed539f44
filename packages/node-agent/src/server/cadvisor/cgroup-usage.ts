import { readlinkSync } from "node:fs";
import { opendir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

/** Counters of the kernel for one cgroup and its descendants; fields that it does not report are undefined. */
export interface CgroupUsage {
  cpu?: CpuUsage;
  memory?: MemoryUsage;
  /** Usage by device: `/dev/sda`. */
  disks: ReadonlyMap<string, DiskUsage>;
  threads?: number;
  /** 0 for no limit. */
  threadsMax?: number;
}

interface CpuUsage {
  seconds: number;
  userSeconds: number;
  systemSeconds: number;
  periods: number;
  throttledPeriods: number;
  throttledSeconds: number;
  shares: number;
  periodUs: number;
  /** 0 for no limit. */
  quotaUs: number;
}

interface MemoryUsage {
  usageBytes: number;
  maxUsageBytes: number;
  workingSetBytes: number;
  cacheBytes: number;
  rssBytes: number;
  mappedBytes: number;
  swapBytes: number;
  failures: number;
  /** Page faults of this cgroup alone; of its descendants, too. */
  faults: { container: Faults; hierarchy: Faults };
  /** 0 for no limit. */
  limitBytes: number;
  reservationBytes: number;
  swapLimitBytes: number;
}

interface Faults {
  pgfault: number;
  pgmajfault: number;
}

export interface DiskUsage {
  reads: number;
  writes: number;
  readBytes: number;
  writtenBytes: number;
}

export interface CgroupReader {
  /** @param path below the root of each controller, `/kubepods/pod1`; a missing cgroup has no usage */
  usage(path: string): Promise<CgroupUsage>;
  processes(path: string): Promise<number[]>;
  /** In ms since the epoch; 0 for a missing cgroup. Source: cadvisor container/common/helpers.go getSpecInternal */
  createdMs(path: string): Promise<number>;
}

/** Larger limits mean none: v1 writes the largest multiple of the page size. Source: cadvisor metrics/prometheus.go */
const mostBytes = 2 ** 62;
/** Unit of `cpuacct.stat`, 1/s. */
const userHz = 100;

/** Reads cgroups of version 1 (one hierarchy per controller) or 2. Source: cadvisor container/libcontainer/handler.go */
export async function newCgroupReader(mountPoint = "/sys/fs/cgroup"): Promise<CgroupReader> {
  const unified = (await textOf(join(mountPoint, "cgroup.controllers"))) !== undefined;
  const devices = new Map<string, string>();
  const deviceName = async (number: string): Promise<string> => {
    const known = devices.get(number);
    if (known !== undefined) return known;
    const name = /^DEVNAME=(.+)$/m.exec((await textOf(`/sys/dev/block/${number}/uevent`)) ?? "")?.[1];
    devices.set(number, name === undefined ? "" : `/dev/${name}`);
    return devices.get(number)!;
  };
  const named = async (byNumber: ReadonlyMap<string, DiskUsage>): Promise<Map<string, DiskUsage>> => {
    const all = new Map<string, DiskUsage>();
    for (const [number, disk] of byNumber) all.set(await deviceName(number), disk);
    return all;
  };
  return {
    async usage(path) {
      const of = (controller: string) => (file: string) =>
        textOf(unified ? join(mountPoint, path, file) : join(mountPoint, controller, path, file));
      const [cpu, memory, disks, pids] = await Promise.all([
        unified ? unifiedCpu(of("")) : separateCpu(of("cpu"), of("cpuacct")),
        unified ? unifiedMemory(of("")) : separateMemory(of("memory")),
        (unified ? unifiedDisks(of("")) : separateDisks(of("blkio"))).then(named),
        tasks(of("pids")),
      ]);
      return { ...(cpu && { cpu }), ...(memory && { memory }), disks, ...pids };
    },
    async processes(path) {
      const text = await textOf(
        unified ? join(mountPoint, path, "cgroup.procs") : join(mountPoint, "memory", path, "cgroup.procs"),
      );
      return (text ?? "").split("\n").filter(Boolean).map(Number);
    },
    async createdMs(path) {
      // Its time does not change when children are created, unlike the folder's.
      const file = unified ? join(mountPoint, path, "cgroup.procs") : join(mountPoint, "memory", path, "cgroup.procs");
      return stat(file).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      );
    },
  };
}

type ReadOne = (file: string) => Promise<string | undefined>;

/** @returns undefined for a file that does not exist or cannot be read, as for a cgroup that is removed meanwhile */
async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

/** Lines of `key value`. */
function pairs(text: string | undefined): (key: string) => number {
  const all = new Map(
    (text ?? "").split("\n").map((line): [string, number] => [line.split(" ")[0]!, Number(line.split(" ")[1])]),
  );
  return (key) => all.get(key) ?? 0;
}

const limit = (text: string | undefined): number => {
  const bytes = Number(text ?? 0);
  return Number.isFinite(bytes) && bytes < mostBytes ? bytes : 0; // `max` is not a number
};

async function unifiedCpu(read: ReadOne): Promise<CpuUsage | undefined> {
  const [stat, max, weight] = await Promise.all(["cpu.stat", "cpu.max", "cpu.weight"].map(read));
  if (stat === undefined) return undefined;
  const of = pairs(stat);
  const [quota = "max", period = "100000"] = (max ?? "").trim().split(" ");
  return {
    seconds: of("usage_usec") / 1e6,
    userSeconds: of("user_usec") / 1e6,
    systemSeconds: of("system_usec") / 1e6,
    periods: of("nr_periods"),
    throttledPeriods: of("nr_throttled"),
    throttledSeconds: of("throttled_usec") / 1e6,
    shares: weight === undefined ? 1024 : Math.trunc(2 + ((Number(weight) - 1) * 262_142) / 9999),
    periodUs: Number(period),
    quotaUs: Number(quota) || 0,
  };
}

async function separateCpu(cpu: ReadOne, account: ReadOne): Promise<CpuUsage | undefined> {
  const [usage, times, stat, quota, period, shares] = await Promise.all([
    account("cpuacct.usage"),
    account("cpuacct.stat"),
    cpu("cpu.stat"),
    cpu("cpu.cfs_quota_us"),
    cpu("cpu.cfs_period_us"),
    cpu("cpu.shares"),
  ]);
  if (usage === undefined) return undefined;
  const [time, of] = [pairs(times), pairs(stat)];
  return {
    seconds: Number(usage) / 1e9,
    userSeconds: time("user") / userHz,
    systemSeconds: time("system") / userHz,
    periods: of("nr_periods"),
    throttledPeriods: of("nr_throttled"),
    throttledSeconds: of("throttled_time") / 1e9,
    shares: Number(shares ?? 0),
    periodUs: Number(period ?? 0),
    quotaUs: Math.max(0, Number(quota ?? 0)),
  };
}

async function unifiedMemory(read: ReadOne): Promise<MemoryUsage | undefined> {
  const files = [
    "memory.stat",
    "memory.current",
    "memory.peak",
    "memory.swap.current",
    "memory.max",
    "memory.low",
    "memory.swap.max",
  ];
  const [stat, current, peak, swap, max, low, swapMax] = await Promise.all(files.map(read));
  if (stat === undefined || current === undefined) return undefined; // the root has no memory.current
  const of = pairs(stat);
  const faults = { pgfault: of("pgfault"), pgmajfault: of("pgmajfault") };
  return {
    usageBytes: Number(current),
    maxUsageBytes: Number(peak ?? 0),
    workingSetBytes: Math.max(0, Number(current) - of("inactive_file")),
    cacheBytes: of("file"),
    rssBytes: of("anon"),
    mappedBytes: of("file_mapped"),
    swapBytes: Number(swap ?? 0),
    failures: 0,
    faults: { container: faults, hierarchy: faults },
    limitBytes: limit(max),
    reservationBytes: limit(low),
    swapLimitBytes: limit(swapMax),
  };
}

async function separateMemory(read: ReadOne): Promise<MemoryUsage | undefined> {
  const files = [
    "stat",
    "usage_in_bytes",
    "max_usage_in_bytes",
    "failcnt",
    "limit_in_bytes",
    "soft_limit_in_bytes",
    "memsw.limit_in_bytes",
  ];
  const [stat, usage, peak, failures, max, soft, swap] = await Promise.all(files.map((file) => read(`memory.${file}`)));
  if (stat === undefined) return undefined;
  const of = pairs(stat);
  return {
    usageBytes: Number(usage ?? 0),
    maxUsageBytes: Number(peak ?? 0),
    workingSetBytes: Math.max(0, Number(usage ?? 0) - of("total_inactive_file")),
    cacheBytes: of("total_cache"),
    rssBytes: of("total_rss"),
    mappedBytes: of("total_mapped_file"),
    swapBytes: of("total_swap"),
    failures: Number(failures ?? 0),
    faults: {
      container: { pgfault: of("pgfault"), pgmajfault: of("pgmajfault") },
      hierarchy: { pgfault: of("total_pgfault"), pgmajfault: of("total_pgmajfault") },
    },
    limitBytes: limit(max),
    reservationBytes: limit(soft),
    swapLimitBytes: limit(swap),
  };
}

const noDisk: DiskUsage = { reads: 0, writes: 0, readBytes: 0, writtenBytes: 0 };

/** Lines of `8:0 rbytes=1 wbytes=2 rios=3 wios=4 …`. */
async function unifiedDisks(read: ReadOne): Promise<Map<string, DiskUsage>> {
  const disks = new Map<string, DiskUsage>();
  for (const line of ((await read("io.stat")) ?? "").split("\n").filter(Boolean)) {
    const [number = "", ...fields] = line.split(" ");
    const of = (name: string): number =>
      Number(fields.find((field) => field.startsWith(`${name}=`))?.slice(name.length + 1) ?? 0);
    disks.set(number, { reads: of("rios"), writes: of("wios"), readBytes: of("rbytes"), writtenBytes: of("wbytes") });
  }
  return disks;
}

/** Lines of `8:0 Read 1` in two files, operations and bytes. */
async function separateDisks(read: ReadOne): Promise<Map<string, DiskUsage>> {
  const disks = new Map<string, DiskUsage>();
  const fill = (text: string | undefined, fields: Readonly<Record<string, keyof DiskUsage>>): void => {
    for (const line of (text ?? "").split("\n")) {
      const [number = "", operation = "", count = "0"] = line.split(" ");
      const field = fields[operation];
      if (field !== undefined) disks.set(number, { ...(disks.get(number) ?? noDisk), [field]: Number(count) });
    }
  };
  fill(await read("blkio.throttle.io_serviced_recursive"), { Read: "reads", Write: "writes" });
  fill(await read("blkio.throttle.io_service_bytes_recursive"), { Read: "readBytes", Write: "writtenBytes" });
  return disks;
}

async function tasks(read: ReadOne): Promise<{ threads?: number; threadsMax?: number }> {
  const [current, max] = await Promise.all([read("pids.current"), read("pids.max")]);
  return current === undefined ? {} : { threads: Number(current), threadsMax: limit(max) };
}

export interface InterfaceUsage {
  name: string;
  receive: { bytes: number; packets: number; errors: number; dropped: number };
  transmit: { bytes: number; packets: number; errors: number; dropped: number };
}

const ignoredInterfaces = /^(lo$|veth|docker|nerdctl)/;

/** Network interfaces in the namespace of a process, without the loopback and the host ends of pods' veth pairs. */
export async function interfacesOf(pid: number): Promise<InterfaceUsage[]> {
  return interfacesIn((await textOf(`/proc/${pid}/net/dev`)) ?? "");
}

/** Pure: the interfaces in the text of `/proc/<pid>/net/dev`. */
export function interfacesIn(text: string): InterfaceUsage[] {
  const lines = text.split("\n").slice(2);
  return lines.flatMap((line): InterfaceUsage[] => {
    const [name = "", rest = ""] = line.trim().split(":");
    if (rest === "" || ignoredInterfaces.test(name)) return [];
    const values = rest.trim().split(/\s+/).map(Number);
    const direction = (at: number) => {
      const [bytes = 0, packets = 0, errors = 0, dropped = 0] = values.slice(at, at + 4);
      return { bytes, packets, errors, dropped };
    };
    return [{ name, receive: direction(0), transmit: direction(8) }];
  });
}

/** Directory entries that are read at once, in a turn of the event loop of 2 ms. */
const filesAtOnce = 512;

/**
 * Open files of processes, and how many of them are sockets. Processes that have ended count as none. Links are read synchronously: the
 * kernel has them in memory, and a server may have 100,000 connections: a trip to another thread for each takes twice the CPU.
 */
export async function openFilesOf(pids: readonly number[]): Promise<{ files: number; sockets: number }> {
  const total = { files: 0, sockets: 0 };
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`;
    try {
      for await (const { name } of await opendir(folder, { bufferSize: filesAtOnce })) {
        total.files++;
        if (isSocket(`${folder}/${name}`)) total.sockets++;
      }
    } catch {
      // it has ended
    }
  }
  return total;
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    return false; // closed meanwhile
  }
}

/** Soft limit of open files of a process; undefined when it has ended. */
export async function openFilesLimitOf(pid: number): Promise<number | undefined> {
  const text = /^Max open files\s+(\S+)/m.exec((await textOf(`/proc/${pid}/limits`)) ?? "")?.[1];
  if (text === undefined) return undefined;
  return text === "unlimited" ? -1 : Number(text);
}
