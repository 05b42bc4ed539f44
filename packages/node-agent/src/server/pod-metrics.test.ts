import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { newCertificateMetrics } from "../node/certificate-metrics.ts";
import type { Cgroups } from "../resources/cgroups.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newAgentMetrics, operationName } from "./metrics.ts";
import { newEphemeralContainerMetric, newLogMetrics, newPodTimes, timedCgroups } from "./pod-metrics.ts";
import { bucketOf, countRequests } from "./request-metrics.ts";

const linesOf = async (registry: ReturnType<typeof newMetricsRegistry>, ...names: string[]): Promise<string[]> =>
  (await registry.render())
    .split("\n")
    .filter((line) => names.some((name) => line.startsWith(`${name}{`) || line.startsWith(`${name} `)));

test("a pod's start is timed from when it was seen, once, and only if it was pending then", async () => {
  const registry = newMetricsRegistry();
  const clock = newFakeClock();
  const times = newPodTimes(registry, clock);
  const pod = aNodePod({ containers: [aContainer(), aContainer({ name: "b" })] });
  const running = aNodePod({}, { uid: "uid-2" });
  running.status = { phase: "Running" };
  times.started(pod, 500);
  times.started(running, 0);
  await clock.advance(1500);
  for (const phase of [undefined, "Pending", "Running", "Running"]) times.synced(pod, phase);
  times.synced(running, "Running");
  times.worked("create", 20);
  times.worked("kill", 40);
  assert.deepEqual(
    await linesOf(
      registry,
      "kubelet_pod_start_duration_seconds_sum",
      "kubelet_pod_start_duration_seconds_count",
      "kubelet_pod_worker_start_duration_seconds_sum",
      "kubelet_containers_per_pod_count_sum",
      "kubelet_pod_worker_duration_seconds_count",
    ),
    [
      "kubelet_pod_start_duration_seconds_sum 2",
      "kubelet_pod_start_duration_seconds_count 1",
      "kubelet_pod_worker_start_duration_seconds_sum 0.5",
      'kubelet_pod_worker_duration_seconds_count{operation_type="create"} 1',
      'kubelet_pod_worker_duration_seconds_count{operation_type="kill"} 1',
      `kubelet_containers_per_pod_count_sum ${2 + running.spec.containers.length}`,
    ],
  );
});

test("a pod that ends or is removed before it runs has no start duration", async () => {
  const registry = newMetricsRegistry();
  const times = newPodTimes(registry, newFakeClock());
  times.started(aNodePod(), 0);
  times.synced(aNodePod(), "Failed");
  times.started(aNodePod({}, { uid: "uid-2" }), 0);
  times.gone("uid-2");
  times.synced(aNodePod({}, { uid: "uid-2" }), "Running");
  assert.deepEqual(await linesOf(registry, "kubelet_pod_start_duration_seconds_count"), [
    "kubelet_pod_start_duration_seconds_count 0",
  ]);
});

test("a cgroup is created once until it is removed; failures are timed, too", async () => {
  const registry = newMetricsRegistry();
  const cgroups = {
    ensure: async () => {},
    updateClasses: async () => {},
    remove: async () => {
      throw new Error("busy");
    },
  } as unknown as Cgroups;
  const timed = timedCgroups(cgroups, registry, newFakeClock());
  const pod = aNodePod();
  await timed.ensure(pod);
  await timed.ensure(pod);
  await timed.updateClasses([pod]);
  await assert.rejects(timed.remove(pod.metadata.uid), { message: "busy" });
  await timed.ensure(pod);
  assert.deepEqual(await linesOf(registry, "kubelet_cgroup_manager_duration_seconds_count"), [
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="create"} 2',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="update"} 1',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="destroy"} 1',
  ]);
});

test("what is not timed reaches the cgroups as it is", async () => {
  const asked: string[] = [];
  const cgroups = new Proxy({ ofPods: "/kubepods" } as unknown as Cgroups, {
    get: (_, name) =>
      name === "ofPods" ? "/kubepods" : (...given: unknown[]) => void asked.push(`${String(name)} ${given.length}`),
  });
  const timed = timedCgroups(cgroups, newMetricsRegistry(), newFakeClock());
  await timed.start({ milliCpu: 1, memoryBytes: 1, pids: 1 }, true);
  await timed.enforceReserved("/system", {});
  timed.parentOf(aNodePod());
  await timed.exists("u");
  await timed.memoryOfPods();
  await timed.tasksOf("u");
  await timed.list();
  timed.unifiedOf(aContainer());
  const calls = [
    "start 2",
    "enforceReserved 2",
    "parentOf 1",
    "exists 1",
    "memoryOfPods 0",
    "tasksOf 1",
    "list 0",
    "unifiedOf 1",
  ];
  assert.deepEqual([asked, timed.ofPods], [calls, "/kubepods"]);
});

