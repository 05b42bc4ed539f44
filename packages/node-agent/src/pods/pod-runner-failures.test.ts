import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodePod } from "../pod/pod.ts";
import { RuntimeError, sandboxState } from "../runtime/runtime.ts";
import { noObjects } from "../sources/api-objects.ts";
import { aContainer, aNodePod, aPodWithVolumes } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { newTestRunner, noCgroups, volumesLike } from "../testing/runner.ts";
import type { PodRunnerOptions } from "./pod-runner-options.ts";

const never = new AbortController().signal;
const two = (): NodePod => aNodePod({ containers: [aContainer({ name: "a" }), aContainer({ name: "b" })] });
const broken = new RuntimeError("Unknown", "broken");

async function bench(t: TestContext, options: Partial<PodRunnerOptions> & { dir?: string } = {}) {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  return { clock, runtime, ...(await newTestRunner(t, runtime, clock, options)) };
}

test("the sync that starts containers reports them as running", async (t) => {
  const { runner, statusOf } = await bench(t);
  await runner.sync(two(), never);
  assert.deepEqual(
    statusOf(two())?.containerStatuses?.map(({ name, ready }) => [name, ready]),
    [
      ["a", true],
      ["b", true],
    ],
  );
  assert.equal(statusOf(two())?.phase, "Running");
});

test("a container whose creation fails does not delay the second one, and is retried", async (t) => {
  const { runner, runtime, statusOf } = await bench(t);
  runtime.failNext("CreateContainer", broken);
  const outcome = await runner.sync(two(), never);
  assert.match(
    outcome.kind === "failed" ? outcome.error.message : "",
    /failed to "StartContainer" for "a" with CreateContainerError/,
  );
  const states = () =>
    statusOf(two())?.containerStatuses?.map(({ state }) => state?.waiting?.reason ?? Object.keys(state ?? {})[0]);
  assert.deepEqual(states(), ["CreateContainerError", "running"]);
  assert.equal((await runner.sync(two(), never)).kind, "synced");
  assert.deepEqual(states(), ["running", "running"]);
  assert.equal(runtime.calls.filter((call) => call === "StartContainer b").length, 1);
});

test("a container that was created but could not be started is created again", async (t) => {
  const { runner, runtime, statusOf, clock } = await bench(t);
  runtime.failNext("StartContainer", broken);
  await runner.sync(aNodePod(), never);
  assert.equal(statusOf(aNodePod())?.containerStatuses?.[0]?.state?.waiting?.reason, "RunContainerError");
  await clock.advance(60_000);
  assert.equal((await runner.sync(aNodePod(), never)).kind, "synced");
  assert.ok(statusOf(aNodePod())?.containerStatuses?.[0]?.state?.running);
  assert.deepEqual(runtime.find("main")?.config.metadata?.attempt, 1);
});

test("a failed sandbox is reported and starts no container, and the next sync creates one", async (t) => {
  const { runner, runtime, events } = await bench(t);
  runtime.failNext("RunPodSandbox", broken);
  assert.equal((await runner.sync(aNodePod(), never)).kind, "failed");
  assert.deepEqual(runtime.calls, ["RunPodSandbox web"]);
  assert.equal(events.at(-1)?.reason, "FailedCreatePodSandBox");
  assert.equal((await runner.sync(aNodePod(), never)).kind, "synced");
  assert.equal([...runtime.sandboxes.values()].filter(({ state }) => state === sandboxState.ready).length, 1);
});

test("containers of an exited sandbox are stopped, and the next sandbox has the next attempt number", async (t) => {
  const { runner, runtime, events } = await bench(t);
  await runner.sync(two(), never);
  await runtime.stopPodSandbox([...runtime.sandboxes.keys()][0] ?? "");
  await runner.sync(two(), never);
  assert.deepEqual(
    [...runtime.sandboxes.values()].map(({ state, config }) => [state === sandboxState.ready, config.metadata?.attempt]),
    [
      [false, 0],
      [true, 1],
    ],
  );
  assert.equal(events.filter(({ reason }) => reason === "SandboxChanged").length, 1);
  assert.deepEqual([runtime.find("a")?.config.metadata?.attempt, runtime.find("b")?.config.metadata?.attempt], [1, 1]);
});

