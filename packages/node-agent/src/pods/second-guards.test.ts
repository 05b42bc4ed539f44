import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { newBackoff } from "../pod/backoff.ts";
import {
  configHashAnnotation,
  configMirrorAnnotation,
  configSourceAnnotation,
  isCriticalPod,
  isNodeCriticalPod,
  isStaticPod,
  type NodePod,
  usedVolumes,
} from "../pod/pod.ts";
import { newMirrorPods } from "../status/mirror-pods.ts";
import { aContainer, aContainerRecord, aNodePod, aPodRecord, aPodWithVolumes } from "../testing/builders.ts";
import { ClaimError, VolumeError, VolumeWaits } from "../volumes/volume.ts";
import { admitPod, forbiddenSysctl, misplaced, shortages, underPressure } from "./admission-checks.ts";
import { newCrashLoops } from "./crash-loops.ts";
import { newEndPod } from "./end-pod.ts";
import { newMissingVolumes } from "./missing-volumes.ts";
import { newPreempt, podsToPreempt } from "./preempt.ts";

const named = (name: string, spec: Partial<NodePod["spec"]> = {}): NodePod => aNodePod(spec, { name, uid: name });

test("a forgotten back-off restarts, and each key has its own", () => {
  const backoff = newBackoff({ initialMs: 1_000, maxMs: 300_000, clock: newFakeClock() });
  for (const key of ["a", "a", "a", "b"]) backoff.next(key);
  assert.deepEqual([backoff.current("a"), backoff.current("b")], [4_000, 1_000]);
  backoff.forget("a");
  assert.deepEqual([backoff.isWaiting("a"), backoff.current("a"), backoff.isWaiting("b")], [false, 0, true]);
  backoff.next("a");
  assert.equal(backoff.current("a"), 1_000);
});

test("collect removes expired back-offs: one of maximum length is kept for twice that time", async () => {
  const clock = newFakeClock();
  const backoff = newBackoff({ initialMs: 1_000, maxMs: 3_000, clock });
  for (let i = 0; i < 3; i++) backoff.next("a");
  await clock.advance(6_000);
  backoff.collect();
  assert.equal(backoff.current("a"), 3_000);
  backoff.next("a");
  assert.equal(backoff.current("a"), 3_000, "and it continues where it was");
  await clock.advance(6_001);
  backoff.collect();
  assert.equal(backoff.current("a"), 0);
});

test("containers of one pod, of pods of one name, and of changed specifications have separate back-offs", () => {
  const clock = newFakeClock();
  const loops = newCrashLoops({ clock, event: () => undefined });
  const check = (pod: NodePod, container: ReturnType<typeof aContainer>) =>
    loops.check(
      pod,
      aPodRecord([aContainerRecord({ name: container.name, state: "exited", finishedAt: clock.now() })]),
      container,
      "regular",
    );
  check(aNodePod(), aContainer());
  assert.throws(() => check(aNodePod(), aContainer()), { reason: "CrashLoopBackOff" });
  check(aNodePod(), aContainer({ name: "second" }));
  check(aNodePod({}, { uid: "uid-2" }), aContainer());
  check(aNodePod(), aContainer({ image: "registry.test/busybox:2" }));
});

test("back-off counts from the end of a container's newest instance, and a container that never ran has none", async () => {
  const clock = newFakeClock();
  const loops = newCrashLoops({ clock, event: () => undefined });
  const exited = (finishedAt: number) => aContainerRecord({ state: "exited", finishedAt });
  const check = (...lives: ReturnType<typeof exited>[]) => loops.check(aNodePod(), aPodRecord(lives), aContainer(), "regular");
  const first = clock.now();
  check(exited(first));
  await clock.advance(9_999);
  assert.throws(() => check(exited(first)), { message: "back-off 10s restarting failed container=main pod=web_default(uid-1)" });
  await clock.advance(1);
  const second = clock.now();
  assert.throws(() => check(exited(second), exited(first)), { reason: "CrashLoopBackOff" });
  check();
  check(exited(first));
});

