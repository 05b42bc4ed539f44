import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { type ContainerRuntime, containerState, RuntimeError, sandboxState } from "../runtime/runtime.ts";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aNodePod, aPodWithVolumes } from "../testing/builders.ts";
import { type FakeRuntime, newFakeRuntime } from "../testing/fake-runtime.ts";
import { newTestRunner, noCgroups, volumesLike } from "../testing/runner.ts";
import type { PodRunner } from "./pod-runner.ts";

const image = "registry.test/busybox:1";
const never = new AbortController().signal;

function aRuntime(): { runtime: FakeRuntime; clock: ReturnType<typeof newFakeClock> } {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage(image);
  return { runtime, clock };
}

const twoContainers = (): NodePod =>
  aNodePod({
    initContainers: [aContainer({ name: "init" })],
    containers: [aContainer({ name: "a", terminationMessagePath: "/dev/termination-log" }), aContainer({ name: "b" })],
  });

/** Syncs until nothing changes; init containers exit immediately. */
async function settlePod(runner: PodRunner, runtime: FakeRuntime, pod: NodePod): Promise<void> {
  for (let i = 0; i < 6; i++) {
    await runner.sync(pod, never);
    for (const container of runtime.containers.values()) {
      if (container.config.metadata?.name === "init" && container.state === containerState.running) runtime.exit(container.id, 0);
    }
  }
}

test("a pod starts in order: sandbox, init container, containers", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf, events } = await newTestRunner(t, runtime, clock);
  const pod = twoContainers();
  await settlePod(runner, runtime, pod);
  assert.deepEqual(runtime.calls, [
    "RunPodSandbox web",
    "CreateContainer init",
    "StartContainer init",
    "CreateContainer a",
    "StartContainer a",
    "CreateContainer b",
    "StartContainer b",
  ]);
  const status = statusOf(pod);
  hasFields(status, { phase: "Running", podIP: [...runtime.sandboxes.values()][0]?.ip ?? "" });
  assert.deepEqual(
    events.filter(({ container }) => container === "a").map(({ reason, message }) => [reason, message]),
    [
      ["Pulled", `Container image "${image}" already present on machine`],
      ["Created", "Created container a"],
      ["Started", "Started container a"],
    ],
  );
});

test("kernel settings of a container's cgroup are passed to the runtime", async (t) => {
  const { runtime, clock } = aRuntime();
  const unified = { "memory.min": "1024" };
  const { runner } = await newTestRunner(t, runtime, clock, { cgroups: { ...noCgroups, unifiedOf: () => unified } });
  await runner.sync(aNodePod(), never);
  assert.deepEqual(runtime.find("main")?.config.linux?.resources?.unified, unified);
});

test("a container that ends at once is restarted after 0, 10 and 20 seconds", async (t) => {
  const { runtime, clock } = aRuntime();
  const begun: string[] = [];
  const onStart = (kind: string, failure?: string) => void begun.push(failure === undefined ? kind : `${kind}: ${failure}`);
  const { runner, statusOf, events } = await newTestRunner(t, runtime, clock, { onStart });
  const pod = aNodePod();
  const starts = (): number => runtime.calls.filter((call) => call === "StartContainer main").length;
  const crash = async (): Promise<void> => {
    runtime.exit(runtime.find("main")?.id ?? "", 1);
    await runner.sync(pod, never);
  };
  await runner.sync(pod, never);
  await crash();
  assert.equal(starts(), 2, "the first restart is not delayed");
  await crash();
  assert.equal(starts(), 2);
  assert.deepEqual(statusOf(pod)?.containerStatuses?.[0]?.state, {
    waiting: { reason: "CrashLoopBackOff", message: "back-off 10s restarting failed container=main pod=web_default(uid-1)" },
  });
  assert.ok(events.some(({ reason, message }) => reason === "BackOff" && message === "Back-off restarting failed container"));
  await clock.advance(10_001);
  await runner.sync(pod, never);
  assert.equal(starts(), 3);
  await crash();
  await clock.advance(19_000);
  await runner.sync(pod, never);
  assert.equal(starts(), 3);
  await clock.advance(1_001);
  await runner.sync(pod, never);
  assert.equal(starts(), 4);
  assert.equal(statusOf(pod)?.containerStatuses?.[0]?.restartCount, 3);
  assert.deepEqual(begun, ["pod", ...Array(4).fill("regular")], "waiting is no failed start");
});