test("a sandbox without addresses gives its containers none, and no hosts file", async (t) => {
  const { runner, runtime } = await bench(t);
  const { podSandboxStatus } = runtime;
  runtime.podSandboxStatus = async (id) => ({
    ...(await podSandboxStatus(id)),
    network: { ip: "", additionalIps: [{ ip: "" }] },
  });
  const env = [{ name: "IPS", valueFrom: { fieldRef: { fieldPath: "status.podIPs" } } }];
  await runner.sync(aNodePod({ containers: [aContainer({ env })] }), never);
  const { envs = [], mounts = [] } = runtime.find("main")?.config ?? assert.fail();
  assert.equal(envs.find(({ key }) => key === "IPS")?.value, "");
  assert.deepEqual(
    mounts.filter(({ containerPath }) => containerPath === "/etc/hosts"),
    [],
  );
});

test("a sandbox that was made after the pod's end is stopped before it is removed", async (t) => {
  const { runner, runtime } = await bench(t);
  await runner.sync(aNodePod(), never);
  await runner.terminate(aNodePod(), { runtimeOnly: false });
  const [first] = runtime.sandboxes.values();
  await runtime.runPodSandbox({ ...first?.config, metadata: { ...first?.config.metadata, attempt: 1 } }, "");
  runtime.calls.length = 0;
  await runner.clean(aNodePod(), { deleted: true, runtimeOnly: false });
  const ends = runtime.calls.filter((call) => /PodSandbox/.test(call)).map((call) => call.split(" ")[0]);
  assert.deepEqual(ends, ["StopPodSandbox", "RemovePodSandbox", "RemovePodSandbox"]);
  assert.equal(runtime.sandboxes.size, 0);
});

test("containers and status get every address of the sandbox", async (t) => {
  const { runner, runtime, statusOf } = await bench(t);
  const { podSandboxStatus } = runtime;
  runtime.podSandboxStatus = async (id) => {
    const status = await podSandboxStatus(id);
    return { ...status, network: { ip: "10.0.0.1", additionalIps: [{ ip: "fd00::1" }] } };
  };
  const env = [{ name: "IPS", valueFrom: { fieldRef: { fieldPath: "status.podIPs" } } }];
  const pod = aNodePod({ containers: [aContainer({ env })] });
  await runner.sync(pod, never);
  const given = runtime.find("main")?.config.envs?.find(({ key }) => key === "IPS");
  assert.equal(given?.value, "10.0.0.1,fd00::1");
  assert.deepEqual(statusOf(pod)?.podIPs, [{ ip: "10.0.0.1" }, { ip: "fd00::1" }]);
});

test("a pod whose termination is requested during sandbox creation starts no container", async (t) => {
  const { runner, runtime } = await bench(t);
  const stop = new AbortController();
  const { runPodSandbox } = runtime;
  runtime.runPodSandbox = (...args) => {
    stop.abort();
    return runPodSandbox(...args);
  };
  await runner.sync(two(), stop.signal);
  assert.deepEqual(runtime.calls, ["RunPodSandbox web"]);
});

test("a sandbox that cannot be created since its pod is being removed is not reported as a failure", async (t) => {
  const starts: unknown[] = [];
  const { runner, runtime, events } = await bench(t, { onStart: (...start) => void starts.push(start) });
  const stop = new AbortController();
  runtime.runPodSandbox = async () => {
    stop.abort();
    throw broken;
  };
  const outcome = await runner.sync(two(), stop.signal);
  assert.ok(!events.some(({ reason }) => reason === "FailedCreatePodSandBox"));
  assert.deepEqual([outcome.kind, starts], ["synced", [["pod"]]]);
});