test("a container has no back-off from another exited container of its pod", () => {
  const clock = newFakeClock();
  const loops = newCrashLoops({ clock, event: () => undefined });
  const other = aContainerRecord({ name: "other", state: "exited", finishedAt: clock.now() });
  const main = aContainerRecord({ state: "exited", finishedAt: clock.now() - 10_000 });
  for (const _ of [1, 2]) loops.check(aNodePod(), aPodRecord([other, main]), aContainer(), "regular");
});

test("a wall clock that is set back neither shortens nor lengthens a container's back-off", async () => {
  const clock = newFakeClock();
  for (const setBackMs of [60_000, 3_600_000]) {
    const loops = newCrashLoops({ clock, event: () => undefined });
    const record = aPodRecord([aContainerRecord({ state: "exited", finishedAt: clock.now() })]);
    const check = (): void => loops.check(aNodePod(), record, aContainer(), "regular");
    check();
    clock.setOn(-setBackMs);
    await clock.advance(9_999);
    assert.throws(check, { reason: "CrashLoopBackOff" }, `set back by ${setBackMs} ms`);
    await clock.advance(1);
    check();
  }
});

test("waiting for a pod that ends in time leaves no timer, and the pod gets one event", async () => {
  const clock = newFakeClock();
  const reported: string[] = [];
  const calls: unknown[] = [];
  const endPod = newEndPod({
    workers: { evict: async (...args) => void calls.push(args) },
    notify: { pod: (_, __, ___, reason) => void reported.push(reason) },
    clock,
  });
  const verdict = { reason: "Evicted", message: "no memory" };
  await endPod(aNodePod(), verdict, 7);
  assert.deepEqual([clock.waiting, reported, calls], [0, ["Evicted"], [["uid-1", verdict, 7]]]);
});

const cpu = (requested: number) => [{ resource: "cpu", requested, used: 1000, capacity: 1000 }];
const asking = (name: string, amount: string, priority?: number): NodePod =>
  named(name, {
    containers: [aContainer({ resources: { requests: { cpu: amount } } })],
    ...(priority !== undefined && { priority }),
  });
const critical = asking("critical", "1", 2_000_000_000);

test("a pod that cannot be ended does not prevent preempting others, and is not counted", async () => {
  const tried: string[] = [];
  const counted: string[] = [];
  const preempt = newPreempt({
    endPod: async ({ metadata }) => {
      tried.push(metadata.name);
      if (metadata.name === "a") throw new Error("timeout waiting to kill pod");
    },
    onPreempted: (resource) => void counted.push(resource),
    log: discardLogger,
  });
  assert.equal(await preempt(critical, [asking("a", "100m"), asking("b", "100m")], cpu(200)), undefined);
  assert.deepEqual([tried.toSorted(), counted], [["a", "b"], ["cpu"]]);
});

test("preemption counts free capacity first, and never takes a pod of equal priority", () => {
  const some = [{ resource: "cpu", requested: 500, used: 700, capacity: 1000 }];
  assert.deepEqual(
    podsToPreempt(critical, [asking("a", "200m"), asking("b", "300m")], some).map(({ metadata }) => metadata.name),
    ["a"],
  );
  assert.throws(() => podsToPreempt(asking("p", "1", 10), [asking("same", "1", 10)], cpu(100)), /no set of running pods found/);
  assert.equal(podsToPreempt(asking("p", "1", 11), [asking("less", "1", 10)], cpu(100)).length, 1);
});