test("a failed image pull is retried with back-off, and the pod's status shows it", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf, events } = await newTestRunner(t, runtime, clock);
  const pod = aNodePod({ containers: [aContainer({ image: "registry.test/new" })] });
  await runner.sync(pod, never);
  assert.equal(statusOf(pod)?.containerStatuses?.[0]?.state?.waiting?.reason, "ErrImagePull");
  await runner.sync(pod, never);
  assert.deepEqual(statusOf(pod)?.containerStatuses?.[0]?.state?.waiting, {
    reason: "ImagePullBackOff",
    message: 'Back-off pulling image "registry.test/new"',
  });
  runtime.registry.add("registry.test/new:latest");
  await clock.advance(10_000);
  await runner.sync(pod, never);
  assert.equal(statusOf(pod)?.phase, "Running");
  assert.ok(events.some(({ message }) => message.startsWith('Successfully pulled image "registry.test/new" in ')));
});

test("keys that are not names of variables are skipped and reported", async (t) => {
  const { runtime, clock } = aRuntime();
  const objects = { ...noObjects, configMap: async () => ({ metadata: {}, data: { KEY: "v", "not a name": "x" } }) };
  const { runner, events } = await newTestRunner(t, runtime, clock, { objects });
  await runner.sync(aNodePod({ containers: [aContainer({ envFrom: [{ configMapRef: { name: "cm" } }] })] }), never);
  assert.deepEqual(
    events.filter(({ reason }) => reason === "InvalidEnvironmentVariableNames").map(({ type, message }) => `${type} ${message}`),
    [
      "Warning Keys [not a name] from the EnvFrom configMap default/cm were skipped since they are considered invalid environment variable names.",
    ],
  );
});

for (const { name, container, reason } of [
  { name: "a bad name", container: { image: "Not A Name" }, reason: "InvalidImageName" },
  {
    name: "policy Never and no image",
    container: { image: "registry.test/none:1", imagePullPolicy: "Never" },
    reason: "ErrImageNeverPull",
  },
  {
    name: "a missing config map",
    container: { envFrom: [{ configMapRef: { name: "none" } }] },
    reason: "CreateContainerConfigError",
  },
  {
    name: "root where root is forbidden",
    container: { securityContext: { runAsNonRoot: true, runAsUser: 0 } },
    reason: "CreateContainerConfigError",
  },
]) {
  test(`a container with ${name} waits with ${reason}`, async (t) => {
    const { runtime, clock } = aRuntime();
    const { runner, statusOf } = await newTestRunner(t, runtime, clock);
    const pod = aNodePod({ containers: [aContainer(container)] });
    const outcome = await runner.sync(pod, never);
    assert.equal(outcome.kind, "failed");
    assert.equal(statusOf(pod)?.containerStatuses?.[0]?.state?.waiting?.reason, reason);
  });
}

test("without a network only pods of the host's network start", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, events } = await newTestRunner(t, runtime, clock, { networkProblem: () => "NetworkReady=false" });
  assert.deepEqual(await runner.sync(aNodePod(), never), {
    ...{ kind: "failed", error: new Error("network is not ready: NetworkReady=false") },
    ...{ retryMs: 1_000, jitter: true },
  });
  assert.equal(runtime.calls.length, 0);
  assert.equal(events[0]?.reason, "NetworkNotReady");
  await runner.sync(aNodePod({ hostNetwork: true }, { uid: "uid-2" }), never);
  assert.ok(runtime.calls.includes("StartContainer main"));
});

