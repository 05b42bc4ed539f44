import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newPreempt } from "../pods/preempt.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { newTestRunner } from "../testing/runner.ts";
import { MetricText } from "./metric-text.ts";
import { newAgentMetrics, newProbeMetrics, resourceMetrics } from "./metrics.ts";

test("starts of pods and containers are counted, failures by their reason", async (t) => {
  const registry = newMetricsRegistry();
  const metrics = newAgentMetrics(registry);
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const { runner } = await newTestRunner(t, runtime, clock, { onStart: (...start) => metrics.started(...start) });
  const pod = aNodePod({ initContainers: [aContainer({ name: "init" })], containers: [aContainer(), aContainer({ name: "b" })] });
  const sync = () => runner.sync(pod, new AbortController().signal);
  runtime.failNext("RunPodSandbox", new RuntimeError("Unknown", "no network"));
  await sync();
  await sync();
  runtime.exit(runtime.find("init")?.id ?? "", 0);
  runtime.failNext("CreateContainer", new RuntimeError("Unknown", "no space"));
  await sync();
  const lines = (await registry.render()).split("\n").filter((line) => line.startsWith("kubelet_started"));
  assert.deepEqual(lines.sort(), [
    'kubelet_started_containers_errors_total{container_type="container",code="CreateContainerError"} 1',
    'kubelet_started_containers_total{container_type="container"} 2',
    'kubelet_started_containers_total{container_type="init_container"} 1',
    "kubelet_started_pods_errors_total 1",
    "kubelet_started_pods_total 2",
  ]);
});

test("a container that waits in CrashLoopBackOff counts neither as a start nor as a failed one", async (t) => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const starts: string[] = [];
  const { runner } = await newTestRunner(t, runtime, clock, { onStart: (...start) => void starts.push(start.join(" ")) });
  const sync = () => runner.sync(aNodePod(), new AbortController().signal);
  for (let life = 0; life < 3; life++) {
    await sync();
    runtime.exit(runtime.find("main")?.id ?? "", 1);
  }
  const { kind } = await sync();
  assert.deepEqual([kind, starts], ["failed", ["pod", "regular", "regular"]]);
});

test("failed runtime calls are counted by operation", async () => {
  const registry = newMetricsRegistry();
  const metrics = newAgentMetrics(registry);
  for (const err of [undefined, new RuntimeError("Unknown", "no such file")]) metrics.runtimeCall("StartContainer", 5, err);
  const lines = (await registry.render()).split("\n").filter((line) => /^kubelet_runtime_operations(_errors)?_total/.test(line));
  assert.deepEqual(lines.sort(), [
    'kubelet_runtime_operations_errors_total{operation_type="start_container"} 1',
    'kubelet_runtime_operations_total{operation_type="start_container"} 2',
  ]);
});

test("relists are timed, and running pods and containers counted", async () => {
  const registry = newMetricsRegistry();
  const metrics = newAgentMetrics(registry);
  metrics.relisted(20, 1_000_000);
  metrics.relisted(30, 1_001_500);
  metrics.running(2, { running: 3, exited: 1 });
  const text = await registry.render();
  for (const line of [
    "kubelet_pleg_relist_interval_seconds_sum 1.5",
    "kubelet_pleg_relist_duration_seconds_count 2",
    "kubelet_pleg_last_seen_seconds 1001.5",
    "kubelet_running_pods 2",
    'kubelet_running_containers{container_state="running"} 3',
  ]) {
    assert.ok(text.split("\n").includes(line), line);
  }
});

test("evictions are counted by signal, with the age of the observation; the count of discarded relists stays 0", async () => {
  const registry = newMetricsRegistry();
  const metrics = newAgentMetrics(registry);
  metrics.evictionDue("memory.available", 250);
  metrics.evictionDue("nodefs.available", 4_000);
  metrics.evictionDue("memory.available", 1_250);
  metrics.evicted("memory.available");
  metrics.evicted("memory.available");
  metrics.evicted("emptydirfs.limit");
  const lines = (await registry.render()).split("\n");
  assert.deepEqual(
    lines.filter((line) => /^kubelet_(evictions|eviction_stats_age_seconds_(sum|count)|pleg_discard_events)\b/.test(line)).sort(),
    [
      'kubelet_eviction_stats_age_seconds_count{eviction_signal="memory.available"} 2',
      'kubelet_eviction_stats_age_seconds_count{eviction_signal="nodefs.available"} 1',
      'kubelet_eviction_stats_age_seconds_sum{eviction_signal="memory.available"} 1.5',
      'kubelet_eviction_stats_age_seconds_sum{eviction_signal="nodefs.available"} 4',
      'kubelet_evictions{eviction_signal="emptydirfs.limit"} 1',
      'kubelet_evictions{eviction_signal="memory.available"} 2',
      "kubelet_pleg_discard_events 0",
    ],
  );
});