test("each insufficient resource is reported, one that just fits is not", () => {
  const requests = { cpu: "1", memory: "1Gi" };
  const wants = (more: Record<string, string> = {}) =>
    aNodePod({ containers: [aContainer({ resources: { requests: { ...requests, ...more } } })] });
  const node = { name: "n1", metadata: {}, spec: {} };
  const allocatable = { cpu: "2", memory: "2Gi", pods: "2", "example.com/gpu": "1" };
  assert.deepEqual(shortages({ pod: wants(), others: [wants()], node, allocatable }), []);
  const short = shortages({
    pod: wants({ memory: "1025Mi", "example.com/gpu": "1" }),
    others: [wants({ "example.com/gpu": "1" })],
    node,
    allocatable,
  });
  assert.deepEqual(
    short.map(({ resource, capacity }) => [resource, capacity]),
    [
      ["memory", 2 * 1024 ** 3],
      ["example.com/gpu", 1],
    ],
  );
  assert.equal(admitPod({ pod: wants(), others: [wants(), wants()], node, allocatable })?.reason, "OutOfpods");
});

test("host ports of every container and pod conflict; those of another protocol do not", () => {
  const port = (hostPort: number, protocol?: string) =>
    aContainer({ name: `c${hostPort}`, ports: [{ containerPort: 80, hostPort, ...(protocol !== undefined && { protocol }) }] });
  const node = { name: "n1", metadata: {}, spec: {} };
  const others = [named("a", { containers: [port(1), port(2)] }), named("b", { containers: [port(3), port(4)] })];
  const judge = (container: ReturnType<typeof port>) =>
    misplaced({ pod: aNodePod({ containers: [port(9), container] }), others, node, allocatable: {} })?.reason;
  assert.deepEqual(
    [judge(port(2)), judge(port(4)), judge(port(4, "UDP")), judge(port(5))],
    ["NodePorts", "NodePorts", undefined, undefined],
  );
});

test("every sysctl is checked, also one written with slashes", () => {
  const setting = (...names: string[]) =>
    aNodePod({ hostIPC: true, securityContext: { sysctls: names.map((name) => ({ name, value: "1" })) } });
  assert.match(
    forbiddenSysctl(setting("net.ipv4.tcp_syncookies", "kernel.panic"), [])?.message ?? "",
    /"kernel\.panic" not allowlisted/,
  );
  assert.match(forbiddenSysctl(setting("kernel/panic"), [])?.message ?? "", /"kernel\/panic" not allowlisted/);
  for (const name of ["kernel.shmmax", "kernel.msgmax", "kernel.sem", "fs.mqueue.msg_max"]) {
    assert.match(forbiddenSysctl(setting(name), ["kernel.*", "fs.*"])?.message ?? "", /not allowed with host ipc enabled/, name);
  }
  assert.equal(forbiddenSysctl(setting("kernel.panic"), ["kernel.*"]), undefined);
});

test("a node with memory and PID pressure rejects a Burstable pod that memory pressure alone would admit", () => {
  const burstable = aNodePod({ containers: [aContainer({ resources: { requests: { memory: "1Mi" } } })] });
  const message = "The node had condition: [MemoryPressure PIDPressure]. ";
  assert.deepEqual(underPressure(burstable, { memory: true, disk: false, pid: true }), { reason: "Evicted", message });
  assert.equal(underPressure(burstable, { memory: false, disk: false, pid: false }), undefined);
  const toleratesOther = aNodePod({ tolerations: [{ key: "node.kubernetes.io/disk-pressure", operator: "Exists" }] });
  assert.equal(underPressure(toleratesOther, { memory: true, disk: false, pid: false })?.reason, "Evicted");
});