test("log metrics count each container's log files, rotated ones included", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-log-metrics-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, "main"));
  for (const file of ["0.log", "0.log.20240101-000000"]) await writeFile(join(dir, "main", file), "x".repeat(5000));
  const registry = newMetricsRegistry();
  let pods = [aNodePod({ containers: [aContainer(), aContainer({ name: "silent" })] })];
  newLogMetrics(
    registry,
    () => pods,
    () => dir,
  );
  const [line = "", ...more] = await linesOf(registry, "kubelet_container_log_filesystem_used_bytes");
  assert.match(
    line,
    /^kubelet_container_log_filesystem_used_bytes\{uid="uid-1",namespace="default",pod="web",container="main"\} \d+$/,
  );
  assert.ok(Number(line.split(" ")[1]) >= 10_000);
  assert.deepEqual(more, []);
  await truncate(join(dir, "main", "0.log"), 100_000_000); // a hole, which occupies nothing
  assert.ok(Number((await linesOf(registry, "kubelet_container_log_filesystem_used_bytes"))[0]?.split(" ")[1]) < 100_000);
  pods = [];
  assert.deepEqual(await linesOf(registry, "kubelet_container_log_filesystem_used_bytes"), [], "the pod is gone");
});

test("the logs of each container are counted whole; pods and containers without any do not hide those of others", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-logs-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [container, ...logs] of [
    ["b", "0.log", "1.log"],
    ["d", "0.log"],
  ] as const) {
    await mkdir(join(dir, "web", container), { recursive: true });
    for (const log of logs) await writeFile(join(dir, "web", container, log), "x".repeat(100_000));
  }
  await writeFile(join(dir, "web", "c"), "a file in place of a folder");
  const containers = ["a", "b", "c", "d"].map((name) => aContainer({ name }));
  const registry = newMetricsRegistry();
  newLogMetrics(
    registry,
    () => ["none", "web"].map((name) => aNodePod({ containers }, { name, uid: name })),
    ({ metadata }) => join(dir, metadata.name),
  );
  const lines = await linesOf(registry, "kubelet_container_log_filesystem_used_bytes");
  const sizes = lines.map((line) => {
    const [, pod, container, bytes] = /pod="(.*?)",container="(.*?)"\} (\d+)$/.exec(line) ?? [];
    return [pod, container, Math.floor(Number(bytes) / 100_000)];
  });
  assert.deepEqual(sizes, [
    ["web", "b", 2],
    ["web", "d", 1],
  ]);
});

test("50,000 containers that have no logs yet are left out without a long turn", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-logs-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, "another"));
  const containers = Array.from({ length: 50_000 }, (_, at) => aContainer({ name: `c${at}` }));
  const registry = newMetricsRegistry();
  newLogMetrics(
    registry,
    () => [aNodePod({ containers })],
    () => dir,
  );
  const longest = await longestTurnOf(300, async () => {
    assert.deepEqual(await linesOf(registry, "kubelet_container_log_filesystem_used_bytes"), []);
  });
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < 300, `${longest} ms`);
});

for (const { purpose, errors } of [
  { purpose: "client", errors: "kubelet_certificate_manager_client_expiration_renew_errors" },
  { purpose: "server", errors: "kubelet_server_expiration_renew_errors" },
] as const) {
  test(`the TTL of the ${purpose} certificate is +Inf until there is one`, async () => {
    const registry = newMetricsRegistry();
    const clock = newFakeClock();
    const metrics = newCertificateMetrics(registry, purpose, clock);
    const ttl = `kubelet_certificate_manager_${purpose}_ttl_seconds`;
    assert.deepEqual(await linesOf(registry, ttl), [`${ttl} +Inf`]);
    metrics.current(clock.now() + 10_500);
    metrics.renewalFailed();
    metrics.rotated(30_000);
    assert.deepEqual(await linesOf(registry, ttl, errors), [`${ttl} 10`, `${errors} 1`]);
    const rotated = purpose === "server" ? ["kubelet_certificate_manager_server_rotation_seconds_sum 30"] : [];
    assert.deepEqual(await linesOf(registry, "kubelet_certificate_manager_server_rotation_seconds_sum"), rotated);
  });
}

