import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AgentConfig } from "./agent-config.ts";
import { newBackground } from "./background.ts";
import { configMirrorAnnotation, type NodePod } from "./pod/pod.ts";
import type { PodIntake } from "./pods/intake.ts";
import type { PodRunner } from "./pods/pod-runner.ts";
import type { PodWorkers } from "./pods/pod-workers.ts";
import { labelNames } from "./runtime/labels.ts";
import { newLifecycleEvents } from "./runtime/lifecycle-events.ts";
import { containerState } from "./runtime/runtime.ts";
import { aNodePod } from "./testing/builders.ts";
import { newFakeRuntime } from "./testing/fake-runtime.ts";
import { noCgroups } from "./testing/runner.ts";
import { startUpkeep } from "./upkeep.ts";
import type { VolumeManager } from "./volumes/volume-manager.ts";

const never = "0%"; // of a threshold: it is not met

interface Options {
  config?: Partial<AgentConfig>;
  pods?: readonly NodePod[];
  /** UIDs of the Pods whose containers have all exited. */
  ended?: readonly string[];
  endPod?: (pod: NodePod) => Promise<void>;
}

/** A node whose periodic tasks are started by `start`. */
async function bench(t: TestContext, { config = {}, pods = [aNodePod()], ended = [], endPod = async () => {} }: Options = {}) {
  const dir = await mkdtemp(join(tmpdir(), "cox-upkeep-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const background = newBackground({ clock, log: discardLogger });
  t.after(() => background.stop());
  const events = newLifecycleEvents({ runtime, clock, log: discardLogger, onChange: () => undefined });
  const reported: string[] = [];
  const did: string[] = [];
  const looks: unknown[] = [];
  const known = new Set(pods.map(({ metadata }) => metadata.uid));
  const start = (): void =>
    startUpkeep({
      config: {
        rootDir: dir,
        maxDeadPerContainer: 1,
        maxDead: -1,
        deadMinAgeMs: 0,
        imageGcHighThreshold: 100,
        imageGcLowThreshold: 80,
        imageMinAgeMs: 0,
        sandboxImage: "pause",
        evictionHard: { "memory.available": never },
        evictionSoft: {},
        evictionSoftGraceMs: {},
        evictionMinReclaim: {},
        evictionTransitionMs: 0,
        evictionMaxPodGraceSeconds: 0,
        enforceNodeAllocatable: [],
        volumeStatsMs: 0,
        cpuManagerPolicy: "none",
        cpuManagerReconcileMs: 10_000,
        containerLogMaxSizeBytes: 10,
        containerLogMaxFiles: 5,
        ...config,
      } as unknown as AgentConfig,
      background,
      runtime,
      clock,
      log: discardLogger,
      events,
      intake: {
        sources: { allSynced: () => true, list: () => [...pods] },
        isKnown: (uid: string) => known.has(uid),
        isActive: ({ metadata }: NodePod) => !ended.includes(metadata.uid),
      } as unknown as PodIntake,
      workers: { hasEnded: (uid: string) => ended.includes(uid), ending: () => [], removeOrphan() {} } as unknown as PodWorkers,
      runner: { collect() {} } as unknown as PodRunner,
      volumes: { list: async () => [], podDir: (uid: string) => join(dir, uid) } as unknown as VolumeManager,
      cgroups: { ...noCgroups, memoryOfPods: async () => ({ available: 0, capacity: 1 }) },
      mirrors: undefined,
      podLogsDir: dir,
      containerLogsDir: dir,
      notify: { node: (...event) => void reported.push(event.join(" ")), pod: () => undefined },
      async endPod(pod) {
        did.push(`end ${pod.metadata.name}`);
        await endPod(pod);
      },
      managers: { reconcile: async () => void did.push("reconcile") },
      usages: { refresh: async () => void did.push("measure") },
      quotas: undefined,
      onLook: (...look) => void looks.push(look),
      onEvicted: (signal) => void did.push(`evicted for ${signal}`),
      onEvictionDue: () => undefined,
      onPressureChange: () => undefined,
    });
  /** An exited container of the Pod. */
  const exited = async (uid: string, name = "main"): Promise<string> => {
    const labels = { [labelNames.podUid]: uid, [labelNames.podName]: uid, [labelNames.podNamespace]: "default" };
    const sandbox = await runtime.runPodSandbox({ metadata: { name: uid, uid }, labels }, "");
    const own = { ...labels, [labelNames.containerName]: name };
    const id = await runtime.createContainer(sandbox, { metadata: { name }, labels: own }, {});
    await runtime.startContainer(id);
    runtime.exit(id, 0);
    return id;
  };
  return { dir, clock, runtime, events, start, exited, reported, did, looks };
}

test("ended containers of unknown pods are removed once the runtime was listed", async (t) => {
  const { dir, clock, runtime, events, start, exited } = await bench(t);
  await exited("unknown");
  await exited("uid-1");
  start();
  await clock.advance(61_000);
  for (let i = 0; i < 20; i++) await readdir(dir); // a removal, which reads folders too, would be over
  assert.equal(runtime.containers.size, 2);
  await events.relist();
  await clock.advance(60_000);
  await waitFor(() => runtime.containers.size === 1, { what: "the removal" });
  assert.deepEqual(
    [...runtime.containers.values()].map(({ config }) => config.labels?.[labelNames.podUid]),
    ["uid-1"],
  );
});

test("pods in the runtime and containers are counted by state, sandboxes are not", async (t) => {
  const { clock, runtime, events, start, exited, looks } = await bench(t, { pods: [aNodePod(), aNodePod({}, { uid: "uid-2" })] });
  await exited("uid-1");
  await runtime.startContainer(
    await runtime.createContainer(
      [...runtime.sandboxes.keys()][0] ?? "",
      {
        metadata: { name: "second" },
        labels: { [labelNames.podUid]: "uid-1" },
      },
      {},
    ),
  );
  await exited("uid-2");
  await runtime.stopPodSandbox([...runtime.sandboxes.keys()][1] ?? "");
  await events.relist();
  start();
  await clock.advance(1);
  assert.deepEqual(looks[0], [2, { created: 0, running: 1, exited: 2, unknown: 0 }]);
  assert.deepEqual(Object.keys(containerState), ["created", "running", "exited", "unknown"]);
});

test("the first failure of image garbage collection in a row is not reported, that of containers is", async (t) => {
  const { clock, runtime, start, reported } = await bench(t);
  runtime.listImages = () => Promise.reject(new Error("no images"));
  start();
  await settle();
  assert.deepEqual(reported, []);
  await clock.advance(300_000);
  assert.deepEqual(reported.splice(0), ["Warning ImageGCFailed no images"]);
  runtime.listContainers = () => Promise.reject(new Error("no containers"));
  await clock.advance(60_000);
  assert.deepEqual(reported, ["Warning ContainerGCFailed no containers"]);
});

for (const { config, want } of [
  { config: {}, want: [] },
  { config: { volumeStatsMs: 60_000 }, want: ["measure", "measure"] },
  { config: { volumeStatsMs: -1 }, want: [] },
  { config: { cpuManagerPolicy: "static", cpuManagerReconcileMs: 60_000 }, want: ["reconcile", "reconcile"] },
] as { config: Partial<AgentConfig>; want: string[] }[]) {
  test(`within a minute a node with ${JSON.stringify(config)} does: ${want.join() || "nothing"}`, async (t) => {
    const { clock, start, did } = await bench(t, { config });
    start();
    await clock.advance(60_000);
    assert.deepEqual(did, want);
  });
}

test("logs are rotated by the configured size", async (t) => {
  const { dir, clock, runtime, start } = await bench(t);
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "p" }, logDirectory: dir }, "");
  await runtime.startContainer(await runtime.createContainer(sandbox, { metadata: { name: "main" }, logPath: "main/0.log" }, {}));
  await mkdir(join(dir, "main"));
  await writeFile(join(dir, "main/0.log"), "ten bytes.");
  start();
  await clock.advance(1);
  await waitFor(async () => (await readdir(join(dir, "main"))).join().startsWith("0.log."), { what: "the rotation" });
});