test("a pod whose cgroup cannot be created gets an event, and nothing of it starts", async (t) => {
  const { runtime, clock } = aRuntime();
  const ensure = async (): Promise<void> => Promise.reject(new Error("systemd cannot be reached"));
  const { runner, events } = await newTestRunner(t, runtime, clock, { cgroups: { ...noCgroups, ensure } });
  assert.equal((await runner.sync(aNodePod(), never)).kind, "failed");
  assert.equal(runtime.calls.length, 0);
  assert.partialDeepStrictEqual(events[0], {
    type: "Warning",
    reason: "FailedCreatePodContainer",
    message: "unable to ensure pod container exists: systemd cannot be reached",
  });
});

test("until services have been read only static pods get containers", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf } = await newTestRunner(t, runtime, clock, { services: () => undefined });
  const pod = aNodePod();
  await runner.sync(pod, never);
  const message = "services have not yet been read at least once, cannot construct envvars";
  assert.partialDeepStrictEqual(statusOf(pod)?.containerStatuses?.[0]?.state?.waiting, {
    reason: "CreateContainerConfigError",
    message,
  });
  // The API server may be a static Pod itself.
  pod.metadata.annotations = { [configSourceAnnotation]: "file" };
  await runner.sync(pod, never);
  assert.ok(runtime.calls.includes("StartContainer main"));
});

test("a pod past its deadline fails and ends", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf } = await newTestRunner(t, runtime, clock);
  const pod = aNodePod({ activeDeadlineSeconds: 60 });
  assert.equal((await runner.sync(pod, never)).kind, "synced");
  await clock.advance(60_000);
  assert.equal((await runner.sync(pod, never)).kind, "ended");
  assert.partialDeepStrictEqual(statusOf(pod), { phase: "Failed", reason: "DeadlineExceeded" });
  await runner.terminate(pod, { runtimeOnly: false });
  assert.partialDeepStrictEqual(statusOf(pod), { phase: "Failed", reason: "DeadlineExceeded" });
  assert.equal(runtime.find("main")?.state, containerState.exited);
});

test("a finished pod does not run again after the kubelet restarts", async (t) => {
  const { runtime, clock } = aRuntime();
  const first = await newTestRunner(t, runtime, clock);
  const pod = aNodePod({ restartPolicy: "Never" });
  await first.runner.sync(pod, never);
  runtime.exit(runtime.find("main")?.id ?? "", 0);
  assert.equal((await first.runner.sync(pod, never)).kind, "ended");
  await first.runner.terminate(pod, { runtimeOnly: false });
  await first.runner.clean(pod, { deleted: false, runtimeOnly: false });
  const calls = runtime.calls.length;
  const status = first.statusOf(pod);
  // simulates garbage collection
  for (const container of [...runtime.containers.keys()]) await runtime.removeContainer(container);
  const second = await newTestRunner(t, runtime, clock, { dir: first.dir });
  const seen = { ...pod, ...(status === undefined ? {} : { status }) };
  assert.equal((await second.runner.sync(seen, never)).kind, "ended");
  assert.equal(second.statusOf(seen)?.phase, "Succeeded");
  assert.equal(second.statusOf(seen)?.containerStatuses?.[0]?.state?.terminated?.exitCode, 0);
  assert.deepEqual(runtime.calls.slice(calls), ["RemoveContainer main"]);
});

test("deleting a pod removes its containers, sandboxes, volumes and folder", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, dir } = await newTestRunner(t, runtime, clock);
  const pod = twoContainers();
  await settlePod(runner, runtime, pod);
  await runner.terminate(pod, { runtimeOnly: false });
  await runner.clean(pod, { deleted: true, runtimeOnly: false });
  assert.deepEqual([runtime.containers.size, runtime.sandboxes.size], [0, 0]);
  for (const folder of ["pods", "logs", "links"]) assert.deepEqual(await readdir(join(dir, folder)), [], folder);
});