test("after its sandbox has exited all init containers of a pod run again, one by one", async (t) => {
  const { runner, runtime } = await bench(t);
  const initContainers = ["i1", "i2"].map((name) => aContainer({ name }));
  const pod = aNodePod({ initContainers });
  const run = async (): Promise<string[]> => {
    const before = runtime.calls.length;
    for (const name of ["i1", "i2"]) {
      await runner.sync(pod, never);
      runtime.exit(runtime.find(name)?.id ?? "", 0);
    }
    await runner.sync(pod, never);
    return runtime.calls.slice(before).filter((call) => call.startsWith("StartContainer"));
  };
  const all = ["i1", "i2", "main"].map((name) => `StartContainer ${name}`);
  assert.deepEqual(await run(), all);
  await runtime.stopPodSandbox([...runtime.sandboxes.keys()][0] ?? "");
  assert.deepEqual(await run(), all);
});

test("a postStart hook gets the first of the sandbox's addresses", async (t) => {
  const { runtime, clock, ...made } = await bench(t);
  const { podSandboxStatus } = runtime;
  runtime.podSandboxStatus = async (id) => {
    const status = await podSandboxStatus(id);
    return { ...status, network: { ip: "10.0.0.1", additionalIps: [{ ip: "fd00::1" }] } };
  };
  const asked: string[] = [];
  const { runner } = await newTestRunner(t, runtime, clock, {
    dir: made.dir,
    containers: {
      runtime,
      clock,
      log: discardLogger,
      event: () => undefined,
      runHook: async ({ podIp }) => void asked.push(podIp),
      podLogsDir: `${made.dir}/logs`,
      containerLogsDir: `${made.dir}/links`,
      seccompDefault: false,
      seccompRoot: made.dir,
    },
  });
  const lifecycle = { postStart: { exec: { command: ["hello"] } } };
  await runner.sync(aNodePod({ containers: [aContainer({ lifecycle })] }), never);
  assert.deepEqual(asked, ["10.0.0.1"]);
});

test("a container that cannot be stopped does not prevent stopping the others, and termination is retried", async (t) => {
  const { runner, runtime, events } = await bench(t);
  await runner.sync(two(), never);
  runtime.failNext("StopContainer", broken);
  await assert.rejects(runner.terminate(two(), { runtimeOnly: false }), /broken/);
  assert.deepEqual(runtime.calls.filter((call) => call.startsWith("Stop")).toSorted(), [
    "StopContainer a",
    "StopContainer b",
    "StopPodSandbox web",
  ]);
  const failures = () => events.filter(({ reason }) => reason === "FailedKillPod").map(({ type, message }) => [type, message]);
  assert.deepEqual(failures(), [["Warning", `error killing pod: ${broken.message}`]]);
  await runner.terminate(two(), { runtimeOnly: false });
  assert.equal(failures().length, 1);
});

test("a created sandbox whose status cannot be read is reported, and used by the next sync", async (t) => {
  const { runner, runtime, events, statusOf } = await bench(t);
  const { podSandboxStatus, runPodSandbox } = runtime;
  runtime.runPodSandbox = (...args) => {
    runtime.podSandboxStatus = () => {
      runtime.podSandboxStatus = podSandboxStatus;
      return Promise.reject(broken);
    };
    return runPodSandbox(...args);
  };
  const outcome = await runner.sync(two(), never);
  assert.deepEqual(outcome, { kind: "failed", error: new Error(`error syncing pod: ${broken.message}`) });
  const { reason, message } = events.at(-1) ?? {};
  assert.deepEqual([reason, message], ["FailedPodSandBoxStatus", `Unable to get pod sandbox status: ${broken.message}`]);
  assert.equal((await runner.sync(two(), never)).kind, "synced");
  assert.equal(runtime.calls.filter((call) => call.startsWith("RunPodSandbox")).length, 1);
  assert.equal(statusOf(two())?.phase, "Running");
});

