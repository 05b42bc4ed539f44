import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Container, PodStatus, Probe } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { answer, startGrpcServer } from "@coxswain/apimachinery/transport/grpc/testing/grpc-server";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { ProbeManager } from "./probe-manager.ts";

const check = (more: Partial<Probe> = {}): Probe => ({
  exec: { command: ["check"] },
  periodSeconds: 1,
  failureThreshold: 1,
  ...more,
});

/** Containers that are running from the start; the test sets the probe results by container ID. */
function probing(containers: Container[], spec: Parameters<typeof aNodePod>[0] = {}, grpcEnabled = false) {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const runs: string[] = [];
  const changes: string[] = [];
  const counted: string[] = [];
  const versions: (string | undefined)[] = [];
  const exitCodes: Record<string, number> = {};
  let hold: Promise<void> | undefined;
  let errors = 0;
  const reported: string[] = [];
  const timeouts: number[] = [];
  runtime.execSync = async (id, _command, timeoutSeconds) => {
    runs.push(id);
    timeouts.push(timeoutSeconds);
    await hold;
    if (errors-- > 0) throw new Error("cannot be executed");
    return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: exitCodes[id] ?? 0 };
  };
  const startedAt = formatTime(clock.now());
  const running = (name: string, id = name) => ({
    name,
    containerID: `containerd://${id}`,
    started: true,
    state: { running: { startedAt } },
  });
  const status: { phase: string; podIP?: string; containerStatuses: object[] } = {
    phase: "Running",
    containerStatuses: containers.map(({ name }) => running(name)),
  };
  const pod = aNodePod({ containers, ...spec });
  const manager = new ProbeManager({
    runtime,
    clock,
    log: discardLogger,
    event: (_pod, container, _type, reason, message) => void reported.push(`${container?.name} ${reason}: ${message}`),
    statusOf: () => status as PodStatus,
    onChange: (uid) => void changes.push(uid),
    grpcEnabled,
    onProbe(kind, result, { metadata }, container) {
      counted.push(`${kind} ${container} ${result}`);
      versions.push(metadata.resourceVersion);
    },
  });
  manager.add(pod);
  /** Blocks the following probes. @returns a function that releases them */
  const holdProbes = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    hold = promise;
    return () => {
      hold = undefined;
      resolve();
    };
  };
  const failNext = (times: number): void => {
    errors = times;
  };
  return {
    clock,
    manager,
    pod,
    status,
    running,
    runs,
    timeouts,
    changes,
    counted,
    versions,
    reported,
    exitCodes,
    holdProbes,
    failNext,
  };
}

test("each container has its own probes and its own result", async () => {
  const made = probing([aContainer({ name: "a", livenessProbe: check() }), aContainer({ name: "b", livenessProbe: check() })]);
  made.exitCodes["b"] = 1;
  await made.clock.advance(100);
  assert.deepEqual([made.manager.results.liveness("a"), made.manager.results.liveness("b")], ["success", "failure"]);
  assert.deepEqual(made.counted.toSorted(), ["liveness a successful", "liveness b failed"]);
});

test("a pod that is added again has no second probe of a kind", async () => {
  const { clock, manager, pod, runs } = probing([aContainer({ readinessProbe: check() })]);
  manager.add(pod);
  await clock.advance(100);
  manager.add(pod);
  await clock.advance(1_000);
  assert.deepEqual([runs.length, clock.waiting], [2, 1]);
});

test("a success between failures resets their count, and the other way round", async () => {
  for (const [kind, threshold, first] of [
    ["livenessProbe", { failureThreshold: 2 }, 1],
    ["readinessProbe", { successThreshold: 2 }, 0],
  ] as const) {
    const { clock, manager, exitCodes } = probing([aContainer({ name: "a", [kind]: check(threshold) })]);
    const result = () => (kind === "livenessProbe" ? manager.results.liveness("a") : manager.results.readiness("a"));
    const initial = kind === "livenessProbe" ? "success" : "failure";
    for (const exitCode of [first, 1 - first, first]) {
      exitCodes["a"] = exitCode;
      await clock.advance(1_000);
      assert.equal(result(), initial, `${kind} after ${exitCode}`);
    }
    await clock.advance(1_000);
    assert.notEqual(result(), initial, "two in a row");
  }
});

