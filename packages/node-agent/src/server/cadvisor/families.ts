import type { CgroupUsage, DiskUsage, InterfaceUsage } from "./cgroup-usage.ts";

/** One cgroup, with the labels and measurements that apply to it alone. */
export interface CadvisorSubject {
  /** `container`, `id`, `image`, `name`, `namespace`, `pod`; every series has all of them. */
  labels: Readonly<Record<string, string>>;
  usage: CgroupUsage;
  /** In ms since the epoch; undefined for cgroups that are no containers. */
  startedMs?: number | undefined;
  interfaces?: readonly InterfaceUsage[];
  processes?: { count: number; files: number; sockets: number; maxFiles: number | undefined };
  /** Writable layer. */
  rootfs?: { usedBytes: number; inodesUsed: number } | undefined;
}

interface Sample {
  labels?: Readonly<Record<string, string>>;
  value: number;
}

interface Family {
  name: string;
  type: "counter" | "gauge";
  help: string;
  /** In seconds since the epoch: the time of the scrape. */
  samples(subject: CadvisorSubject, nowSeconds: number): readonly Sample[];
}

type Cpu = NonNullable<CgroupUsage["cpu"]>;
type Memory = NonNullable<CgroupUsage["memory"]>;
type Direction = InterfaceUsage["receive"];

const one = (value: number | undefined): Sample[] => (value === undefined ? [] : [{ value }]);

const ofCpu = (name: string, type: Family["type"], help: string, value: (cpu: Cpu) => number | undefined): Family => ({
  name: `container_${name}`,
  type,
  help,
  samples: ({ usage: { cpu } }) => (cpu === undefined ? [] : one(value(cpu))),
});

const ofMemory = (name: string, help: string, value: (memory: Memory) => number, type: Family["type"] = "gauge"): Family => ({
  name: `container_${name}`,
  type,
  help,
  samples: ({ usage: { memory } }) => (memory === undefined ? [] : one(value(memory))),
});

const ofDisks = (name: string, help: string, field: keyof DiskUsage): Family => ({
  name: `container_fs_${name}`,
  type: "counter",
  help,
  samples: ({ usage }) => [...usage.disks].map(([device, disk]) => ({ labels: { device }, value: disk[field] })),
});

const ofInterfaces = (direction: "receive" | "transmit", name: string, help: string, field: keyof Direction): Family => ({
  name: `container_network_${direction}_${name}_total`,
  type: "counter",
  help,
  samples: ({ interfaces = [] }) =>
    interfaces.map((usage) => ({ labels: { interface: usage.name }, value: usage[direction][field] })),
});

const ofProcesses = (
  name: string,
  help: string,
  value: (processes: NonNullable<CadvisorSubject["processes"]>) => Sample[],
): Family => ({
  name: `container_${name}`,
  type: "gauge",
  help,
  samples: ({ processes }) => (processes === undefined ? [] : value(processes)),
});

const whenLimited = ({ quotaUs }: Cpu, value: number): number | undefined => (quotaUs === 0 ? undefined : value);

