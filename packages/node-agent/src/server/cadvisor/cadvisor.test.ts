import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { aNodePod } from "../../testing/builders.ts";
import { newFakeRuntime } from "../../testing/fake-runtime.ts";
import { newTestRunner } from "../../testing/runner.ts";
import { newCadvisor } from "./cadvisor.ts";
import { newCgroupReader } from "./cgroup-usage.ts";
import { families } from "./families.ts";

type Files = Readonly<Record<string, string>>;

async function mounted(t: TestContext, files: Files): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-cadvisor-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  return dir;
}

const v2 = (path: string): Files => ({
  "cgroup.controllers": "cpu memory io pids",
  [`${path}/cpu.stat`]:
    "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 10\nnr_throttled 3\nthrottled_usec 70000\n",
  [`${path}/cpu.max`]: "50000 100000\n",
  [`${path}/cpu.weight`]: "79\n",
  [`${path}/memory.stat`]: "anon 100\nfile 200\nfile_mapped 30\ninactive_file 50\npgfault 7\npgmajfault 1\n",
  [`${path}/memory.current`]: "1000\n",
  [`${path}/memory.max`]: "4096\n",
  [`${path}/memory.low`]: "0\n",
  [`${path}/memory.swap.max`]: "max\n",
  [`${path}/io.stat`]: "7:77 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n",
  [`${path}/pids.current`]: "5\n",
  [`${path}/pids.max`]: "max\n",
  [`${path}/cgroup.procs`]: `${process.pid}\n`,
});

const v1 = (path: string): Files => ({
  [`cpuacct/${path}/cpuacct.usage`]: "2500000000\n",
  [`cpuacct/${path}/cpuacct.stat`]: "user 200\nsystem 50\n",
  [`cpu/${path}/cpu.stat`]: "nr_periods 10\nnr_throttled 3\nthrottled_time 70000000\n",
  [`cpu/${path}/cpu.cfs_quota_us`]: "50000\n",
  [`cpu/${path}/cpu.cfs_period_us`]: "100000\n",
  [`cpu/${path}/cpu.shares`]: "2046\n",
  [`memory/${path}/memory.stat`]:
    "cache 1\ntotal_cache 200\ntotal_rss 100\ntotal_mapped_file 30\ntotal_swap 0\ntotal_inactive_file 50\npgfault 7\npgmajfault 1\ntotal_pgfault 7\ntotal_pgmajfault 1\n",
  [`memory/${path}/memory.usage_in_bytes`]: "1000\n",
  [`memory/${path}/memory.limit_in_bytes`]: "4096\n",
  [`memory/${path}/memory.soft_limit_in_bytes`]: "9223372036854771712\n",
  [`blkio/${path}/blkio.throttle.io_serviced_recursive`]: "7:77 Read 3\n7:77 Write 4\n7:77 Total 7\nTotal 7\n",
  [`blkio/${path}/blkio.throttle.io_service_bytes_recursive`]: "7:77 Read 1\n7:77 Write 2\nTotal 3\n",
  [`pids/${path}/pids.current`]: "5\n",
  [`pids/${path}/pids.max`]: "max\n",
  [`memory/${path}/cgroup.procs`]: `${process.pid}\n`,
});

for (const { name, files } of [
  { name: "version 1", files: v1 },
  { name: "version 2", files: v2 },
]) {
  test(`cgroups of ${name}: the same usage is read the same way`, async (t) => {
    const reader = await newCgroupReader(await mounted(t, files("a/b")));
    const { cpu, memory, disks, threads, threadsMax } = await reader.usage("/a/b");
    assert.deepEqual(cpu, {
      seconds: 2.5,
      userSeconds: 2,
      systemSeconds: 0.5,
      periods: 10,
      throttledPeriods: 3,
      throttledSeconds: 0.07,
      shares: 2046,
      periodUs: 100_000,
      quotaUs: 50_000,
    });
    const faults = { pgfault: 7, pgmajfault: 1 };
    assert.deepEqual(memory, {
      usageBytes: 1000,
      maxUsageBytes: 0,
      workingSetBytes: 950,
      cacheBytes: 200,
      rssBytes: 100,
      mappedBytes: 30,
      swapBytes: 0,
      failures: 0,
      faults: { container: faults, hierarchy: faults },
      limitBytes: 4096,
      reservationBytes: 0,
      swapLimitBytes: 0,
    });
    assert.deepEqual([...disks.values()], [{ reads: 3, writes: 4, readBytes: 1, writtenBytes: 2 }]);
    assert.deepEqual([threads, threadsMax], [5, 0]);
    assert.deepEqual(await reader.processes("/a/b"), [process.pid]);
    const none = await reader.usage("/gone");
    assert.deepEqual([none.cpu, none.memory, none.disks.size, none.threads], [undefined, undefined, 0, undefined]);
    assert.deepEqual(await reader.processes("/gone"), []);
  });
}