test("preempted pods and CSI calls are counted", async () => {
  const registry = newMetricsRegistry();
  const metrics = newAgentMetrics(registry);
  const preempt = newPreempt({
    endPod: async () => {},
    onPreempted: (resource) => metrics.preemptions.labels(resource).inc(),
    log: discardLogger,
  });
  const asking = (priority: number) =>
    aNodePod({ priority, containers: [aContainer({ resources: { requests: { cpu: "1" } } })] });
  const missing = [{ resource: "cpu", requested: 1000, used: 1000, capacity: 1000 }];
  assert.equal(await preempt(asking(2_000_001_000), [asking(0)], missing), undefined);
  metrics.csiCall("disks.example.com", "/csi.v1.Node/NodePublishVolume", "OK", 300);
  const page = await registry.render();
  const call =
    'driver_name="disks.example.com",method_name="/csi.v1.Node/NodePublishVolume",grpc_status_code="OK",migrated="false"';
  for (const series of ['kubelet_preemptions{preemption_signal="cpu"} 1', `csi_operations_seconds_count{${call}} 1`])
    assert.ok(page.includes(`\n${series}\n`), `${series}\n${page}`);
});

test("probe results are counted by the name of the probe's kind", async () => {
  const registry = newMetricsRegistry();
  const probed = newProbeMetrics(registry);
  for (const kind of ["liveness", "startup", "startup"] as const) probed(kind, "failed", aNodePod(), "main");
  const rest = 'container="main",pod="web",namespace="default",pod_uid="uid-1"';
  assert.deepEqual(
    (await registry.render()).split("\n").filter((line) => line.startsWith("prober_probe_total")),
    [
      `prober_probe_total{probe_type="Liveness",result="failed",${rest}} 1`,
      `prober_probe_total{probe_type="Startup",result="failed",${rest}} 2`,
    ],
  );
});

test("/metrics/resource has CPU in seconds and working sets, of the node, its pods and their containers", () => {
  const time = "2022-01-01T00:00:00Z";
  const usage = (cpu: number, bytes: number) => ({
    cpu: { time, usageNanoCores: 1, usageCoreNanoSeconds: cpu * 1e9 },
    memory: { time, workingSetBytes: bytes, usageBytes: 999 },
  });
  const container = { name: "main", startTime: time, ...usage(1, 10), rootfs: { time, usedBytes: 0, inodesUsed: 0 } };
  const podRef = { name: "web", namespace: "default", uid: "uid-1" };
  const text = resourceMetrics({
    node: usage(3, 30),
    pods: [{ podRef, startTime: time, containers: [container], ...usage(2, 20) }],
  });
  const at = Date.parse(time);
  const pod = 'namespace="default",pod="web"';
  assert.deepEqual(
    text.split("\n").filter((line) => line !== "" && !line.startsWith("#")),
    [
      `container_cpu_usage_seconds_total{container="main",${pod}} 1 ${at}`,
      `container_memory_working_set_bytes{container="main",${pod}} 10 ${at}`,
      `container_start_time_seconds{container="main",${pod}} ${at / 1000} ${at}`,
      `node_cpu_usage_seconds_total 3 ${at}`,
      `node_memory_working_set_bytes 30 ${at}`,
      `pod_cpu_usage_seconds_total{${pod}} 2 ${at}`,
      `pod_memory_working_set_bytes{${pod}} 20 ${at}`,
      "scrape_error 0",
    ],
  );
});

test("values of labels are quoted, with what would end them escaped", () => {
  const text = new MetricText();
  text.sample("m", { a: 'x"y', b: "c\\d", e: "f\ng" }, 1);
  assert.equal(text.toString(), 'm{a="x\\"y",b="c\\\\d",e="f\\ng"} 1\n');
});
