/** Tests of the connections between the agent's modules, with a runtime in memory and, where it is needed, an API server. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import type { Event, Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { events, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type RunningAgent, startAgent } from "./agent.ts";
import { newAgentConfig } from "./config.ts";
import type { DynamicConfig } from "./dynamic-config/dynamic-config.ts";
import { kubelet } from "./flags.ts";
import { labelNames } from "./runtime/labels.ts";
import { RuntimeError } from "./runtime/runtime.ts";
import { aContainer, aNodePod } from "./testing/builders.ts";
import { type FakeRuntime, newFakeRuntime } from "./testing/fake-runtime.ts";
import { serveClient } from "./testing/served-client.ts";

/** A condition that does not hold after this time of the agent's clock fails; the slowest one takes about 40 s. */
const mostSeconds = 60;

interface Bench {
  dir: string;
  clock: FakeClock;
  runtime: FakeRuntime;
  lines: string[];
  start(options?: {
    api?: string;
    dynamic?: DynamicConfig;
    flags?: readonly string[];
    kernelLog?: string;
  }): Promise<RunningAgent>;
  /** Waits for a condition while the agent's time passes, in steps of a second. @throws AssertionError after `mostSeconds` */
  eventually(condition: () => unknown, what: string): Promise<void>;
  manifest(name: string, spec?: object): Promise<void>;
}

async function bench(t: TestContext): Promise<Bench> {
  const dir = await mkdtemp(join(tmpdir(), "cox-wiring-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, "manifests"));
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const lines: string[] = [];
  return {
    dir,
    clock,
    runtime,
    lines,
    async start({ api, dynamic, flags = [], kernelLog = join(dir, "kmsg") } = {}) {
      const { values, set } = parseFlags(kubelet.flags, [
        "--container-runtime=remote",
        `--root-dir=${join(dir, "kubelet")}`,
        `--cert-dir=${join(dir, "pki")}`,
        `--pod-manifest-path=${join(dir, "manifests")}`,
        "--hostname-override=node1",
        "--healthz-port=0",
        "--read-only-port=0",
        "--address=127.0.0.1",
        "--fail-swap-on=false",
        "--cgroups-per-qos=false",
        "--enforce-node-allocatable=",
        "--eviction-hard=memory.available<1",
        "--kube-api-content-type=application/json",
        ...flags,
      ]);
      const agent = await startAgent({
        config: { ...newAgentConfig(values, set), port: 0 },
        api: api === undefined ? undefined : { host: api },
        featureGates: newFeatureGates("kubelet", {}),
        dynamic,
        clock,
        log: newLogger({ verbosity: 3, write: (line) => void lines.push(line) }),
        podLogsDir: join(dir, "logs"),
        containerLogsDir: join(dir, "links"),
        kernelLog,
        runtime,
      });
      t.after(() => agent.stop());
      return agent;
    },
    async eventually(condition, what) {
      let seconds = 0;
      const step = async () => {
        const value = await condition();
        if (value) return value;
        assert.ok(seconds++ < mostSeconds, `not after ${mostSeconds} s of the agent's time: ${what}`);
        await clock.advance(1_000);
        return false;
      };
      await waitFor(step, { what });
    },
    async manifest(name, spec = {}) {
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers: [aContainer()], ...spec } };
      await writeFile(join(dir, `.${name}`), JSON.stringify(pod));
      await rm(join(dir, "manifests", name), { force: true });
      await writeFile(join(dir, "manifests", name), JSON.stringify(pod));
    },
  };
}

function get(agent: RunningAgent, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port: agent.port, path, rejectUnauthorized: false, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        body += piece;
      });
      response.on("end", () => resolve(body));
    })
      .on("error", reject)
      .end();
  });
}

async function statusOf(agent: RunningAgent, name: string): Promise<Pod["status"]> {
  const { items }: { items: Pod[] } = JSON.parse(await get(agent, "/pods"));
  return items.find(({ metadata }) => metadata.name === `${name}-node1`)?.status;
}