const pressed = { evictionHard: { "memory.available": "99%" } };
const mirror = aNodePod({}, { name: "mirror", uid: "m", annotations: { [configMirrorAnnotation]: "x" } });
const gone = aNodePod({}, { name: "gone", uid: "gone" });

test("under memory pressure an active pod is evicted and counted; neither a mirror pod nor one that has ended", async (t) => {
  const { clock, start, did } = await bench(t, { config: pressed, pods: [mirror, gone, aNodePod()], ended: ["gone"] });
  start();
  await clock.advance(1);
  await waitFor(() => did.length > 0, { what: "an eviction" });
  assert.deepEqual(did, ["evicted for memory.available", "end web"]);
});

test("a pod that cannot be evicted in time does not end the check", async (t) => {
  const errors: string[] = [];
  const { clock, start, did, reported } = await bench(t, {
    config: pressed,
    endPod: () => Promise.reject(new Error("timeout waiting to kill pod")),
  });
  t.mock.method(discardLogger, "error", (message: string) => void errors.push(message));
  start();
  await clock.advance(1);
  await waitFor(() => errors.length > 0, { what: "the failure" });
  assert.deepEqual([did.length, errors], [2, ["Eviction manager: pod failed to evict"]]);
  assert.match(reported.join(), /EvictionThresholdMet/);
});