test("what only the runtime has of a pod is removed without a last status", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf } = await newTestRunner(t, runtime, clock);
  const pod = twoContainers();
  await settlePod(runner, runtime, pod);
  const before = statusOf(pod);
  await runner.terminate(pod, { runtimeOnly: true });
  await runner.clean(pod, { deleted: true, runtimeOnly: true });
  assert.deepEqual([runtime.containers.size, statusOf(pod)], [0, before]);
});

test("a changed specification replaces the container, and its command is expanded", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, events } = await newTestRunner(t, runtime, clock);
  const pod = aNodePod({ containers: [aContainer({ command: ["echo", "$(WHO)"], env: [{ name: "WHO", value: "me" }] })] });
  await runner.sync(pod, never);
  assert.deepEqual(runtime.find("main")?.config.command, ["echo", "me"]);
  runtime.addImage("registry.test/busybox:2");
  const changed = { ...pod, spec: { ...pod.spec, containers: [aContainer({ image: "registry.test/busybox:2" })] } };
  await runner.sync(changed, never);
  assert.ok(
    events.some(
      ({ reason, message }) => reason === "Killing" && message === "Container main definition changed, will be restarted",
    ),
  );
  assert.equal(runtime.find("main")?.config.image?.image, "sha256:registry.test/busybox:2");
  assert.equal(runtime.find("main")?.config.metadata?.attempt, 1);
});

/** Simulates a crash of the agent at call `n` to the runtime: before the call is executed, or after it. */
function dyingAt(
  runtime: ContainerRuntime,
  n: number,
  when: "before" | "after",
): { runtime: ContainerRuntime; calls: () => number } {
  let count = 0;
  const dead = new RuntimeError("Canceled", "the agent was killed");
  const proxy = new Proxy(runtime, {
    get(target, name: keyof ContainerRuntime) {
      const original = target[name] as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        const mine = ++count;
        if (mine > n || (mine === n && when === "before")) throw dead;
        const answer = await original(...args);
        if (mine === n) throw dead;
        return answer;
      };
    },
  });
  return { runtime: proxy, calls: () => count };
}

for (const when of ["before", "after"] as const) {
  test(`an agent killed ${when} any runtime call starts nothing twice after its restart`, async (t) => {
    for (let n = 1; ; n++) {
      const { runtime, clock } = aRuntime();
      const dying = dyingAt(runtime, n, when);
      const first = await newTestRunner(t, dying.runtime, clock);
      const pod = twoContainers();
      let died = false;
      for (let i = 0; i < 6 && !died; i++) {
        const outcome = await first.runner.sync(pod, never).catch(() => ({ kind: "failed" }));
        died = dying.calls() >= n || (outcome.kind === "failed" && dying.calls() > n);
        for (const container of runtime.containers.values()) {
          if (container.config.metadata?.name === "init" && container.state === containerState.running)
            runtime.exit(container.id, 0);
        }
      }
      const second = await newTestRunner(t, runtime, clock, { dir: first.dir });
      await settlePod(second.runner, runtime, pod);
      for (const name of ["a", "b"]) {
        const running = [...runtime.containers.values()].filter(
          (container) => container.config.metadata?.name === name && container.state === containerState.running,
        );
        const starts = runtime.calls.filter((call) => call === `StartContainer ${name}`).length;
        assert.deepEqual({ n, name, running: running.length, starts }, { n, name, running: 1, starts: 1 });
      }
      const ready = [...runtime.sandboxes.values()].filter((sandbox) => sandbox.state === sandboxState.ready);
      assert.equal(ready.length, 1, `one sandbox after dying at call ${n}`);
      await second.runner.terminate(pod, { runtimeOnly: false });
      await second.runner.clean(pod, { deleted: true, runtimeOnly: false });
      assert.deepEqual([runtime.containers.size, runtime.sandboxes.size], [0, 0], `nothing is left after dying at call ${n}`);
      if (!died) break; // the Pod was running before call `n`
      assert.ok(n < 200);
    }
  });

  test(`an agent killed ${when} any runtime call of a deletion completes the deletion after its restart`, async (t) => {
    for (let n = 1; ; n++) {
      const { runtime, clock } = aRuntime();
      const up = await newTestRunner(t, runtime, clock);
      const pod = twoContainers();
      await settlePod(up.runner, runtime, pod);
      const dying = dyingAt(runtime, n, when);
      const first = await newTestRunner(t, dying.runtime, clock, { dir: up.dir });
      const end = async (runner: PodRunner): Promise<void> => {
        await runner.terminate(pod, { runtimeOnly: false });
        await runner.clean(pod, { deleted: true, runtimeOnly: false });
      };
      const survived = await end(first.runner).then(
        () => true,
        () => false,
      );
      const second = await newTestRunner(t, runtime, clock, { dir: up.dir });
      await end(second.runner);
      assert.deepEqual([runtime.containers.size, runtime.sandboxes.size], [0, 0], `nothing is left after dying at call ${n}`);
      assert.deepEqual(await readdir(join(up.dir, "pods")), []);
      if (survived) break;
      assert.ok(n < 200);
    }
  });
}

