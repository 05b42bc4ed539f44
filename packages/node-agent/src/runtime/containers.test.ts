import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodePod } from "../pod/pod.ts";
import { aContainer, aContainerRecord, aNodePod, aPodRecord } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { type ContainerDependencies, type KillRequest, killContainer, removeContainer, startContainer } from "./containers.ts";
import { HookError, type RunHook } from "./hook-call.ts";
import { podLogDirectory, removePodLogs } from "./pod-logs.ts";
import { RuntimeError } from "./runtime.ts";

/** Dependencies with a fake runtime that records how long containers are given to stop. */
async function bench(t: TestContext, runHook: RunHook = async () => undefined) {
  const dir = await mkdtemp(join(tmpdir(), "cox-containers-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const stopped: number[] = [];
  runtime.stopContainer = async (_, seconds) => void stopped.push(seconds);
  const events: string[] = [];
  const deps: ContainerDependencies = {
    runtime,
    clock,
    log: discardLogger,
    event: (_pod, _container, _type, reason) => void events.push(reason),
    runHook,
    podLogsDir: join(dir, "pods"),
    containerLogsDir: join(dir, "containers"),
    seccompDefault: false,
    seccompRoot: dir,
  };
  const kill = (pod: NodePod, container: Container, more: Partial<KillRequest> = {}) =>
    killContainer(deps, { pod, container, record: { id: "c1" }, message: "", podIp: "", ...more });
  return { dir, clock, runtime, stopped, events, deps, kill };
}

const preStop = { exec: { command: ["bye"] } };
const probe = (terminationGracePeriodSeconds: number) => ({ exec: { command: ["x"] }, terminationGracePeriodSeconds });
const probed = aContainer({ livenessProbe: probe(5), startupProbe: probe(7) });
const patient = aNodePod({ terminationGracePeriodSeconds: 10 });
const deleted = (seconds: number): NodePod => ({
  ...patient,
  metadata: { ...patient.metadata, deletionGracePeriodSeconds: seconds },
});

for (const { name, pod = patient, container = aContainer(), more = {}, want } of [
  { name: "the time of its pod", want: 10 },
  { name: "two seconds at least", pod: aNodePod(), want: 2 },
  { name: "the grace period of its deletion, not of its specification", pod: deleted(30), want: 30 },
  { name: "two seconds after a deletion with grace period 0", pod: deleted(0), want: 2 },
  { name: "the agent's override, also when it is 0", more: { graceSecondsOverride: 0 }, want: 0 },
  { name: "the agent's override, also below the minimum", more: { graceSecondsOverride: 1 }, want: 1 },
  { name: "the time of the liveness probe that it failed", container: probed, more: { reason: "LivenessProbe" }, want: 5 },
  { name: "the time of the startup probe that it failed", container: probed, more: { reason: "StartupProbe" }, want: 7 },
  { name: "the time of its pod when it failed no probe", container: probed, more: { reason: "Unknown" }, want: 10 },
  {
    name: "the grace period of its deletion when it fails a probe meanwhile",
    pod: deleted(30),
    container: probed,
    more: { reason: "LivenessProbe" },
    want: 30,
  },
] as { name: string; pod?: NodePod; container?: Container; more?: Partial<KillRequest>; want: number }[]) {
  test(`a container that is stopped has ${name}`, async (t) => {
    const { kill, stopped, clock } = await bench(t);
    await kill(pod, container, more);
    assert.deepEqual([stopped, clock.waiting], [[want], 0]);
  });
}

for (const { name, pod = patient, tookMs, override, want } of [
  { name: "takes four of ten seconds", tookMs: 4_000, want: 6 },
  { name: "takes nearly a second", tookMs: 999, want: 10 },
  { name: "hangs", tookMs: 60_000, want: 2 },
  { name: "hangs, of a pod that the node gives ten seconds", pod: deleted(30), tookMs: 60_000, override: 10, want: 0 },
  { name: "could take its time, of a container that has none", pod: deleted(0), tookMs: undefined, want: 2 },
]) {
  test(`a preStop hook that ${name} leaves ${want} seconds`, async (t) => {
    let requested = 0;
    const made = await bench(t, () => {
      requested++;
      return made.clock.sleep(tookMs ?? 0);
    });
    const killed = made.kill(pod, aContainer({ lifecycle: { preStop } }), {
      ...(override !== undefined && { graceSecondsOverride: override }),
    });
    await settle();
    await made.clock.advance(60_000);
    await killed;
    assert.deepEqual([made.stopped, requested, made.clock.waiting], [[want], tookMs === undefined ? 0 : 1, 0]);
  });
}

test("a container is stopped after its preStop hook failed, which is reported, and when its hook cannot be found", async (t) => {
  const { kill, stopped, events, runtime, clock } = await bench(t, () => Promise.reject(new Error("no such command")));
  const container = aContainer({ lifecycle: { preStop } });
  await kill(patient, container);
  assert.deepEqual([stopped, events, clock.waiting], [[10], ["Killing", "FailedPreStopHook"], 0]);
  runtime.stopContainer = () => Promise.reject(new RuntimeError("NotFound", "gone"));
  await kill(patient, aContainer());
  runtime.stopContainer = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  await assert.rejects(kill(patient, aContainer()), { code: "Unavailable" });
});

test("removing a container removes its log link, its log and rotated logs, and no other container's", async (t) => {
  const { dir, deps, runtime } = await bench(t);
  const folder = join(dir, "main");
  await mkdir(folder);
  await mkdir(deps.containerLogsDir);
  const logPath = join(folder, "1.log");
  for (const name of ["1.log", "1.log.20220101-000000", "1.log.20220101-000001.gz", "11.log", "1.logs", "2.log"])
    await writeFile(join(folder, name), "");
  for (const id of ["c1", "c2"]) await symlink(logPath, join(deps.containerLogsDir, `web_default_main-${id}.log`));
  const remove = () => removeContainer(deps, { name: "web", namespace: "default" }, { id: "c1", name: "main", logPath });
  runtime.removeContainer = () => Promise.reject(new RuntimeError("NotFound", "gone"));
  await remove();
  assert.deepEqual((await readdir(folder)).toSorted(), ["1.logs", "11.log", "2.log"]);
  assert.deepEqual(await readdir(deps.containerLogsDir), ["web_default_main-c2.log"]);
  runtime.removeContainer = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  await assert.rejects(remove(), { code: "Unavailable" });
});

test("a container's attempt follows the last one known to the runtime or in its logs", async (t) => {
  const { runtime, deps } = await bench(t);
  runtime.addImage("registry.test/busybox:1");
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "web" } }, "");
  const logs = join(podLogDirectory(deps.podLogsDir, patient), "main");
  const signal = new AbortController().signal;
  const start = async (record = aPodRecord([])) => {
    await startContainer(deps, {
      pod: patient,
      container: aContainer({ lifecycle: { postStart: preStop } }),
      kind: "regular",
      record,
      sandboxId: sandbox,
      sandboxConfig: {},
      podIp: "",
      imageRef: "sha256:registry.test/busybox:1",
      image: undefined,
      resources: {},
      signal,
      options: async () => ({ environment: new Map(), mounts: [], devices: [], volumeGroups: [], annotations: {} }),
    });
    return [...runtime.containers.values()].at(-1)?.config.metadata?.attempt;
  };
  assert.equal(await start(), 0);
  for (const name of ["0.log", "9.log.20220101-000000.gz", "10.log", "x.log", "99"]) await writeFile(join(logs, name), "");
  assert.equal(await start(), 11);
  assert.equal(await start(aPodRecord([aContainerRecord({ restartCount: 4 }), aContainerRecord({ restartCount: 3 })])), 5);
  assert.deepEqual(getEventListeners(signal, "abort"), [], "no listener waits for the pod's end any more");
});