test("a pod waits as Blocked while its AppArmor profile cannot be enforced; a running pod is not affected", async (t) => {
  let refusal: string | undefined = 'profile "p" is not loaded';
  const { runner, runtime, statusOf } = await bench(t, { appArmor: { refusal: async () => refusal } });
  const outcome = await runner.sync(two(), never);
  const message = 'Cannot enforce AppArmor: profile "p" is not loaded';
  assert.deepEqual(outcome, { kind: "failed", error: new Error(`pod cannot be run: ${message}`) });
  assert.partialDeepStrictEqual(statusOf(two()), { phase: "Pending", reason: "AppArmor", message });
  assert.deepEqual(
    statusOf(two())?.containerStatuses?.map(({ state }) => state?.waiting?.reason),
    ["Blocked", "Blocked"],
  );
  assert.deepEqual(runtime.calls, []);
  refusal = undefined;
  assert.equal((await runner.sync(two(), never)).kind, "synced");
  assert.deepEqual([statusOf(two())?.phase, statusOf(two())?.reason], ["Running", undefined]);
  refusal = "AppArmor is not enabled on the host";
  assert.equal((await runner.sync(two(), never)).kind, "synced");
  assert.equal(statusOf(two())?.phase, "Running");
});

test("a pod with a profile that can no longer be enforced before its containers run is stopped", async (t) => {
  let refusal: string | undefined;
  const { runner, runtime, statusOf } = await bench(t, { appArmor: { refusal: async () => refusal } });
  const pod = aNodePod({ initContainers: [aContainer({ name: "init" })], containers: [aContainer({ name: "a" })] });
  await runner.sync(pod, never);
  refusal = "not loaded";
  assert.match(String(Object.values(await runner.sync(pod, never))[1]), /pod cannot be run/);
  assert.ok(runtime.calls.includes("StopContainer init"));
  assert.equal([...runtime.sandboxes.values()][0]?.state, sandboxState.notReady);
  assert.equal(statusOf(pod)?.reason, "AppArmor");
});

test("a pod that may not run and cannot be stopped is reported with what prevents it, and tried again", async (t) => {
  let refusal: string | undefined;
  const { runner, runtime, statusOf } = await bench(t, { appArmor: { refusal: async () => refusal } });
  const pod = aNodePod({ initContainers: [aContainer({ name: "init" })], containers: [aContainer({ name: "a" })] });
  await runner.sync(pod, never);
  refusal = "not loaded";
  runtime.failNext("StopPodSandbox", broken);
  const outcome = await runner.sync(pod, never);
  assert.match(outcome.kind === "failed" ? outcome.error.message : "", /^error killing pod: .*broken/);
  assert.equal(statusOf(pod)?.reason, "AppArmor");
  assert.match(String(Object.values(await runner.sync(pod, never))[1]), /pod cannot be run/);
  assert.equal([...runtime.sandboxes.values()][0]?.state, sandboxState.notReady);
});

test("a pod has not ended while the runtime shows a container of it running, whatever it answered", async (t) => {
  const { runner, runtime, statusOf } = await bench(t);
  await runner.sync(two(), never);
  const { stopContainer, stopPodSandbox } = runtime;
  const survivor = runtime.find("b")?.id;
  runtime.stopContainer = async (id, seconds) => (id === survivor ? undefined : stopContainer(id, seconds));
  runtime.stopPodSandbox = async () => undefined;
  await assert.rejects(
    runner.terminate(two(), { runtimeOnly: false }),
    /detected running containers after a successful KillPod.*: b$/,
  );
  assert.ok(statusOf(two())?.containerStatuses?.[1]?.state?.running, "it is not said to have ended");
  Object.assign(runtime, { stopContainer, stopPodSandbox });
  await runner.terminate(two(), { runtimeOnly: false });
  assert.ok(statusOf(two())?.containerStatuses?.every(({ state }) => state?.terminated !== undefined));
});