test("the result of a probe whose container was replaced meanwhile is discarded", async () => {
  const { clock, manager, status, running, exitCodes, holdProbes } = probing([aContainer({ name: "a", livenessProbe: check() })]);
  exitCodes["a"] = 1;
  const release = holdProbes();
  await clock.advance(100);
  status.containerStatuses = [running("a", "a2")];
  release();
  await settle();
  assert.equal(manager.results.liveness("a2"), undefined);
  await clock.advance(1_000);
  assert.deepEqual([manager.results.liveness("a"), manager.results.liveness("a2")], [undefined, "success"]);
});

test("a restarted container does not inherit its predecessor's readiness, and is reported ready once", async () => {
  const { clock, manager, status, running, changes, exitCodes } = probing([aContainer({ name: "a", readinessProbe: check() })]);
  await clock.advance(1_000);
  assert.deepEqual([manager.results.readiness("a"), changes.length], ["success", 1]);
  await clock.advance(5_000);
  assert.equal(changes.length, 1, "the same again is no news");
  exitCodes["a2"] = 1;
  status.containerStatuses = [running("a", "a2")];
  await clock.advance(1_000);
  assert.deepEqual([manager.results.readiness("a"), manager.results.readiness("a2")], [undefined, "failure"]);
});

for (const restartPolicy of ["Always", "OnFailure"])
  test(`an exited container under ${restartPolicy} is not ready without another probe`, async () => {
    const containers = [aContainer({ name: "a", readinessProbe: check() })];
    const { clock, manager, status, runs } = probing(containers, { restartPolicy });
    await clock.advance(100);
    assert.equal(manager.results.readiness("a"), "success");
    const before = runs.length;
    status.containerStatuses = [{ name: "a", containerID: "containerd://a", state: { terminated: { exitCode: 1 } } }];
    await clock.advance(2_000);
    assert.deepEqual([manager.results.readiness("a"), runs.length], ["failure", before]);
    assert.equal(clock.waiting, 1, "it may be restarted");
  });

test("probes stop when their pod has ended, or their container will not be restarted", async () => {
  const ended = probing([aContainer({ name: "a", readinessProbe: check(), livenessProbe: check() })]);
  await ended.clock.advance(100);
  ended.status.phase = "Succeeded";
  await ended.clock.advance(2_000);
  assert.deepEqual([ended.clock.waiting, ended.manager.results.readiness("a")], [0, undefined]);
  const forGood = probing(
    [aContainer({ name: "a", readinessProbe: check() }), aContainer({ name: "b", readinessProbe: check() })],
    {
      restartPolicy: "Never",
    },
  );
  await forGood.clock.advance(100);
  forGood.status.containerStatuses = [
    { name: "a", containerID: "containerd://a", state: { terminated: { exitCode: 1 } } },
    forGood.running("b"),
  ];
  await forGood.clock.advance(2_000);
  assert.deepEqual(
    ["a", "b"].map((name) => forGood.manager.results.isProbed("readiness", "uid-1", name)),
    [false, true],
  );
});

test("a pod that ends keeps its readiness probe until it is removed, and other pods keep theirs", async () => {
  const { clock, manager, pod, runs } = probing([
    aContainer({ name: "a", readinessProbe: check(), livenessProbe: check(), startupProbe: check() }),
  ]);
  manager.add({ ...pod, metadata: { ...pod.metadata, uid: "uid-2" } });
  manager.stopLivenessAndStartup("uid-1");
  const probed = (uid: string) =>
    (["startup", "readiness", "liveness"] as const).map((kind) => manager.results.isProbed(kind, uid, "a"));
  assert.deepEqual(
    [probed("uid-1"), probed("uid-2")],
    [
      [false, true, false],
      [true, true, true],
    ],
  );
  manager.remove("uid-1");
  assert.deepEqual(
    [probed("uid-1"), probed("uid-2")],
    [
      [false, false, false],
      [true, true, true],
    ],
  );
  manager.remove("uid-2");
  await clock.advance(5_000);
  assert.deepEqual([runs, clock.waiting], [[], 0]);
});