test("removing a pod's logs removes all its logs and links, and no other pod's", async (t) => {
  const { deps } = await bench(t);
  const folderOf = (name: string, uid: string) => podLogDirectory(deps.podLogsDir, aNodePod({}, { name, uid }));
  await mkdir(deps.containerLogsDir);
  for (const [name, uid] of [
    ["web", "u1"],
    ["renamed", "u1"],
    ["web", "u2"],
    ["other", "xu1"],
    ["web", "u1x"],
  ] as const) {
    for (const container of ["a", "b"]) {
      const log = join(folderOf(name, uid), container, "0.log");
      await mkdir(join(log, ".."), { recursive: true });
      await writeFile(log, "");
      await symlink(log, join(deps.containerLogsDir, `${name}-${uid}-${container}.log`));
    }
  }
  await removePodLogs(deps, "u1");
  await removePodLogs(deps, "unknown");
  assert.deepEqual((await readdir(deps.podLogsDir)).toSorted(), ["default_other_xu1", "default_web_u1x", "default_web_u2"]);
  assert.deepEqual((await readdir(deps.containerLogsDir)).toSorted(), [
    "other-xu1-a.log",
    "other-xu1-b.log",
    "web-u1x-a.log",
    "web-u1x-b.log",
    "web-u2-a.log",
    "web-u2-b.log",
  ]);
});

for (const [hook, err, want] of [
  [
    { exec: { command: ["say", "bye"] } },
    new HookError("command 'say bye' exited with 3: no", "out no"),
    `Exec lifecycle hook ([say bye]) for Container "main" in Pod "web_default(uid-1)" failed - error: command 'say bye' exited with 3: no, message: "out no"`,
  ],
  [
    { httpGet: { path: "/bye", port: 80 } },
    new Error("connection refused"),
    'HTTP lifecycle hook (/bye) for Container "main" in Pod "web_default(uid-1)" failed - error: connection refused, message: ""',
  ],
  [
    { httpGet: { port: 80 } },
    new Error("connection refused"),
    'HTTP lifecycle hook () for Container "main" in Pod "web_default(uid-1)" failed - error: connection refused, message: ""',
  ],
] as const) {
  test(`a failed hook is described: ${want.slice(0, 32)}`, async (t) => {
    const { deps, clock } = await bench(t, () => Promise.reject(err));
    const messages: string[] = [];
    deps.event = (_pod, _container, type, reason, message) => void messages.push(`${type} ${reason}: ${message}`);
    const container = aContainer({ lifecycle: { preStop: hook as NonNullable<Container["lifecycle"]>["preStop"] & object } });
    await killContainer(deps, { pod: patient, container, record: { id: "c1" }, message: "", podIp: "" });
    assert.deepEqual(
      [messages.filter((text) => text.includes("Hook")), clock.waiting],
      [[`Warning FailedPreStopHook: ${want}`], 0],
    );
  });
}