test("a pod that starts again under the same uid does not keep its earlier back-off", async (t) => {
  const { runner, runtime, statusOf, status } = await bench(t);
  runtime.failNext("CreateContainer", broken);
  await runner.sync(aNodePod(), never);
  await runner.terminate(aNodePod(), { runtimeOnly: false });
  await runner.clean(aNodePod(), { deleted: true, runtimeOnly: false });
  status.forget("uid-1");
  runtime.failNext("RunPodSandbox", broken);
  await runner.sync(aNodePod(), never);
  assert.deepEqual(statusOf(aNodePod())?.containerStatuses?.[0]?.state, { waiting: { reason: "ContainerCreating" } });
});

test("a cgroup that cannot be removed fails the clean-up and keeps the pod's folder for a retry", async (t) => {
  for (const deleted of [true, false]) {
    let stuck = true;
    const cgroups = { ...noCgroups, remove: async () => !stuck };
    const { runner, volumes } = await bench(t, { cgroups });
    await runner.sync(aNodePod(), never);
    await runner.terminate(aNodePod(), { runtimeOnly: false });
    await assert.rejects(
      runner.clean(aNodePod(), { deleted, runtimeOnly: false }),
      /processes are left in the cgroup of pod uid-1/,
    );
    assert.equal(await volumes.exists("uid-1"), true);
    stuck = false;
    await runner.clean(aNodePod(), { deleted, runtimeOnly: false });
    assert.equal(await volumes.exists("uid-1"), !deleted);
  }
});

test("volumes that cannot be unmounted fail the clean-up before the pod's folder and cgroup are removed", async (t) => {
  const made = await bench(t);
  const removed: string[] = [];
  const cgroups = { ...noCgroups, remove: async (uid: string) => removed.push(uid) > 0 };
  const volumes = volumesLike(made.volumes, { unmount: () => Promise.reject(new Error("busy")) });
  const { runner } = await newTestRunner(t, made.runtime, made.clock, { dir: made.dir, volumes, cgroups });
  await assert.rejects(runner.clean(aNodePod(), { deleted: false, runtimeOnly: false }), /busy/);
  assert.deepEqual(removed, []);
});

test("while one of two volumes is missing no container starts, and both are reported; then both start", async (t) => {
  const made = await bench(t);
  let missing = ["second"];
  const volumes = volumesLike(made.volumes, {
    setUp: async () => ({
      volumes: new Map(
        ["first", "second"].filter((name) => !missing.includes(name)).map((name) => [name, { path: "/v", readOnly: true }]),
      ),
      failures: missing.map((volume) => ({ volume, message: "not there", cause: new Error("not there") })),
    }),
  });
  const { runner } = await newTestRunner(t, made.runtime, made.clock, { dir: made.dir, volumes });
  const pod = aPodWithVolumes([
    { name: "first", emptyDir: {} },
    { name: "second", emptyDir: {} },
  ]);
  const outcomes: (number | undefined)[] = [];
  for (let i = 0; i < 3; i++) {
    const outcome = await runner.sync(pod, never);
    outcomes.push(outcome.kind === "failed" ? outcome.retryMs : undefined);
  }
  assert.deepEqual([outcomes, made.runtime.calls], [[500, 1000, 2000], []], "after longer and longer waits");
  missing = [];
  assert.equal((await runner.sync(pod, never)).kind, "synced");
  missing = ["first"];
  await made.runtime.stopPodSandbox([...made.runtime.sandboxes.keys()][0] ?? "");
  const again = await runner.sync(pod, never);
  assert.equal(again.kind === "failed" && again.retryMs, 500, "waits are short again once they were there");
});

test("the probes of an ended pod stop, and their results are forgotten", async (t) => {
  const { runner, runtime, clock, statusOf } = await bench(t);
  const probe = { exec: { command: ["check"] }, periodSeconds: 1 };
  const pod = aNodePod({ containers: [aContainer({ readinessProbe: probe, livenessProbe: probe })] });
  await runner.sync(pod, never);
  await clock.advance(1_000);
  await runner.sync(pod, never);
  assert.equal(statusOf(pod)?.containerStatuses?.[0]?.ready, true);
  await runner.terminate(pod, { runtimeOnly: false });
  assert.equal(clock.waiting, 0);
  assert.equal(runtime.find("main")?.exitCode, 137);
});