test("a running probe of a removed pod leaves no result and is not repeated", async () => {
  const { clock, manager, runs, changes, exitCodes, holdProbes } = probing([aContainer({ name: "a", livenessProbe: check() })]);
  exitCodes["a"] = 1;
  const release = holdProbes();
  await clock.advance(100);
  manager.remove("uid-1");
  release();
  await settle();
  await clock.advance(5_000);
  assert.deepEqual([runs.length, changes, manager.results.liveness("a"), clock.waiting], [1, [], undefined, 0]);
});

test("a pod added again while an earlier probe of it hangs is probed once, and can be removed", async () => {
  const { clock, manager, pod, runs, status, running, holdProbes } = probing([aContainer({ name: "a", livenessProbe: check() })]);
  const release = holdProbes();
  await clock.advance(100);
  manager.remove("uid-1");
  manager.add(pod);
  status.containerStatuses = [running("a", "a2")];
  release();
  await settle();
  assert.equal(manager.results.isProbed("liveness", "uid-1", "a"), true);
  await clock.advance(100);
  manager.add(pod);
  await clock.advance(1_000);
  assert.deepEqual([runs, clock.waiting], [["a", "a2", "a2"], 1]);
  manager.remove("uid-1");
  assert.equal(clock.waiting, 0);
});

test("after a failed startup probe only the next container is probed", async () => {
  const { clock, manager, status, running, runs, exitCodes } = probing([aContainer({ name: "a", startupProbe: check() })]);
  status.containerStatuses = [{ ...running("a"), started: false }];
  exitCodes["a"] = 1;
  await clock.advance(100);
  assert.equal(manager.results.startup("a"), "failure");
  await clock.advance(10_000);
  assert.equal(runs.length, 1, "a container that is going to be restarted is not probed");
  status.containerStatuses = [{ ...running("a", "a2"), started: false }];
  await clock.advance(1_000);
  assert.deepEqual([runs, manager.results.startup("a2")], [["a", "a2"], "success"]);
});

test("the duration of a probe is subtracted from the delay before the next one", async () => {
  const { clock, runs, holdProbes } = probing([aContainer({ name: "a", livenessProbe: check({ periodSeconds: 10 }) })]);
  const release = holdProbes();
  await clock.advance(100);
  await clock.advance(4_000);
  release();
  await settle();
  await clock.advance(5_999);
  assert.equal(runs.length, 1);
  await clock.advance(1);
  assert.equal(runs.length, 2);
});

test("the initial delay is counted in whole seconds from the start of the container", async () => {
  const { clock, runs } = probing([aContainer({ livenessProbe: check({ initialDelaySeconds: 5 }) })]);
  await clock.advance(4_999);
  assert.equal(runs.length, 0);
  await clock.advance(1_000);
  assert.equal(runs.length, 1);
});

test("a container is probed at the very end of its initial delay", async () => {
  const { clock, manager, pod, runs } = probing([aContainer({ livenessProbe: check({ initialDelaySeconds: 5 }) })]);
  manager.remove(pod.metadata.uid);
  await clock.advance(900);
  manager.add(pod); // checked at whole seconds from now on
  await clock.advance(4_099);
  assert.equal(runs.length, 0);
  await clock.advance(1);
  assert.equal(runs.length, 1);
});

test("a failure of the container before does not count against the new one", async () => {
  const { clock, manager, status, running, exitCodes } = probing([
    aContainer({ name: "a", livenessProbe: check({ failureThreshold: 2 }) }),
  ]);
  Object.assign(exitCodes, { a: 1, a2: 1 });
  await clock.advance(100);
  status.containerStatuses = [running("a", "a2")];
  await clock.advance(1_000);
  assert.equal(manager.results.liveness("a2"), "success");
  await clock.advance(1_000);
  assert.equal(manager.results.liveness("a2"), "failure");
});