/** The series of `/metrics/cadvisor` about containers. Source: cadvisor metrics/prometheus.go */
export const families: readonly Family[] = [
  ofCpu("cpu_cfs_periods_total", "counter", "Number of elapsed enforcement period intervals.", (cpu) =>
    whenLimited(cpu, cpu.periods),
  ),
  ofCpu("cpu_cfs_throttled_periods_total", "counter", "Number of throttled period intervals.", (cpu) =>
    whenLimited(cpu, cpu.throttledPeriods),
  ),
  ofCpu("cpu_cfs_throttled_seconds_total", "counter", "Total time duration the container has been throttled.", (cpu) =>
    whenLimited(cpu, cpu.throttledSeconds),
  ),
  ofCpu("cpu_system_seconds_total", "counter", "Cumulative system cpu time consumed in seconds.", (cpu) => cpu.systemSeconds),
  {
    name: "container_cpu_usage_seconds_total",
    type: "counter",
    help: "Cumulative cpu time consumed in seconds.",
    samples: ({ usage: { cpu } }) => (cpu === undefined ? [] : [{ labels: { cpu: "total" }, value: cpu.seconds }]),
  },
  ofCpu("cpu_user_seconds_total", "counter", "Cumulative user cpu time consumed in seconds.", (cpu) => cpu.userSeconds),
  ofProcesses("file_descriptors", "Number of open file descriptors for the container.", ({ files }) => one(files)),
  ofDisks("reads_bytes_total", "Cumulative count of bytes read", "readBytes"),
  ofDisks("reads_total", "Cumulative count of reads completed", "reads"),
  {
    name: "container_fs_usage_bytes",
    type: "gauge",
    help: "Number of bytes that are consumed by the container on this filesystem.",
    samples: ({ rootfs }) => (rootfs === undefined ? [] : [{ labels: { device: "" }, value: rootfs.usedBytes }]),
  },
  ofDisks("writes_bytes_total", "Cumulative count of bytes written", "writtenBytes"),
  ofDisks("writes_total", "Cumulative count of writes completed", "writes"),
  {
    name: "container_last_seen",
    type: "gauge",
    help: "Last time a container was seen by the exporter",
    samples: (_, nowSeconds) => one(Math.trunc(nowSeconds)),
  },
  ofMemory("memory_cache", "Number of bytes of page cache memory.", ({ cacheBytes }) => cacheBytes),
  ofMemory("memory_failcnt", "Number of memory usage hits limits", ({ failures }) => failures, "counter"),
  {
    name: "container_memory_failures_total",
    type: "counter",
    help: "Cumulative count of memory allocation failures.",
    samples: ({ usage: { memory } }) =>
      memory === undefined
        ? []
        : (["pgfault", "pgmajfault"] as const).flatMap((failure_type) =>
            (["container", "hierarchy"] as const).map((scope) => ({
              labels: { failure_type, scope },
              value: memory.faults[scope][failure_type],
            })),
          ),
  },
  ofMemory("memory_mapped_file", "Size of memory mapped files in bytes.", ({ mappedBytes }) => mappedBytes),
  ofMemory("memory_max_usage_bytes", "Maximum memory usage recorded in bytes", ({ maxUsageBytes }) => maxUsageBytes),
  ofMemory("memory_rss", "Size of RSS in bytes.", ({ rssBytes }) => rssBytes),
  ofMemory("memory_swap", "Container swap usage in bytes.", ({ swapBytes }) => swapBytes),
  ofMemory(
    "memory_usage_bytes",
    "Current memory usage in bytes, including all memory regardless of when it was accessed",
    ({ usageBytes }) => usageBytes,
  ),
  ofMemory("memory_working_set_bytes", "Current working set in bytes.", ({ workingSetBytes }) => workingSetBytes),
  ofInterfaces("receive", "bytes", "Cumulative count of bytes received", "bytes"),
  ofInterfaces("receive", "errors", "Cumulative count of errors encountered while receiving", "errors"),
  ofInterfaces("receive", "packets_dropped", "Cumulative count of packets dropped while receiving", "dropped"),
  ofInterfaces("receive", "packets", "Cumulative count of packets received", "packets"),
  ofInterfaces("transmit", "bytes", "Cumulative count of bytes transmitted", "bytes"),
  ofInterfaces("transmit", "errors", "Cumulative count of errors encountered while transmitting", "errors"),
  ofInterfaces("transmit", "packets_dropped", "Cumulative count of packets dropped while transmitting", "dropped"),
  ofInterfaces("transmit", "packets", "Cumulative count of packets transmitted", "packets"),
  ofProcesses("processes", "Number of processes running inside the container.", ({ count }) => one(count)),
  ofProcesses("sockets", "Number of open sockets for the container.", ({ sockets }) => one(sockets)),
  ofCpu("spec_cpu_period", "gauge", "CPU period of the container.", ({ periodUs }) => periodUs),
  ofCpu("spec_cpu_quota", "gauge", "CPU quota of the container.", (cpu) => whenLimited(cpu, cpu.quotaUs)),
  ofCpu("spec_cpu_shares", "gauge", "CPU share of the container.", ({ shares }) => shares),
  ofMemory("spec_memory_limit_bytes", "Memory limit for the container.", ({ limitBytes }) => limitBytes),
  ofMemory(
    "spec_memory_reservation_limit_bytes",
    "Memory reservation limit for the container.",
    ({ reservationBytes }) => reservationBytes,
  ),
  ofMemory("spec_memory_swap_limit_bytes", "Memory swap limit for the container.", ({ swapLimitBytes }) => swapLimitBytes),
  {
    name: "container_start_time_seconds",
    type: "gauge",
    help: "Start time of the container since unix epoch in seconds.",
    samples: ({ startedMs }) => one(startedMs === undefined ? undefined : startedMs / 1000),
  },
  {
    name: "container_threads",
    type: "gauge",
    help: "Number of threads running inside the container",
    samples: ({ usage }) => one(usage.threads),
  },
  {
    name: "container_threads_max",
    type: "gauge",
    help: "Maximum number of threads allowed inside the container, infinity if value is zero",
    samples: ({ usage }) => one(usage.threadsMax),
  },
  ofProcesses(
    "ulimits_soft",
    "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice",
    ({ maxFiles }) => (maxFiles === undefined ? [] : [{ labels: { ulimit: "max_open_files" }, value: maxFiles }]),
  ),
];