test("a missing or unreadable pull secret does not prevent the use of the others", async (t) => {
  const config = JSON.stringify({ auths: { "registry.test": { username: "second", password: "p" } } });
  const requests: string[] = [];
  const objects: PodRunnerOptions["objects"] = {
    ...noObjects,
    secret: async (namespace, name) => {
      requests.push(name);
      if (name === "absent") return noObjects.secret(namespace, name);
      if (name === "unreadable") throw new Error("connection refused");
      const data = { ".dockerconfigjson": Buffer.from(config).toString("base64") };
      return { metadata: { name }, type: "kubernetes.io/dockerconfigjson", data };
    },
  };
  const warned: unknown[] = [];
  const log = { ...discardLogger, warn: (_: string, fields?: object) => void warned.push(fields) };
  const { runner, runtime } = await bench(t, { objects, log });
  const users: unknown[] = [];
  runtime.registry.add("registry.test/private:1");
  const { pullImage } = runtime;
  runtime.pullImage = (image, login, sandbox) => {
    users.push(login?.username);
    return pullImage(image, login, sandbox);
  };
  const pod = aNodePod({
    imagePullSecrets: ["absent", "unreadable", "there"].map((name) => ({ name })),
    containers: [aContainer({ image: "registry.test/private:1" })],
  });
  assert.equal((await runner.sync(pod, never)).kind, "synced");
  assert.deepEqual([requests, users], [["absent", "unreadable", "there"], ["second"]]);
  hasFields(warned, [{ secret: "unreadable" }]);
});

test("a failed init container runs again, and only its newest instance is kept", async (t) => {
  const { runner, runtime, clock } = await bench(t);
  const pod = aNodePod({ initContainers: [aContainer({ name: "init" })] });
  for (let life = 0; life < 3; life++) {
    await runner.sync(pod, never);
    runtime.exit(runtime.find("init")?.id ?? "", 1);
    await clock.advance(60_000);
  }
  await runner.sync(pod, never);
  const lives = [...runtime.containers.values()].filter(({ config }) => config.metadata?.name === "init");
  assert.deepEqual(
    lives.map(({ config }) => config.metadata?.attempt),
    [2, 3],
    "the one before and the present one",
  );
  assert.equal(runtime.find("main"), undefined);
});

test("a sync reports the time until the pod's deadline", async (t) => {
  const { runner, clock } = await bench(t);
  const pod = aNodePod({ activeDeadlineSeconds: 60 });
  await runner.sync(pod, never);
  await clock.advance(25_000);
  const outcome = await runner.sync(pod, never);
  assert.equal(outcome.kind === "synced" && outcome.againMs, 35_000);
});

test("the containers of a deleted pod are removed one by one; failing to remove a container or a sandbox is an error", async (t) => {
  const { runner, runtime, volumes } = await bench(t);
  await runner.sync(two(), never);
  await runner.terminate(two(), { runtimeOnly: false });
  const clean = () => runner.clean(two(), { deleted: true, runtimeOnly: false });
  const removals = () => runtime.calls.filter((call) => call.startsWith("Remove"));
  runtime.failNext("RemoveContainer", broken);
  await assert.rejects(clean(), /broken/);
  assert.equal(runtime.sandboxes.size, 1, "a sandbox is removed after its containers");
  runtime.failNext("RemovePodSandbox", broken);
  await assert.rejects(clean(), /broken/);
  assert.equal(await volumes.exists("uid-1"), true, "and the folder after the sandbox");
  assert.deepEqual(removals().slice(1).toSorted(), ["RemoveContainer a", "RemoveContainer b", "RemovePodSandbox web"]);
  runtime.failNext("RemovePodSandbox", new RuntimeError("NotFound", "gone"));
  await clean();
  assert.equal(await volumes.exists("uid-1"), false);
});