test("a probe that cannot be executed is attempted three times in a row, then logged, without a result", async () => {
  const { clock, manager, runs, counted, reported, failNext } = probing([aContainer({ name: "a", livenessProbe: check() })]);
  failNext(2);
  await clock.advance(100);
  assert.deepEqual([runs.length, counted, reported], [3, ["liveness a successful"], []]);
  failNext(3);
  await clock.advance(1_000);
  assert.deepEqual([runs.length, counted.slice(1)], [6, []]);
  assert.deepEqual(reported, ["a Unhealthy: Liveness probe errored: cannot be executed"]);
  assert.equal(manager.results.liveness("a"), "success", "it is not taken for a failure");
});

test("probes report the current pod, and a new container starts with new counts", async () => {
  const containers = [aContainer({ name: "a", livenessProbe: check({ failureThreshold: 3 }) })];
  const made = probing(containers);
  made.exitCodes["a"] = 1;
  made.exitCodes["a2"] = 1;
  await made.clock.advance(100);
  await made.clock.advance(1_000); // two failures of three
  made.manager.add({ ...made.pod, metadata: { ...made.pod.metadata, resourceVersion: "8" } });
  made.status.containerStatuses = [made.running("a", "a2")];
  await made.clock.advance(1_000);
  await made.clock.advance(1_000);
  assert.deepEqual([made.runs, made.manager.results.liveness("a2")], [["a", "a", "a2", "a2"], "success"]);
  assert.deepEqual(made.versions, [undefined, undefined, "8", "8"]);
  await made.clock.advance(1_000);
  assert.equal(made.manager.results.liveness("a2"), "failure");
});

test("each probe of each container reports the pod as it is now", async () => {
  const made = probing(["a", "b"].map((name) => aContainer({ name, livenessProbe: check(), readinessProbe: check() })));
  await made.clock.advance(100);
  made.manager.add({ ...made.pod, metadata: { ...made.pod.metadata, resourceVersion: "8" } });
  await made.clock.advance(1_000);
  assert.deepEqual(made.versions, [...Array(4).fill(undefined), ...Array(4).fill("8")]);
});

test("after a restart of the agent first probes of running containers are spread over their period; new containers are probed at once", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const runs: string[] = [];
  runtime.execSync = async (id) => {
    runs.push(id);
    return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: 0 };
  };
  const status = (name: string, startedAt: number) => ({
    name,
    containerID: `containerd://${name}`,
    started: true,
    state: { running: { startedAt: formatTime(startedAt) } },
  });
  const portions = [0.25, 0.75];
  const manager = new ProbeManager({
    runtime,
    clock,
    log: discardLogger,
    event: () => {},
    statusOf: () =>
      ({
        phase: "Running",
        containerStatuses: [status("new", clock.now()), status("a", clock.now() - 60_000), status("b", clock.now() - 60_000)],
      }) as PodStatus,
    onChange: () => {},
    grpcEnabled: false,
    random: () => portions.shift() ?? 0,
  });
  const spec = check({ periodSeconds: 100 });
  manager.add(aNodePod({ containers: ["a", "b", "new"].map((name) => aContainer({ name, livenessProbe: spec })) }));
  const after = async (ms: number): Promise<string[]> => {
    await clock.advance(ms);
    await settle();
    return runs;
  };
  assert.deepEqual(await after(20_000), ["new"]);
  assert.deepEqual(await after(10_000), ["new", "a"]);
  assert.deepEqual(await after(50_000), ["new", "a", "b"]);
});

test("a probe without fields has the API's defaults: period 10 s, timeout 1 s, three failures, one success", async () => {
  const exec = { command: ["check"] };
  const containers = [aContainer({ name: "a", livenessProbe: { exec } }), aContainer({ name: "b", readinessProbe: { exec } })];
  const { clock, manager, runs, timeouts, exitCodes } = probing(containers);
  exitCodes["a"] = 1;
  await clock.advance(100);
  assert.deepEqual([runs.toSorted(), timeouts, manager.results.readiness("b")], [["a", "b"], [1, 1], "success"]);
  await clock.advance(9_999);
  assert.equal(runs.length, 2);
  await clock.advance(1);
  assert.deepEqual([runs.length, manager.results.liveness("a")], [4, "success"]);
  await clock.advance(10_000);
  assert.equal(manager.results.liveness("a"), "failure");
});