test("static pods run without an API server; one that the node must not run fails, with an event", async (t) => {
  const { runtime, lines, start, eventually, manifest } = await bench(t);
  await manifest("web");
  await manifest("bad", { securityContext: { sysctls: [{ name: "kernel.panic", value: "1" }] } });
  const agent = await start();
  await eventually(async () => (await statusOf(agent, "web"))?.phase === "Running", "the pod to run");
  const refused = await statusOf(agent, "bad");
  assert.deepEqual([refused?.phase, refused?.reason], ["Failed", "SysctlForbidden"]);
  assert.ok(lines.some((line) => line.includes("Event occurred") && line.includes("SysctlForbidden")));
  assert.deepEqual(agent.pending(), ["bad-node1_default"]);
  const page = await get(agent, "/metrics");
  for (const series of [
    'kubelet_node_name{node="node1"} 1',
    "kubelet_pod_start_duration_seconds_count 1",
    'kubelet_started_containers_total{container_type="container"} 1',
  ])
    assert.ok(page.includes(`\n${series}\n`), series);
  assert.match(await get(agent, "/metrics/probes"), /^# TYPE prober_probe_total counter$/m);
  assert.equal(runtime.calls.filter((call) => call === "StartContainer main").length, 1);
});

test("a static pod that is removed and restored starts anew; after the agent's stop nothing is done to its containers", async (t) => {
  const { dir, clock, runtime, start, eventually, manifest } = await bench(t);
  let closed = 0;
  runtime.close = () => void closed++;
  await manifest("web");
  const agent = await start();
  await eventually(async () => (await statusOf(agent, "web"))?.phase === "Running", "the pod to run");
  await rm(join(dir, "manifests/web"));
  await eventually(() => runtime.containers.size === 0, "the pod to be gone");
  await eventually(async () => (await readdir(join(dir, "kubelet/pods"))).length === 0, "its folder to be gone");
  assert.deepEqual(agent.pending(), []);
  await manifest("web");
  await eventually(async () => (await statusOf(agent, "web"))?.phase === "Running", "the pod to run again");
  assert.equal((await statusOf(agent, "web"))?.containerStatuses?.[0]?.restartCount, 0);
  await agent.stop();
  assert.equal(closed, 0, "the runtime is the caller's");
  runtime.exit(runtime.find("main")?.id ?? "", 1);
  const before = runtime.calls.length;
  await clock.advance(3_600_000);
  assert.equal(runtime.calls.length, before);
});

test("of two manifests of one pod name the first runs; the second is reported, and runs once the first is gone", async (t) => {
  const { dir, runtime, lines, start, eventually, manifest } = await bench(t);
  await manifest("web");
  const second = await readFile(join(dir, "manifests/web"), "utf8");
  await writeFile(join(dir, "manifests/zebra"), second.replace('"main"', '"other"'));
  const agent = await start();
  await eventually(async () => (await statusOf(agent, "web"))?.phase === "Running", "the pod to run");
  assert.equal(runtime.find("other"), undefined);
  const ignored = lines.filter((line) => line.includes('from file due to duplicate pod name \\"web-node1\\", ignoring'));
  assert.match(ignored[0] ?? "", /FailedValidation/);
  await rm(join(dir, "manifests/web"));
  await eventually(() => runtime.find("other") !== undefined, "the other pod to run");
  assert.equal(runtime.find("main"), undefined);
});

test("a static pod that is removed and restored while it ends starts anew, without what its status was", async (t) => {
  const { dir, runtime, start, eventually, manifest } = await bench(t);
  await manifest("web");
  const agent = await start();
  await eventually(async () => (await statusOf(agent, "web"))?.phase === "Running", "the pod to run");
  const first = runtime.find("main")?.id;
  const stop = runtime.stopContainer;
  const held = Promise.withResolvers<void>();
  let isStopping = false;
  runtime.stopContainer = async (...args) => {
    isStopping = true;
    await held.promise;
    return stop(...args);
  };
  await rm(join(dir, "manifests/web"));
  await eventually(() => isStopping, "the pod to end");
  await manifest("web");
  await eventually(async () => (await statusOf(agent, "web")) !== undefined, "the pod to be wanted again");
  held.resolve();
  await eventually(() => ![undefined, first].includes(runtime.find("main")?.id), "a new container");
  await eventually(async () => (await statusOf(agent, "web"))?.containerStatuses?.[0]?.ready, "the pod to run again");
  const status = await statusOf(agent, "web");
  assert.deepEqual([status?.phase, status?.containerStatuses?.[0]?.restartCount], ["Running", 0]);
});

/** A node of a cluster; its API server has the Pods that are put into `client`. */
async function cluster(t: TestContext) {
  const made = await bench(t);
  const client = newFakeClient({ clock: made.clock });
  const api = await serveClient(t, client);
  const put = (name: string, more: Partial<Pod> = {}): void => {
    const pod = aNodePod({ nodeName: "node1" }, { name, uid: `uid-${name}` });
    client.put<Pod>(pods, { ...pod, ...more } as Pod);
  };
  const stored = (name: string): Pod | undefined => client.object<Pod>(pods, `default/${name}`);
  return { ...made, client, api, put, stored };
}

test("a pod of the API server runs, its status is written, and it is deleted once it has ended", async (t) => {
  const { runtime, client, api, put, stored, start, eventually } = await cluster(t);
  put("web");
  put("elsewhere", { spec: { nodeName: "node2", containers: [aContainer()] } });
  const orphan = {
    metadata: { name: "orphan", uid: "orphan" },
    labels: { [labelNames.podUid]: "orphan", [labelNames.podName]: "orphan" },
  };
  await runtime.runPodSandbox(orphan, "");
  await start({ api });
  await eventually(() => stored("web")?.status?.phase === "Running", "the status to be written");
  await eventually(() => runtime.sandboxes.size === 1, "the orphan to be removed once all sources have reported");
  assert.equal(client.object<Node>(nodes, "node1")?.status?.conditions?.find(({ type }) => type === "Ready")?.status, "True");
  assert.equal(stored("elsewhere")?.status, undefined);
  const pod = stored("web");
  assert.ok(pod);
  const metadata = { ...pod.metadata, deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 };
  client.put<Pod>(pods, { ...pod, metadata });
  await eventually(() => stored("web") === undefined, "the pod to be deleted");
  await eventually(() => runtime.containers.size === 0, "its containers to be gone");
});

test("a status that another writer has changed is written again at the next resync", async (t) => {
  const { client, api, put, stored, start, eventually } = await cluster(t);
  put("web");
  await start({ api });
  await eventually(() => stored("web")?.status?.phase === "Running", "the status to be written");
  client.put<Pod>(pods, { ...(stored("web") as Pod), status: { phase: "Unknown" } });
  await eventually(() => stored("web")?.status?.phase === "Running", "the status to be written again");
});

test("a pod keeps its CPUs over a restart of the agent, also while the API server cannot list the pods", {
  skip: availableParallelism() < 2 && "needs two CPUs",
}, async (t) => {
  const { dir, clock, client, api, put, stored, start, eventually } = await cluster(t);
  const whole = { cpu: "1", memory: "10Mi" };
  put("web", { spec: { nodeName: "node1", containers: [aContainer({ resources: { requests: whole, limits: whole } })] } });
  const flags = ["--cpu-manager-policy=static", "--reserved-cpus=0"];
  const before = await start({ api, flags });
  await eventually(() => stored("web")?.status?.phase === "Running", "the pod to run");
  await before.stop();
  const entries = async () => JSON.parse(await readFile(join(dir, "kubelet/cpu_manager_state"), "utf8")).entries;
  const assigned = await entries();
  assert.deepEqual(Object.keys(assigned), ["uid-web"]);
  client.react("list", "pods", () => {
    throw new Error("away");
  });
  await start({ api, flags });
  for (let s = 0; s < 30; s++) await clock.advance(1_000);
  assert.deepEqual(await entries(), assigned);
});

test("a pod that the node rejects is reported to the API server", async (t) => {
  const { client, api, put, stored, start, eventually } = await cluster(t);
  put("web", {
    spec: { nodeName: "node1", containers: [aContainer()], securityContext: { sysctls: [{ name: "kernel.panic", value: "1" }] } },
  });
  await start({ api });
  await eventually(() => stored("web")?.status?.reason === "SysctlForbidden", "the status to be written");
  await eventually(() => client.objects<Event>(events).some(({ reason }) => reason === "SysctlForbidden"), "the event");
});

test("a process that the kernel killed for lack of memory is an event of the node", async (t) => {
  const { dir, client, api, start, eventually } = await cluster(t);
  const kernelLog = join(dir, "kernel-log");
  await writeFile(
    kernelLog,
    "4,1,1,-;a invoked oom-killer: order=0\n3,2,2,-;Out of memory: Killed process 7 (stress) total-vm:2kB\n",
  );
  await start({ api, kernelLog });
  const oom = () => client.objects<Event>(events).find(({ reason }) => reason === "SystemOOM");
  await eventually(() => oom() !== undefined, "the event");
  assert.deepEqual([oom()?.type, oom()?.involvedObject.kind, oom()?.involvedObject.name], ["Warning", "Node", "node1"]);
  assert.equal(oom()?.message, "System OOM encountered, victim process: stress, pid: 7");
});

test("an agent that stops closes its connections to the API server, and dynamic configuration follows it unless it runs once", async (t) => {
  const { api, start } = await cluster(t);
  const followed: boolean[] = [];
  const dynamic: DynamicConfig = {
    config: undefined,
    replaced: new Promise(() => undefined),
    follow: (options) => void followed.push(options.api !== undefined),
  };
  const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap").length;
  const agent = await start({ api, dynamic });
  await waitFor(() => sockets() > 0, { what: "a connection" });
  await agent.stop();
  await waitFor(() => sockets() === 0, { what: "the connections to be closed" });
  await (await start({ api, dynamic, flags: ["--runonce"] })).stop();
  assert.deepEqual(followed, [true, false]);
});

test("a pod makes room for a static pod, and is counted by what was missing", async (t) => {
  const { api, put, stored, start, eventually, manifest } = await cluster(t);
  put("web");
  const agent = await start({ api, flags: ["--max-pods=1"] });
  await eventually(() => stored("web")?.status?.phase === "Running", "the pod to run");
  await manifest("critical");
  await eventually(() => stored("web")?.status?.phase === "Failed", "the pod to be preempted");
  assert.equal(stored("web")?.status?.reason, "Preempting");
  await eventually(async () => (await statusOf(agent, "critical"))?.phase === "Running", "the static pod to run");
  assert.match(await get(agent, "/metrics"), /^kubelet_preemptions\{preemption_signal="pods"\} 1$/m);
});

test("a lack of memory is a condition of the node, and another one is not", async (t) => {
  const { client, api, start, eventually } = await cluster(t);
  await start({ api, flags: ["--eviction-hard=memory.available<4000Ti"] });
  const conditions = () => client.object<Node>(nodes, "node1")?.status?.conditions ?? [];
  const of = (type: string) => conditions().find((condition) => condition.type === type)?.status;
  await eventually(() => of("MemoryPressure") === "True", "the condition");
  assert.deepEqual(["DiskPressure", "PIDPressure"].map(of), ["False", "False"]);
});

test("a pod whose state cannot be read gets an event with the reason, and runs once it can be", async (t) => {
  const { runtime, lines, start, eventually, manifest } = await bench(t);
  const { podSandboxStatus } = runtime;
  runtime.podSandboxStatus = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  await manifest("web");
  const agent = await start();
  const told = () => lines.some((line) => line.includes("FailedSync") && line.includes("error determining status: "));
  await eventually(told, "the event");
  runtime.podSandboxStatus = podSandboxStatus;
  await eventually(async () => (await statusOf(agent, "web"))?.phase === "Running", "the pod to run");
});

test("a node without logind is one without a graceful shutdown, and runs its pods", async (t) => {
  const { dir, lines, start, eventually, manifest } = await bench(t);
  const name = "DBUS_SYSTEM_BUS_ADDRESS";
  const before = process.env[name];
  t.after(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
  process.env[name] = `unix:path=${join(dir, "no-bus")}`;
  const config = join(dir, "kubelet.yaml");
  const fields = {
    shutdownGracePeriod: "30s",
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
  };
  const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  await writeFile(config, JSON.stringify({ ...head, ...fields }));
  await manifest("web");
  const agent = await start({ flags: [`--config=${config}`] });
  await eventually(async () => (await statusOf(agent, "web"))?.phase === "Running", "the pod to run");
  assert.equal(lines.filter((line) => line.includes("Failed to start node shutdown manager")).length, 1);
});