test("the sandbox's address is reported before a container has started in it", async (t) => {
  const { runner, runtime, statusOf } = await bench(t);
  const stop = new AbortController();
  const { podSandboxStatus } = runtime;
  runtime.podSandboxStatus = (id) => {
    stop.abort();
    return podSandboxStatus(id);
  };
  await runner.sync(aNodePod(), stop.signal);
  const [sandbox] = runtime.sandboxes.values();
  assert.deepEqual([statusOf(aNodePod())?.podIP, runtime.containers.size], [sandbox?.ip, 0]);
});

test("a sandbox without an address is stopped before the next one is created", async (t) => {
  const { runner, runtime } = await bench(t);
  const { podSandboxStatus } = runtime;
  const first = (): string | undefined => [...runtime.sandboxes.keys()][0];
  runtime.podSandboxStatus = async (id) => {
    const status = await podSandboxStatus(id);
    return id === first() ? { ...status, network: { ip: "", additionalIps: [] } } : status;
  };
  runtime.failNext("CreateContainer", broken);
  await runner.sync(aNodePod(), never);
  await runner.sync(aNodePod(), never);
  assert.deepEqual(
    runtime.calls.filter((call) => call.includes("Sandbox")),
    ["RunPodSandbox web", "StopPodSandbox web", "RunPodSandbox web"],
  );
});

test("a container that outlived its sandbox is stopped before the next sandbox is made", async (t) => {
  const { runner, runtime } = await bench(t);
  await runner.sync(two(), never);
  for (const sandbox of runtime.sandboxes.values()) sandbox.state = sandboxState.notReady;
  runtime.calls.length = 0;
  await runner.sync(two(), never);
  assert.deepEqual(runtime.calls.slice(0, 2).toSorted(), ["StopContainer a", "StopContainer b"]);
  assert.ok(runtime.calls.indexOf("RunPodSandbox web") > 1, runtime.calls.join());
});

test("a pod's first runtime call waits for its preparation, and a failed preparation fails the sync", async (t) => {
  const prepared = Promise.withResolvers<void>();
  const { runner, runtime } = await bench(t, { prepare: () => prepared.promise });
  const synced = runner.sync(aNodePod(), never);
  await settle(30);
  assert.deepEqual(runtime.calls, []);
  prepared.resolve();
  assert.equal((await synced).kind, "synced");
  const failing = await bench(t, { prepare: () => Promise.reject(new Error("away")) });
  await assert.rejects(failing.runner.sync(aNodePod(), never), /^Error: away$/);
});

test("running containers keep their probes when a restarted kubelet cannot mount one of their volumes", async (t) => {
  const made = await bench(t);
  const pod = aNodePod({
    containers: [aContainer({ readinessProbe: { exec: { command: ["check"] }, periodSeconds: 1 } })],
    volumes: [{ name: "v", emptyDir: {} }],
  });
  await made.runner.sync(pod, never);
  const failures = [{ volume: "v", message: "away", cause: new Error("away") }];
  const volumes = volumesLike(made.volumes, { setUp: async () => ({ volumes: new Map(), failures }) });
  const restarted = await newTestRunner(t, made.runtime, made.clock, { dir: made.dir, volumes });
  made.runtime.execSync = async () => ({ stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: 1 });
  assert.equal((await restarted.runner.sync(pod, never)).kind, "failed");
  await made.clock.advance(1_000);
  await restarted.runner.sync(pod, never);
  assert.equal(restarted.statusOf(pod)?.containerStatuses?.[0]?.ready, false);
});