test("a probe that cannot be executed does not change the failure count", async () => {
  const { clock, manager, exitCodes, failNext } = probing([
    aContainer({ name: "a", livenessProbe: check({ failureThreshold: 2 }) }),
  ]);
  exitCodes["a"] = 1;
  await clock.advance(100);
  failNext(3);
  await clock.advance(1_000);
  assert.equal(manager.results.liveness("a"), "success");
  await clock.advance(1_000);
  assert.equal(manager.results.liveness("a"), "failure");
});

test("a container in back-off is probed after its restart, also when the pod's restartPolicy is Never", async () => {
  const { clock, status, running, runs } = probing([aContainer({ name: "a", readinessProbe: check() })], {
    restartPolicy: "Never",
  });
  status.containerStatuses = [{ name: "a", containerID: "containerd://a", state: { waiting: {} } }];
  await clock.advance(2_000);
  assert.equal(runs.length, 0);
  status.containerStatuses = [running("a")];
  await clock.advance(1_000);
  assert.equal(runs.length, 1);
});

test("probes resume after a pod's status could not be read", async () => {
  const { clock, status, runs } = probing([aContainer({ name: "a", readinessProbe: check() })]);
  const { containerStatuses } = status;
  status.containerStatuses = {} as never;
  await clock.advance(2_000);
  assert.equal(runs.length, 0);
  status.containerStatuses = containerStatuses;
  await clock.advance(1_000);
  assert.equal(runs.length, 1);
});

test("a probe is sent to the host that it names; a redirect to another host is a warning, and the container is ready", async (t) => {
  const server = createServer((_req, res) => res.writeHead(302, { location: "http://elsewhere.invalid/" }).end("gone"));
  const at = { host: "127.0.0.1", port: await listening(t, server) };
  const { clock, manager, status, reported, counted } = probing([
    aContainer({ name: "a", readinessProbe: { httpGet: { ...at, path: "/" }, timeoutSeconds: 60 } }),
    aContainer({ name: "b", readinessProbe: { tcpSocket: at, timeoutSeconds: 60 } }),
    aContainer({ name: "c", readinessProbe: { grpc: at } }),
  ]);
  status.podIP = "127.0.0.2";
  await clock.advance(100);
  await waitFor(() => counted.length === 2 && reported.length === 2, { what: "the probes" });
  await settle();
  assert.deepEqual(
    ["a", "b", "c"].map((name) => manager.results.readiness(name)),
    ["success", "success", "failure"],
  );
  assert.deepEqual(reported.toSorted(), [
    "a ProbeWarning: Readiness probe warning: Probe terminated redirects, Response body: gone",
    "c Unhealthy: Readiness probe errored: missing probe handler for web:c",
  ]);
});

test("with its gate, a gRPC probe asks the pod's address for the service that it names", async (t) => {
  const asked: string[] = [];
  const { port } = await startGrpcServer(t, (stream, _, request) => {
    asked.push(request.toString("latin1"));
    answer(stream, Buffer.from([8, 1]));
  });
  const probe = (service?: string) => ({ readinessProbe: { grpc: { port, ...(service && { service }) }, timeoutSeconds: 60 } });
  const containers = [aContainer({ name: "a", ...probe("db") }), aContainer({ name: "b", ...probe() })];
  const { clock, manager, status, counted, reported } = probing(containers, {}, true);
  status.podIP = "127.0.0.1";
  await clock.advance(100);
  await waitFor(() => counted.length === 2, { what: "the probes" });
  await settle();
  assert.deepEqual(
    ["a", "b"].map((name) => manager.results.readiness(name)),
    ["success", "success"],
  );
  assert.deepEqual(
    [asked.toSorted(), counted.toSorted(), reported],
    [["", "\n\x02db"], ["readiness a successful", "readiness b successful"], []],
  );
});