for (const keepTerminatedPodVolumes of [false, true]) {
  test(`volumes of a pod that ended ${keepTerminatedPodVolumes ? "stay until it is deleted" : "go"} with --keep-terminated-pod-volumes=${keepTerminatedPodVolumes}`, async (t) => {
    const { runtime, clock } = aRuntime();
    const { runner, dir } = await newTestRunner(t, runtime, clock, { keepTerminatedPodVolumes });
    const pod = aPodWithVolumes([{ name: "scratch", emptyDir: {} }]);
    const volume = join(dir, "pods/uid-1/volumes/kubernetes.io~empty-dir/scratch");
    const isThere = (): Promise<boolean> =>
      readdir(volume).then(
        () => true,
        () => false,
      );
    await runner.sync(pod, never);
    assert.equal(await isThere(), true);
    await runner.terminate(pod, { runtimeOnly: false });
    await runner.clean(pod, { deleted: false, runtimeOnly: false });
    assert.equal(await isThere(), keepTerminatedPodVolumes);
    await runner.clean(pod, { deleted: true, runtimeOnly: false });
    assert.equal(await isThere(), false);
  });
}

test("an exited container is restarted though an object of its volumes was deleted", async (t) => {
  const { runtime, clock } = aRuntime();
  const made = await newTestRunner(t, runtime, clock);
  let failing = false;
  const volumes = volumesLike(made.volumes, {
    setUp: async () => ({
      volumes: new Map([["config", { path: "/v", readOnly: true }]]),
      failures: failing ? [{ volume: "config", message: 'configmap "cm" not found', cause: new Error() }] : [],
    }),
  });
  const { runner, events } = await newTestRunner(t, runtime, clock, { volumes });
  const pod = aPodWithVolumes([{ name: "config", configMap: { name: "cm" } }]);
  await runner.sync(pod, never);
  failing = true;
  runtime.exit(runtime.find("main")?.id ?? "", 1);
  assert.equal((await runner.sync(pod, never)).kind, "synced");
  assert.equal(runtime.calls.filter((call) => call === "StartContainer main").length, 2);
  assert.deepEqual(
    events.filter(({ reason }) => reason === "FailedMount").map(({ message }) => message),
    ['MountVolume.SetUp failed for volume "config" : configmap "cm" not found'],
  );
});

test("a container whose postStart failed says so, though it cannot be killed", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf, events } = await newTestRunner(t, runtime, clock);
  runtime.onExec = () => ({ stdout: Buffer.from("no"), stderr: Buffer.from("way"), exitCode: 7 });
  runtime.failNext("StopContainer", new RuntimeError("DeadlineExceeded", "hangs"));
  const pod = aNodePod({ containers: [aContainer({ lifecycle: { postStart: { exec: { command: ["false"] } } } })] });
  await runner.sync(pod, never);
  const message = `Exec lifecycle hook ([false]) for Container "main" in Pod "web_default(uid-1)" failed - error: command 'false' exited with 7: way, message: "noway"`;
  assert.deepEqual(
    events.filter(({ reason }) => reason === "FailedPostStartHook").map((event) => event.message),
    [message],
  );
  runtime.exit(runtime.find("main")?.id ?? "", 137);
  await runner.sync(pod, never);
  assert.deepEqual(statusOf(pod)?.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 137);
  assert.equal(statusOf(pod)?.containerStatuses?.[0]?.state?.waiting?.reason, "PostStartHookError");
});

