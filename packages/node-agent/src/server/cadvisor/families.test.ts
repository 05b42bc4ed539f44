import assert from "node:assert/strict";
import { test } from "node:test";
import { type CadvisorSubject, families } from "./families.ts";

const direction = (from: number) => ({ bytes: from, packets: from + 1, errors: from + 2, dropped: from + 3 });
const subject: CadvisorSubject = {
  labels: {},
  usage: {
    cpu: {
      ...{ seconds: 1.5, userSeconds: 2.5, systemSeconds: 3.5, periods: 4, throttledPeriods: 5, throttledSeconds: 6.5 },
      ...{ shares: 7, periodUs: 8, quotaUs: 9 },
    },
    memory: {
      ...{ usageBytes: 10, maxUsageBytes: 11, workingSetBytes: 12, cacheBytes: 13, rssBytes: 14, mappedBytes: 15, swapBytes: 16 },
      ...{ failures: 17, limitBytes: 22, reservationBytes: 23, swapLimitBytes: 24 },
      faults: { container: { pgfault: 18, pgmajfault: 19 }, hierarchy: { pgfault: 20, pgmajfault: 21 } },
    },
    disks: new Map([
      ["/dev/a", { reads: 25, writes: 26, readBytes: 27, writtenBytes: 28 }],
      ["/dev/b", { reads: 29, writes: 30, readBytes: 31, writtenBytes: 32 }],
    ]),
    threads: 33,
    threadsMax: 34,
  },
  startedMs: 35_500,
  interfaces: [{ name: "eth0", receive: direction(40), transmit: direction(50) }],
  processes: { count: 60, files: 61, sockets: 62, maxFiles: 63 },
  rootfs: { usedBytes: 64, inodesUsed: 65 },
};

const nowSeconds = 70.9;
const samplesOf = (one: CadvisorSubject): Record<string, unknown[]> =>
  Object.fromEntries(
    families.map(({ name, samples }) => [
      name.replace(/^container_/, ""),
      samples(one, nowSeconds).flatMap(({ labels = {}, value }) => [...Object.values(labels), value]),
    ]),
  );

test("each family shows its own measurement, with the labels of a disk, an interface or a kind of fault", () => {
  assert.deepEqual(samplesOf(subject), {
    cpu_cfs_periods_total: [4],
    cpu_cfs_throttled_periods_total: [5],
    cpu_cfs_throttled_seconds_total: [6.5],
    cpu_system_seconds_total: [3.5],
    cpu_usage_seconds_total: ["total", 1.5],
    cpu_user_seconds_total: [2.5],
    file_descriptors: [61],
    fs_reads_bytes_total: ["/dev/a", 27, "/dev/b", 31],
    fs_reads_total: ["/dev/a", 25, "/dev/b", 29],
    fs_usage_bytes: ["", 64],
    fs_writes_bytes_total: ["/dev/a", 28, "/dev/b", 32],
    fs_writes_total: ["/dev/a", 26, "/dev/b", 30],
    last_seen: [70],
    memory_cache: [13],
    memory_failcnt: [17],
    memory_failures_total: [
      ...["pgfault", "container", 18, "pgfault", "hierarchy", 20],
      ...["pgmajfault", "container", 19, "pgmajfault", "hierarchy", 21],
    ],
    memory_mapped_file: [15],
    memory_max_usage_bytes: [11],
    memory_rss: [14],
    memory_swap: [16],
    memory_usage_bytes: [10],
    memory_working_set_bytes: [12],
    network_receive_bytes_total: ["eth0", 40],
    network_receive_errors_total: ["eth0", 42],
    network_receive_packets_dropped_total: ["eth0", 43],
    network_receive_packets_total: ["eth0", 41],
    network_transmit_bytes_total: ["eth0", 50],
    network_transmit_errors_total: ["eth0", 52],
    network_transmit_packets_dropped_total: ["eth0", 53],
    network_transmit_packets_total: ["eth0", 51],
    processes: [60],
    sockets: [62],
    spec_cpu_period: [8],
    spec_cpu_quota: [9],
    spec_cpu_shares: [7],
    spec_memory_limit_bytes: [22],
    spec_memory_reservation_limit_bytes: [23],
    spec_memory_swap_limit_bytes: [24],
    start_time_seconds: [35.5],
    threads: [33],
    threads_max: [34],
    ulimits_soft: ["max_open_files", 63],
  });
});

test("what was not measured is left out, and a cgroup without a CPU quota has no periods", () => {
  const { cpu } = subject.usage;
  const shown = (one: CadvisorSubject): string[] =>
    Object.entries(samplesOf(one)).flatMap(([name, samples]) => (samples.length > 0 ? [name] : []));
  assert.deepEqual(shown({ labels: {}, usage: { disks: new Map() } }), ["last_seen"]);
  assert.ok(cpu !== undefined);
  assert.deepEqual(shown({ labels: {}, usage: { disks: new Map(), cpu: { ...cpu, quotaUs: 0 } } }), [
    "cpu_system_seconds_total",
    "cpu_usage_seconds_total",
    "cpu_user_seconds_total",
    "last_seen",
    "spec_cpu_period",
    "spec_cpu_shares",
  ]);
});
