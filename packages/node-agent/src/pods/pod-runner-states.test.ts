import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { RunHook } from "../runtime/hook-call.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { aContainer, aContainerRecord, aNodePod, aPodRecord, aPodWithVolumes, aSandboxRecord } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { newTestRunner, volumesLike } from "../testing/runner.ts";
import { killPod, removeInitContainers } from "./kill-pod.ts";

const never = new AbortController().signal;

async function bench(t: TestContext) {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  return { clock, runtime, ...(await newTestRunner(t, runtime, clock)) };
}

test("a pod that has finished before its deadline does not fail when the deadline passes", async (t) => {
  const { clock, runtime, runner, statusOf, events } = await bench(t);
  const pod = aNodePod({ restartPolicy: "Never", activeDeadlineSeconds: 60 });
  await runner.sync(pod, never);
  runtime.exit(runtime.find("main")?.id ?? "", 0);
  await clock.advance(60_000);
  assert.equal((await runner.sync(pod, never)).kind, "ended");
  assert.deepEqual([statusOf(pod)?.phase, statusOf(pod)?.reason], ["Succeeded", undefined]);
  assert.ok(!events.some(({ reason }) => reason === "DeadlineExceeded"));
});

test("a pod that is cleaned up waits for its volumes as a new one when it is added again", async (t) => {
  const made = await bench(t);
  const failures = [{ volume: "v", message: "away", cause: new Error("away") }];
  const volumes = volumesLike(made.volumes, { setUp: async () => ({ volumes: new Map(), failures }) });
  const { runner } = await newTestRunner(t, made.runtime, made.clock, { dir: made.dir, volumes });
  const pod = aPodWithVolumes([{ name: "v", emptyDir: {} }]);
  const waited = async () => {
    const outcome = await runner.sync(pod, never);
    return outcome.kind === "failed" ? outcome.retryMs : undefined;
  };
  assert.deepEqual([await waited(), await waited()], [500, 1_000]);
  await runner.clean(pod, { deleted: true, runtimeOnly: false });
  assert.equal(await waited(), 500);
});

test("a container that fails to start for another cause than before shows the new one", async (t) => {
  const { runner, runtime, statusOf } = await bench(t);
  const messages: unknown[] = [];
  for (const details of ["no such device", "no space left"]) {
    runtime.failNext("CreateContainer", new RuntimeError("Unknown", details));
    await runner.sync(aNodePod(), never);
    messages.push(statusOf(aNodePod())?.containerStatuses?.[0]?.state?.waiting?.message);
  }
  assert.deepEqual(messages, ["no such device", "no space left"]);
});

test("while a pod's containers stop, their liveness is no longer probed, but their readiness is", async (t) => {
  const { clock, runner, runtime } = await bench(t);
  const probe = (kind: string) => ({ exec: { command: [kind] }, periodSeconds: 1 });
  const pod = aNodePod({ containers: [aContainer({ livenessProbe: probe("live"), readinessProbe: probe("ready") })] });
  await runner.sync(pod, never);
  await clock.advance(1_000);
  const stopping = Promise.withResolvers<void>();
  const { stopContainer } = runtime;
  runtime.stopContainer = async (...args) => {
    await stopping.promise;
    return stopContainer(...args);
  };
  const ended = runner.terminate(pod, { runtimeOnly: false });
  await settle();
  const probed: string[] = [];
  runtime.execSync = async (_, [kind = ""]) => {
    probed.push(kind);
    return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: 0 };
  };
  await clock.advance(3_000);
  assert.deepEqual([...new Set(probed)], ["ready"]);
  stopping.resolve();
  await ended;
});

test("each container of a pod is stopped as what it is, and its preStop hook gets the pod's address", async () => {
  const clock = newFakeClock();
  const preStop = { exec: { command: ["bye"] } };
  const hooked: string[] = [];
  const killed: string[] = [];
  const graces: number[] = [];
  const runtime = newFakeRuntime(clock);
  runtime.stopContainer = async (_, seconds) => void graces.push(seconds);
  const runHook: RunHook = async ({ container, podIp }) => void hooked.push(`${container.name} ${podIp}`);
  const deps = {
    runtime,
    clock,
    log: discardLogger,
    event: (_: unknown, container: { name: string; kind: string } | undefined) =>
      void killed.push(`${container?.kind} ${container?.name}`),
    runHook,
    podLogsDir: "/none",
    containerLogsDir: "/none",
    seccompDefault: false,
    seccompRoot: "/none",
  };
  const own = (name: string) => aContainer({ name, lifecycle: { preStop } });
  const pod = aNodePod({
    terminationGracePeriodSeconds: 30,
    initContainers: [own("i")],
    containers: [own("a"), own("b")],
    ephemeralContainers: [aContainer({ name: "debug" })],
  });
  const states = { i: "created", a: "running", b: "exited", debug: "unknown" } as const;
  const record = aPodRecord(Object.entries(states).map(([name, state]) => aContainerRecord({ name, state })));
  await killPod(deps, pod, record, { runtimeOnly: false });
  assert.deepEqual(killed, ["init i", "regular a", "ephemeral debug"]);
  assert.deepEqual(hooked, ["i 10.0.0.5", "a 10.0.0.5"]);
  await killPod(deps, pod, record, { runtimeOnly: false, graceSecondsOverride: 7 });
  assert.deepEqual(graces, [30, 30, 30, 7, 7, 7]);
});