test("under disk pressure ended containers of ended pods and unused images are removed before a pod is evicted", async (t) => {
  const config = { evictionHard: { "nodefs.available": "99%" } };
  const { clock, runtime, start, exited, events } = await bench(t, { config, pods: [gone, aNodePod()], ended: ["gone"] });
  for (const uid of ["gone", "uid-1"]) await exited(uid);
  runtime.addImage("unused");
  await events.relist();
  const removed = Promise.withResolvers<void>();
  const { removeContainer } = runtime;
  runtime.removeContainer = async (id) => {
    await removed.promise;
    return removeContainer(id);
  };
  start();
  await clock.advance(1);
  for (let i = 0; i < 20; i++) await settle();
  const images = () => runtime.calls.filter((call) => call.startsWith("RemoveImage"));
  assert.deepEqual(images(), [], "containers first: they use images");
  removed.resolve();
  await waitFor(() => images().length > 0, { what: "the image to be removed" });
  assert.deepEqual(
    [...runtime.containers.values()].map(({ config }) => config.labels?.[labelNames.podUid]),
    ["uid-1"],
  );
});

test("a full disk on which there are no images evicts a pod, and no image is removed", async (t) => {
  const { clock, runtime, start, did } = await bench(t, { config: { evictionHard: { "nodefs.available": "99%" } } });
  runtime.imageFilesystems = async () => [{ fsId: { mountpoint: "/proc" } }] as never;
  runtime.addImage("unused");
  start();
  await clock.advance(1);
  await waitFor(() => did.length > 0, { what: "an eviction" });
  assert.deepEqual(did, ["evicted for nodefs.available", "end web"]);
  assert.ok(!runtime.calls.some((call) => call.startsWith("RemoveImage")));
});

for (const { enforce, isEvicted } of [
  { enforce: ["pods"], isEvicted: true },
  { enforce: [], isEvicted: false },
]) {
  test(`the memory limit of all pods ${isEvicted ? "evicts" : "does not evict"} a pod when ${enforce.join() || "nothing"} is enforced`, async (t) => {
    const config = { evictionHard: { "memory.available": "1" }, enforceNodeAllocatable: enforce };
    const { clock, start, did } = await bench(t, { config });
    start();
    await clock.advance(10_001);
    await settle(30);
    if (isEvicted) await waitFor(() => did.length > 0, { what: "an eviction" });
    assert.equal(did.includes("end web"), isEvicted);
  });
}