test("a container that started after a failure and exited later is not reported as failed to start", async (t) => {
  const { runner, runtime, statusOf, clock } = await bench(t);
  runtime.failNext("CreateContainer", broken);
  await runner.sync(aNodePod(), never);
  await runner.sync(aNodePod(), never);
  runtime.exit(runtime.find("main")?.id ?? "", 3);
  await clock.advance(60_000);
  const { createContainer } = runtime;
  let before: unknown;
  runtime.createContainer = (...args) => {
    before = statusOf(aNodePod())?.containerStatuses?.[0]?.state;
    return createContainer(...args);
  };
  await runner.sync(aNodePod(), never);
  assert.partialDeepStrictEqual(before, { terminated: { exitCode: 3 } });
});

test("a deleted pod's second sandbox is removed though the first is gone already", async (t) => {
  const { runner, runtime } = await bench(t);
  await runner.sync(aNodePod(), never);
  await runtime.stopPodSandbox([...runtime.sandboxes.keys()][0] ?? "");
  await runner.sync(aNodePod(), never);
  assert.equal(runtime.sandboxes.size, 2);
  for (const sandbox of runtime.sandboxes.values()) sandbox.state = sandboxState.ready;
  await runner.terminate(aNodePod(), { runtimeOnly: false });
  assert.ok([...runtime.sandboxes.values()].every(({ state }) => state === sandboxState.notReady));
  runtime.failNext("RemovePodSandbox", new RuntimeError("NotFound", "gone"));
  await runner.clean(aNodePod(), { deleted: true, runtimeOnly: false });
  assert.equal(runtime.calls.filter((call) => call === "RemovePodSandbox web").length, 2);
});

test("the reason for which the node ended a pod is reported while its containers stop and afterwards", async (t) => {
  const { runner, runtime, statusOf } = await bench(t);
  await runner.sync(aNodePod(), never);
  const reported: unknown[] = [];
  const { stopContainer } = runtime;
  runtime.stopContainer = (...args) => {
    reported.push(statusOf(aNodePod()));
    return stopContainer(...args);
  };
  await runner.terminate(aNodePod(), { runtimeOnly: false, verdict: { reason: "Evicted", message: "no memory" } });
  reported.push(statusOf(aNodePod()));
  const verdict = { phase: "Failed", reason: "Evicted", message: "no memory" };
  hasFields(reported, [verdict, { ...verdict, containerStatuses: [{ state: { terminated: {} } }] }]);
});

test("a pod whose termination is requested while its exited sandbox is stopped gets no new sandbox", async (t) => {
  const { runner, runtime } = await bench(t);
  await runner.sync(aNodePod(), never);
  for (const sandbox of runtime.sandboxes.values()) sandbox.state = sandboxState.notReady;
  const stop = new AbortController();
  const { stopContainer } = runtime;
  runtime.stopContainer = (...args) => {
    stop.abort();
    return stopContainer(...args);
  };
  runtime.calls.length = 0;
  await runner.sync(aNodePod(), stop.signal);
  assert.deepEqual(runtime.calls, ["StopContainer main"]);
});

test("a sandbox that cannot be stopped does not prevent stopping the pod's other sandboxes", async (t) => {
  const { runner, runtime } = await bench(t);
  await runner.sync(aNodePod(), never);
  const [first] = runtime.sandboxes.values();
  await runtime.runPodSandbox({ ...first?.config, metadata: { ...first?.config.metadata, attempt: 1 } }, "");
  runtime.failNext("StopPodSandbox", broken);
  await assert.rejects(runner.terminate(aNodePod(), { runtimeOnly: false }), /broken/);
  const ready = [...runtime.sandboxes.values()].filter(({ state }) => state === sandboxState.ready);
  assert.equal(ready.length, 1);
});

test("a sandbox that the runtime no longer has when it is stopped is no failure of the pod's end", async (t) => {
  const { runner, runtime, events } = await bench(t);
  await runner.sync(aNodePod(), never);
  runtime.failNext("StopPodSandbox", new RuntimeError("NotFound", "gone"));
  await runner.terminate(aNodePod(), { runtimeOnly: false });
  assert.deepEqual(
    events.filter(({ reason }) => reason === "FailedKillPod"),
    [],
  );
});
