import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { aNodePod } from "../../testing/builders.ts";
import { newFakeRuntime } from "../../testing/fake-runtime.ts";
import { newTestRunner } from "../../testing/runner.ts";
import { cgroupOf, newCadvisor } from "./cadvisor.ts";
import { interfacesIn, newCgroupReader, openFilesOf } from "./cgroup-usage.ts";
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
  [`${path}/memory.peak`]: "1500\n",
  [`${path}/memory.swap.current`]: "7\n",
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
    "cache 1\ntotal_cache 200\ntotal_rss 100\ntotal_mapped_file 30\ntotal_swap 7\ntotal_inactive_file 50\npgfault 5\npgmajfault 0\ntotal_pgfault 7\ntotal_pgmajfault 1\n",
  [`memory/${path}/memory.usage_in_bytes`]: "1000\n",
  [`memory/${path}/memory.max_usage_in_bytes`]: "1500\n",
  [`memory/${path}/memory.failcnt`]: "2\n",
  [`memory/${path}/memory.limit_in_bytes`]: "4096\n",
  [`memory/${path}/memory.soft_limit_in_bytes`]: "9223372036854771712\n",
  [`blkio/${path}/blkio.throttle.io_serviced_recursive`]: "7:77 Read 3\n7:77 Write 4\n7:77 Total 7\nTotal 7\n",
  [`blkio/${path}/blkio.throttle.io_service_bytes_recursive`]: "7:77 Read 1\n7:77 Write 2\nTotal 3\n",
  [`pids/${path}/pids.current`]: "5\n",
  [`pids/${path}/pids.max`]: "max\n",
  [`memory/${path}/cgroup.procs`]: `${process.pid}\n`,
});

const faults = { pgfault: 7, pgmajfault: 1 };
for (const { name, files, own } of [
  { name: "version 1", files: v1, own: { failures: 2, faults: { container: { pgfault: 5, pgmajfault: 0 }, hierarchy: faults } } },
  { name: "version 2", files: v2, own: { failures: 0, faults: { container: faults, hierarchy: faults } } },
]) {
  test(`cgroups of ${name}: the same usage is read the same way`, async (t) => {
    const reader = await newCgroupReader(await mounted(t, files("a/b")));
    const { cpu, memory, disks, threads, threadsMax } = await reader.usage("/a/b");
    assert.deepEqual([await reader.processes("/a/b"), await reader.processes("/none")], [[process.pid], []]);
    assert.deepEqual([(await reader.createdMs("/a/b")) > 0, await reader.createdMs("/none")], [true, 0]);
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
    assert.deepEqual(memory, {
      usageBytes: 1000,
      maxUsageBytes: 1500,
      workingSetBytes: 950,
      cacheBytes: 200,
      rssBytes: 100,
      mappedBytes: 30,
      swapBytes: 7,
      ...own,
      limitBytes: 4096,
      reservationBytes: 0,
      swapLimitBytes: 0,
    });
    assert.deepEqual([...disks.keys()], [""], "a device that the kernel does not name");
    assert.deepEqual([...disks.values()], [{ reads: 3, writes: 4, readBytes: 1, writtenBytes: 2 }]);
    assert.deepEqual([threads, threadsMax], [5, 0]);
    assert.deepEqual(await reader.processes("/a/b"), [process.pid]);
    const none = await reader.usage("/gone");
    assert.deepEqual([none.cpu, none.memory, none.disks.size, none.threads], [undefined, undefined, 0, undefined]);
    assert.deepEqual(await reader.processes("/gone"), []);
  });
}

for (const { name, unlimited } of [
  {
    name: "version 1",
    unlimited: { ...v1("a"), "cpu/a/cpu.cfs_quota_us": "-1\n", "memory/a/memory.stat": "total_inactive_file 2000\n" },
  },
  { name: "version 2", unlimited: { ...v2("a"), "a/cpu.max": "max 100000\n", "a/memory.stat": "inactive_file 2000\n" } },
]) {
  test(`cgroups of ${name}: without a quota it is 0, and a working set is never negative`, async (t) => {
    const { cpu, memory } = await (await newCgroupReader(await mounted(t, unlimited))).usage("/a");
    assert.deepEqual([cpu?.quotaUs, memory?.workingSetBytes], [0, 0]);
  });
}