test("containers, their pod and its classes have cadvisor's labels; the network is the sandbox's", async (t) => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const { runner } = await newTestRunner(t, runtime, clock);
  const pod = aNodePod();
  await runner.sync(pod, new AbortController().signal);
  const container = runtime.find("main");
  assert.ok(container);
  const parent = `/kubepods/besteffort/pod${pod.metadata.uid}`;
  const mountPoint = await mounted(
    t,
    Object.assign(
      {},
      ...["/kubepods", "/kubepods/besteffort", parent, `${parent}/${container.id}`, `${parent}/${container.sandboxId}`].map(v2),
    ),
  );
  const page = newCadvisor({
    runtime,
    pods: () => [pod],
    cgroupParentOf: () => parent,
    sandboxImage: "registry.test/pause:3",
    machine: { cpuCount: 2, memoryBytes: 1024 },
    now: () => clock.now(),
    mountPoint,
  });
  const text = await page();
  const labelsOf = (name: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`))
      .map((line) => line.slice(name.length, line.lastIndexOf(" ")));
  const rest = 'namespace="default",pod="web"';
  assert.deepEqual(labelsOf("container_memory_working_set_bytes"), [
    '{container="",id="/kubepods",image="",name="",namespace="",pod=""}',
    '{container="",id="/kubepods/besteffort",image="",name="",namespace="",pod=""}',
    `{container="",id="${parent}",image="",name="",${rest}}`,
    `{container="",id="${parent}/${container.sandboxId}",image="registry.test/pause:3",name="${container.sandboxId}",${rest}}`,
    `{container="main",id="${parent}/${container.id}",image="registry.test/busybox:1",name="${container.id}",${rest}}`,
  ]);
  assert.ok(
    labelsOf("container_network_receive_bytes_total").every((labels) => labels.includes(`name="${container.sandboxId}"`)),
  );
  assert.ok(text.includes(`container_cpu_cfs_throttled_periods_total{container="main",id="${parent}/${container.id}"`));
  assert.match(text, /^container_processes\{container="main",.*\} 1$/m);
  assert.match(text, /^container_file_descriptors\{container="main",.*\} [1-9]\d*$/m);
  assert.match(text, /^container_ulimits_soft\{container="main",.*,ulimit="max_open_files"\} -?\d+$/m);
  for (const { name } of families) assert.ok(text.includes(`# TYPE ${name} `), name);
});

/** The metrics and labels that the rules and dashboards of kubernetes-mixin and kube-prometheus for this release use. */
const read = [
  "container_cpu_cfs_periods_total",
  "container_cpu_cfs_throttled_periods_total",
  "container_cpu_usage_seconds_total",
  "container_fs_reads_bytes_total",
  "container_fs_reads_total",
  "container_fs_writes_bytes_total",
  "container_fs_writes_total",
  "container_memory_cache",
  "container_memory_rss",
  "container_memory_swap",
  "container_memory_working_set_bytes",
  ...["receive", "transmit"].flatMap((way) =>
    ["bytes", "packets", "packets_dropped"].map((what) => `container_network_${way}_${what}_total`),
  ),
];

test("every family that kubernetes-mixin's rules and dashboards read exists", () => {
  const names = new Set(families.map(({ name }) => name));
  assert.deepEqual(
    read.filter((name) => !names.has(name)),
    [],
  );
  assert.equal(names.size, families.length, "no name twice");
});