test("static pods, mirror pods and pods of system priority are critical", () => {
  const annotated = (annotations: Record<string, string>) => aNodePod({}, { annotations });
  const fromFile = annotated({ [configSourceAnnotation]: "file" });
  const mirror = annotated({ [configSourceAnnotation]: "file", [configMirrorAnnotation]: "x" });
  const fromApi = annotated({ [configSourceAnnotation]: "api" });
  assert.deepEqual([fromFile, mirror, fromApi].map(isStaticPod), [true, false, false]);
  assert.deepEqual([fromFile, mirror, fromApi].map(isCriticalPod), [true, true, false]);
  assert.deepEqual(
    [1_999_999_999, 2_000_000_000].map((priority) => isCriticalPod(aNodePod({ priority }))),
    [false, true],
  );
  const ofClass = (priorityClassName: string, priority: number) => aNodePod({ priorityClassName, priority });
  assert.deepEqual(
    [ofClass("system-node-critical", 2_000_001_000), ofClass("system-node-critical", 0), ofClass("other", 2_000_001_000)].map(
      isNodeCriticalPod,
    ),
    [true, false, false],
    "by the class, not by the priority alone",
  );
});

test("volumes are used by any container, as files or as devices", () => {
  const volumes = ["init", "second", "disk", "debug", "none"].map((name) => ({ name, emptyDir: {} }));
  const mounting = (name: string) => aContainer({ name, volumeMounts: [{ name, mountPath: "/v" }] });
  const pod = aNodePod({
    volumes,
    initContainers: [mounting("init")],
    containers: [
      aContainer(),
      mounting("second"),
      aContainer({ name: "d", volumeDevices: [{ name: "disk", devicePath: "/d" }] }),
    ],
    ephemeralContainers: [mounting("debug")],
  });
  assert.deepEqual(
    usedVolumes(pod).map(({ name }) => name),
    ["init", "second", "disk", "debug"],
  );
});

function missing() {
  const clock = newFakeClock();
  const reported: string[] = [];
  const volumes = newMissingVolumes({
    clock,
    event: (_, __, type, reason, message) => void reported.push(`${type} ${reason} ${message}`),
  });
  const pod = aPodWithVolumes([
    { name: "a", emptyDir: {} },
    { name: "b", emptyDir: {} },
  ]);
  const failed = (...causes: [string, Error][]) =>
    volumes.failed(
      pod,
      causes.map(([volume, cause]) => ({ volume, message: cause.message, cause })),
    );
  return { clock, reported, volumes, failed };
}

test("a pod waiting for an attachment is retried every second; with a failed volume it backs off", () => {
  const { failed, reported } = missing();
  const waits = new VolumeWaits("not attached");
  for (let i = 0; i < 3; i++) assert.equal(failed(["a", waits]).retryMs, 1_000);
  assert.deepEqual(reported, []);
  assert.deepEqual(
    [1, 2].map(() => failed(["a", waits], ["b", new Error("broken")]).retryMs),
    [500, 1_000],
  );
  assert.equal(reported[0], 'Warning FailedMount MountVolume.SetUp failed for volume "b" : broken');
});

test("a pod whose volume cannot be mounted is retried after twice as long each time, up to 122 s, and anew once it was mounted", () => {
  const { failed, volumes } = missing();
  const retry = () => failed(["a", new Error("broken")]).retryMs;
  const doubled = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];
  assert.deepEqual(Array.from({ length: 10 }, retry), [...doubled, 122_000, 122_000]);
  volumes.forget("uid-1");
  assert.equal(retry(), 500);
});

test("a pod gets an event with all missing volumes every two minutes, but not after they were mounted", async () => {
  const { failed, reported, clock, volumes } = missing();
  const waits = (): unknown => failed(["a", new VolumeWaits("no")], ["b", new VolumeWaits("no")]);
  const summary =
    "Warning FailedMount Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[a b]: timed out waiting for the condition";
  waits();
  await clock.advance(123_000);
  waits();
  assert.deepEqual(reported, []);
  await clock.advance(1);
  waits();
  assert.deepEqual(reported, [summary]);
  await clock.advance(123_000);
  waits();
  assert.equal(reported.length, 1, "its time begins anew");
  await clock.advance(1);
  waits();
  assert.equal(reported.length, 2);
  volumes.forget("uid-1");
  await clock.advance(123_001);
  waits();
  assert.equal(reported.length, 2);
});