for (const { parent, cgroup } of [
  { parent: "/kubepods/pod1", cgroup: "/kubepods/pod1/x" },
  { parent: "/kubepods/pod1", cgroup: "/kubepods/pod1/crio-x" },
  { parent: "/kubepods.slice/pod1.slice", cgroup: "/kubepods.slice/pod1.slice/cri-containerd-x.scope" },
  { parent: "/kubepods.slice/pod1.slice", cgroup: "/kubepods.slice/pod1.slice/crio-x.scope" },
  { parent: "/kubepods.slice/pod1.slice", cgroup: "/kubepods.slice/pod1.slice/x" },
  { parent: "/kubepods.slice/pod1.slice/own", cgroup: "/kubepods.slice/pod1.slice/own/crio-x" },
  { parent: "", cgroup: "/k8s.io/x" },
]) {
  test(`the container x of a pod in ${parent || "no cgroup of its own"} is found in ${cgroup}`, async (t) => {
    const reader = await newCgroupReader(await mounted(t, v2(cgroup.slice(1))));
    const { path, usage, pids } = await cgroupOf(reader, parent, "x");
    assert.deepEqual([path, usage.memory?.usageBytes, pids], [cgroup, 1000, [process.pid]]);
  });
}

test("interfaces have their counters by direction, without the loopback and the host ends of pods' pairs", () => {
  const line = (name: string, ...values: number[]): string => `${name.padStart(8)}: ${values.join("    ")}`;
  const counters = Array.from({ length: 16 }, (_, i) => i + 1);
  const text = [
    "Inter-|   Receive",
    " face |bytes",
    ...["lo", "eth0", "lowpan0", "veth1", "docker0"].map((name) => line(name, ...counters)),
    "",
  ];
  const receive = { bytes: 1, packets: 2, errors: 3, dropped: 4 };
  const transmit = { bytes: 9, packets: 10, errors: 11, dropped: 12 };
  assert.deepEqual(interfacesIn(text.join("\n")), [
    { name: "eth0", receive, transmit },
    { name: "lowpan0", receive, transmit },
  ]);
});

test("the open files of all processes are counted, and the sockets among them", async (t) => {
  const child = spawn("cat", { stdio: ["pipe", "pipe", "ignore"] });
  t.after(() => child.kill("SIGKILL"));
  child.stdin.write("x");
  await once(child.stdout, "data"); // it has closed what it does not need
  const pid = child.pid ?? 0;
  const { files, sockets } = await openFilesOf([pid]);
  assert.ok(files >= 3);
  assert.deepEqual(await openFilesOf([pid, pid, 2 ** 30]), { files: 2 * files, sockets: 2 * sockets });
  const before = await openFilesOf([process.pid]);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  assert.equal((await openFilesOf([process.pid])).sockets, before.sockets + 1);
});

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
  assert.match(text, new RegExp(`^container_start_time_seconds\\{container="main",.*\\} ${container.createdAt / 1e9}$`, "m"));

  const attributes = { id: container.id, metadata: null, labels: {}, annotations: {} };
  const writableLayer = { timestamp: 0, fsId: null, usedBytes: { value: 12 }, inodesUsed: { value: 3 } };
  runtime.listContainerStats = async () => [{ attributes, cpu: null, memory: null, writableLayer }];
  assert.match(await page(), /^container_fs_usage_bytes\{container="main",.*\} 12$/m);
  runtime.listContainerStats = () => Promise.reject(new Error("away"));
  assert.match(await page(), /^container_processes\{container="main",.*\} 1$/m);
  runtime.exit(container.id, 0);
  await runtime.stopPodSandbox(container.sandboxId);
  assert.deepEqual((await page()).match(/^container_processes\{.*$/gm), null, "nothing runs any more");
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