for (const { method, want } of [
  { method: "RunPodSandbox", want: "run_podsandbox" },
  { method: "ListPodSandbox", want: "list_podsandbox" },
  { method: "ListPodSandboxStats", want: "list_podsandbox_stats" },
  { method: "PodSandboxStatus", want: "podsandbox_status" },
  { method: "UpdateContainerResources", want: "update_container" },
  { method: "ReopenContainerLog", want: "reopen_container_log" },
  { method: "ImageFsInfo", want: "image_fs_info" },
  { method: "Version", want: "version" },
]) {
  test(`${method} is the operation ${want}`, () => assert.equal(operationName(method), want));
}

test("sandboxes are timed and their failures counted by runtime handler", async () => {
  const registry = newMetricsRegistry();
  const metrics = newAgentMetrics(registry);
  metrics.runtimeCall("RunPodSandbox", 10, undefined, { runtimeHandler: "kata" });
  metrics.runtimeCall("RunPodSandbox", 10, new Error("no network"), {});
  assert.deepEqual(
    await linesOf(registry, "kubelet_run_podsandbox_duration_seconds_count", "kubelet_run_podsandbox_errors_total"),
    [
      'kubelet_run_podsandbox_duration_seconds_count{runtime_handler="kata"} 1',
      'kubelet_run_podsandbox_duration_seconds_count{runtime_handler=""} 1',
      'kubelet_run_podsandbox_errors_total{runtime_handler=""} 1',
    ],
  );
});

for (const { url, want } of [
  { url: "/metrics", want: "metrics" },
  { url: "/metrics/cadvisor?x=1", want: "metrics/cadvisor" },
  { url: "/metrics/other", want: "other" },
  { url: "/containerLogs/default/web/main", want: "containerLogs" },
  { url: "/", want: "other" },
  { url: "/nothing", want: "other" },
]) {
  test(`requests of ${url} count as ${want}`, () => assert.equal(bucketOf(url), want));
}

test("requests are counted by method, path and port, also those that fail", async () => {
  const registry = newMetricsRegistry();
  const options = { registry, serverType: "readwrite", clock: newFakeClock() } as const;
  const handler = countRequests(({ url }) => (url === "/pods" ? undefined : Promise.reject(new Error("broken"))), options);
  const send = (method: string, url: string) => handler({ method, url } as Parameters<typeof handler>[0]);
  await send("GET", "/pods");
  await assert.rejects(async () => send("BREW", "/exec/default/web/main"));
  const isLong = async (path: string) => {
    await assert.rejects(async () => send("GET", path));
    const series = await linesOf(registry, "kubelet_http_requests_total");
    return series.find((line) => line.includes(`method="GET",path="${path.split("/")[1]}"`))?.includes('long_running="true"');
  };
  const labels = 'method="other",path="exec",server_type="readwrite",long_running="true"';
  assert.deepEqual(await linesOf(registry, "kubelet_http_requests_total", "kubelet_http_inflight_requests"), [
    'kubelet_http_requests_total{method="GET",path="pods",server_type="readwrite",long_running="false"} 1',
    `kubelet_http_requests_total{${labels}} 1`,
    'kubelet_http_inflight_requests{method="GET",path="pods",server_type="readwrite",long_running="false"} 0',
    `kubelet_http_inflight_requests{${labels}} 0`,
  ]);
  const paths = ["exec", "attach", "debug", "portForward", "run", "containerLogs"];
  const long = await Promise.all(paths.map((path) => isLong(`/${path}/x`)));
  assert.deepEqual(long, [true, true, true, false, false, false], "upstream looks for portforward");
});

test("the ephemeral containers of all pods of the node are counted", async () => {
  const registry = newMetricsRegistry();
  const debugged = aNodePod({ ephemeralContainers: [aContainer({ name: "a" }), aContainer({ name: "b" })] });
  newEphemeralContainerMetric(registry, () => [aNodePod(), debugged]);
  assert.deepEqual(await linesOf(registry, "kubelet_managed_ephemeral_containers"), ["kubelet_managed_ephemeral_containers 2"]);
});