test("an ephemeral container without its target container is not started", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf } = await newTestRunner(t, runtime, clock);
  const debug = { name: "debug", image, targetContainerName: "nobody" };
  const pod = aNodePod();
  await runner.sync(pod, never);
  const debugged = { ...pod, spec: { ...pod.spec, ephemeralContainers: [debug] } };
  await runner.sync(debugged, never);
  assert.deepEqual(statusOf(debugged)?.ephemeralContainerStatuses?.[0]?.state?.waiting, {
    reason: "CreateContainerConfigError",
    message: "unable to find target container nobody",
  });
});

test("a container that the runtime cannot stop ends with its sandbox", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner } = await newTestRunner(t, runtime, clock);
  const pod = aNodePod();
  await runner.sync(pod, never);
  runtime.failNext("StopContainer", new RuntimeError("DeadlineExceeded", "hangs"));
  await assert.rejects(runner.terminate(pod, { runtimeOnly: false }), /hangs/);
  assert.deepEqual(
    [runtime.find("main")?.state, [...runtime.sandboxes.values()].map(({ state }) => state)],
    [containerState.exited, [sandboxState.notReady]],
  );
  await runner.terminate(pod, { runtimeOnly: false });
});

test("a container known only to the runtime ends as specified: preStop, then within its grace period", async (t) => {
  const { runtime, clock } = aRuntime();
  const preStop = { exec: { command: ["say", "bye"] } };
  const { runner } = await newTestRunner(t, runtime, clock);
  await runner.sync(aNodePod({ terminationGracePeriodSeconds: 7, containers: [aContainer({ lifecycle: { preStop } })] }), never);
  const did: string[] = [];
  runtime.onExec = (_, command) => {
    did.push(command.join(" "));
    return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: 0 };
  };
  const { stopContainer } = runtime;
  runtime.stopContainer = async (id, seconds) => {
    did.push(`stop within ${seconds}`);
    await stopContainer(id, seconds);
  };
  const restarted = await newTestRunner(t, runtime, clock);
  await restarted.runner.terminate(aNodePod({ containers: [] }), { runtimeOnly: true });
  assert.deepEqual(did, ["say bye", "stop within 7"]);
});

test("ids of containers begin with the runtime's name", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner, statusOf } = await newTestRunner(t, runtime, clock, { runtimeName: () => "cri-o" });
  await runner.sync(aNodePod(), never);
  assert.equal(statusOf(aNodePod())?.containerStatuses?.[0]?.containerID, `cri-o://${runtime.find("main")?.id}`);
});

test("terminating a pod does not wait for a postStart hook that hangs", async (t) => {
  const { runtime, clock } = aRuntime();
  const { runner } = await newTestRunner(t, runtime, clock);
  const stop = new AbortController();
  const hook = Promise.withResolvers<never>();
  runtime.onExec = () => {
    stop.abort();
    return hook.promise;
  };
  const postStart = { exec: { command: ["sleep", "infinity"] } };
  const pod = aNodePod({ containers: [aContainer({ lifecycle: { postStart } }), aContainer({ name: "second" })] });
  await runner.sync(pod, stop.signal);
  assert.equal(runtime.find("second"), undefined, "nothing else is begun");
  await runner.terminate(pod, { runtimeOnly: false });
  assert.equal(runtime.find("main")?.state, containerState.exited);
  hook.reject(new Error("killed"));
  await settle(); // its failure has no handler: an unhandled rejection would end the agent
});