test("problems of two claims are reported in one event, and each failed step has its own event reason", () => {
  const { failed, reported } = missing();
  const { error } = failed(["a", new ClaimError("PVC is not bound")], ["b", new ClaimError("PVC is being deleted")]);
  assert.match(error.message, /unmounted volumes=\[a b\].*: PVC is not bound; PVC is being deleted$/);
  assert.deepEqual(reported.splice(0), [`Warning FailedMount ${error.message}`]);
  failed(
    ["a", new VolumeError("MapVolume.SetUpDevice failed", "pv-1", new Error("x"))],
    ["b", new VolumeError("AttachVolume.Attach failed", "pv-2", new Error("y"))],
  );
  assert.deepEqual(reported, [
    'Warning FailedMapVolume MapVolume.SetUpDevice failed for volume "pv-1" : x',
    'Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv-2" : y',
  ]);
});

const fromFile = (hash: string, name = "web"): NodePod =>
  aNodePod({}, { name, uid: hash, annotations: { [configHashAnnotation]: hash, [configSourceAnnotation]: "file" } });

function mirroring() {
  const client = newFakeClient({ clock: newFakeClock() });
  let heard: NodePod[] = [];
  const mirrors = newMirrorPods({
    client,
    log: discardLogger,
    apiPods: () => heard,
    node: async () => ({ metadata: { name: "n1", uid: "node-uid" }, spec: {} }),
  });
  const hear = async (change: (pod: NodePod) => NodePod = (pod) => pod): Promise<string[]> => {
    heard = ((await client.list<Pod>(pods, { namespace: "default" })).items as NodePod[]).map(change);
    return heard.map(({ metadata }) => metadata.name);
  };
  return { client, mirrors, hear };
}

test("a mirror pod with a deletionTimestamp is removed though it is current, and one recreated meanwhile is kept", async () => {
  const { client, mirrors, hear } = mirroring();
  await mirrors.ensure(fromFile("one"));
  await hear((pod) => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }));
  await mirrors.ensure(fromFile("one"));
  assert.deepEqual(await hear(), []);
  await mirrors.ensure(fromFile("one"));
  await hear((pod) => ({ ...pod, metadata: { ...pod.metadata, uid: "another" } }));
  await mirrors.ensure(fromFile("two"));
  assert.deepEqual(await hear(), ["web"], "only the one that was seen may go");
  assert.deepEqual(
    client.writes.map(({ verb }) => verb),
    ["create", "delete", "create", "delete"],
  );
});

test("a mirror pod that cannot be deleted does not prevent the deletion of others", async () => {
  const { client, mirrors, hear } = mirroring();
  for (const name of ["a", "b"]) await mirrors.ensure(fromFile(name, name));
  await hear();
  client.react("delete", "pods", ({ name }) => {
    if (name === "a") throw new Error("connect ECONNREFUSED");
    return undefined;
  });
  await mirrors.removeOrphans([]);
  assert.deepEqual(await hear(), ["a"]);
});

test("a static pod runs without a mirror while the node is not registered, or the server cannot be reached", async () => {
  const away = newMirrorPods({
    client: newFakeClient({ clock: newFakeClock() }),
    log: discardLogger,
    apiPods: () => [],
    node: async () => undefined,
  });
  await away.ensure(fromFile("one"));
  const leaving = newFakeClient({ clock: newFakeClock() });
  await newMirrorPods({
    client: leaving,
    log: discardLogger,
    apiPods: () => [],
    node: async () => ({ metadata: { name: "n1", uid: "u", deletionTimestamp: "2026-01-01T00:00:00Z" }, spec: {} }),
  }).ensure(fromFile("one"));
  assert.deepEqual(leaving.writes, [], "nor while the node is being deleted");
  const { client, mirrors, hear } = mirroring();
  client.react("create", "pods", () => {
    throw new Error("connect ECONNREFUSED");
  });
  await mirrors.ensure(fromFile("one"));
  assert.deepEqual(await hear(), []);
});