test("all sandboxes of a pod are stopped; of several failures the first is reported, and those that are gone are none", async () => {
  const runtime = newFakeRuntime(newFakeClock());
  const stopped: string[] = [];
  runtime.stopPodSandbox = async (id) => {
    stopped.push(id);
    throw new RuntimeError(id.startsWith("gone") ? "NotFound" : "Unknown", id);
  };
  const kill = (...ids: string[]) => {
    const sandboxes = ids.map((id) => aSandboxRecord({ id }));
    return killPod({ runtime } as never, aNodePod(), aPodRecord([], sandboxes), { runtimeOnly: false });
  };
  await kill("gone-1", "gone-2");
  await assert.rejects(kill("gone-3", "first", "second"), { details: "first" });
  await assert.rejects(kill("only"), { details: "only" });
  assert.deepEqual(stopped, ["gone-1", "gone-2", "gone-3", "first", "second", "only"]);
});

test("of each init container the newest that have ended are kept, and what is alive is not removed", async () => {
  const removed: string[] = [];
  const runtime = newFakeRuntime(newFakeClock());
  runtime.removeContainer = async (id) => void removed.push(id);
  const deps = { runtime, containerLogsDir: "/none" } as unknown as Parameters<typeof removeInitContainers>[0];
  const record = aPodRecord(
    (
      [
        ["a4", "a", "running"],
        ["a3", "a", "exited"],
        ["a2", "a", "unknown"],
        ["a1", "a", "exited"],
        ["b2", "b", "exited"],
        ["b1", "b", "exited"],
        ["m1", "main", "exited"],
      ] as const
    ).map(([id, name, state]) => aContainerRecord({ id, name, state })),
  );
  const pod = aNodePod({ initContainers: ["a", "b"].map((name) => aContainer({ name })) });
  await removeInitContainers(deps, pod, record, 1);
  assert.deepEqual(removed, ["a1", "b1"]);
});

for (const { reason, left } of [
  { reason: "Evicted", left: [] },
  { reason: "Terminated", left: ["a", "b"] },
])
  test(`of a pod that ended as ${reason} ${left.length === 0 ? "no containers are" : "the containers are"} kept for their logs`, async (t) => {
    const { runner, runtime, statusOf } = await bench(t);
    const pod = aNodePod({ containers: ["a", "b"].map((name) => aContainer({ name })) });
    await runner.sync(pod, never);
    await runner.terminate(pod, { runtimeOnly: false, graceSecondsOverride: 0, verdict: { reason, message: "" } });
    await runner.clean(pod, { deleted: false, runtimeOnly: false });
    assert.deepEqual([...runtime.containers.values()].map(({ config }) => config.metadata?.name).toSorted(), left);
    assert.deepEqual([statusOf(pod)?.reason, statusOf(pod)?.containerStatuses?.length], [reason, 2]);
    await runner.clean(pod, { deleted: false, runtimeOnly: false });
    await runner.clean(pod, { deleted: true, runtimeOnly: false });
    assert.deepEqual([runtime.containers.size, runtime.sandboxes.size], [0, 0]);
  });

test("the sandbox and each container get the groups of the pod's volumes, without those that the pod lists", async (t) => {
  const { clock, runtime, volumes: real } = await bench(t);
  const mounted = { path: "/", readOnly: false };
  const volumes = new Map([5, 6, 5, undefined, 7].map((gid, i) => [`v${i}`, { ...mounted, ...(gid !== undefined && { gid }) }]));
  const setUp = async () => ({ volumes, failures: [] });
  const { runner } = await newTestRunner(t, runtime, clock, { volumes: volumesLike(real, { setUp }) });
  const containers = ["a", "b"].map((name) => aContainer({ name }));
  await runner.sync(aNodePod({ containers, securityContext: { supplementalGroups: [6] } }), never);
  const groups = (linux: { securityContext?: { supplementalGroups?: readonly number[] } } | undefined) =>
    linux?.securityContext?.supplementalGroups;
  const [sandbox] = [...runtime.sandboxes.values()];
  assert.deepEqual(groups(sandbox?.config.linux as never), [5, 7, 6]);
  for (const name of ["a", "b"]) assert.deepEqual(groups(runtime.find(name)?.config.linux as never), [6, 5, 7]);
});
