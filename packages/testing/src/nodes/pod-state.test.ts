import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { afterEnd, backOffMs, type PodState, statusOf } from "./pod-state.ts";

test("a container is restarted after 10 s, then after twice as long each time, up to five minutes", () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 50].map(backOffMs), [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
});

for (const [policy, exitCode, want] of [
  ["Always", 0, "backing-off"],
  ["Always", 1, "backing-off"],
  ["OnFailure", 0, "ended"],
  ["OnFailure", 1, "backing-off"],
  ["Never", 0, "ended"],
  ["Never", 1, "ended"],
] as const) {
  test(`with restartPolicy ${policy} a pod whose containers exit with ${exitCode} is ${want}`, () =>
    assert.equal(afterEnd(policy, exitCode), want));
}

const second = (at: number): string => new Date(at * 1_000).toISOString().replace(".000Z", "Z");
const pod = (more: { spec?: object; status?: object } = {}): Pod =>
  ({
    metadata: { name: "p", uid: "u" },
    spec: {
      containers: [
        { name: "a", image: "nginx" },
        { name: "b", image: "redis" },
      ],
      ...more.spec,
    },
    status: more.status,
  }) as unknown as Pod;
const state = (more: Partial<PodState>): PodState => ({
  ...{ phase: "ready", podIP: "10.0.0.1", restarts: 0, startedMs: 5_000, waits: undefined, last: undefined, isOverdue: false },
  ...more,
});
const status = (of: Pod, more: Partial<PodState>) => statusOf(of, state(more), "192.0.2.1", 60_000);
const last = { exitCode: 3, reason: undefined, startedMs: 10_000, endedMs: 20_000 };
const terminated = (exitCode: number, reason: string, restarts = 0) => ({
  terminated: { exitCode, reason, startedAt: second(10), finishedAt: second(20), containerID: `fake://u/a/${restarts}` },
});

for (const { name, more, phase, ready, containersReady = ready, reason, container } of [
  {
    name: "that starts",
    more: { phase: "starting" },
    ...{ phase: "Pending", ready: "False", reason: "ContainersNotReady" },
    container: {
      ready: false,
      started: false,
      restartCount: 0,
      state: { waiting: { reason: "ContainerCreating" } },
      lastState: {},
    },
  },
  {
    name: "whose image cannot be had",
    more: { phase: "waiting", waits: { reason: "ImagePullBackOff", message: "no" } },
    ...{ phase: "Pending", ready: "False", reason: "ContainersNotReady" },
    container: { ready: false, state: { waiting: { reason: "ImagePullBackOff", message: "no" } } },
  },
  {
    name: "that runs",
    more: { phase: "running" },
    ...{ phase: "Running", ready: "False", reason: "ContainersNotReady" },
    container: { ready: false, started: true, state: { running: { startedAt: second(5) } } },
  },
  {
    name: "that is ready",
    more: { phase: "ready" },
    ...{ phase: "Running", ready: "True", reason: undefined },
    container: { ready: true, started: true, image: "nginx", imageID: "nginx", containerID: "fake://u/a/0" },
  },
  {
    name: "in a crash loop",
    more: { phase: "backing-off", restarts: 2, last, waits: { reason: "CrashLoopBackOff", message: "" } },
    ...{ phase: "Running", ready: "False", reason: "ContainersNotReady" },
    container: {
      ...{ ready: false, started: false, restartCount: 2, state: { waiting: { reason: "CrashLoopBackOff", message: "" } } },
      lastState: terminated(3, "Error", 2),
    },
  },
  {
    name: "that was restarted",
    more: { phase: "ready", restarts: 1, last },
    ...{ phase: "Running", ready: "True", reason: undefined },
    container: {
      ready: true,
      restartCount: 1,
      state: { running: { startedAt: second(5) } },
      lastState: terminated(3, "Error", 1),
    },
  },
  {
    name: "that is complete",
    more: { phase: "ended", last: { ...last, exitCode: 0 } },
    ...{ phase: "Succeeded", ready: "False", reason: "PodCompleted" },
    container: { ready: false, started: false, state: terminated(0, "Completed"), lastState: {} },
  },
  {
    name: "that has failed, for a reason of its own",
    more: { phase: "ended", last: { ...last, reason: "OOMKilled" } },
    ...{ phase: "Failed", ready: "False", reason: "PodCompleted" },
    container: { ready: false, state: terminated(3, "OOMKilled"), lastState: {} },
  },
] as {
  name: string;
  more: Partial<PodState>;
  phase: string;
  ready: string;
  containersReady?: string;
  reason?: string;
  container: object;
}[]) {
  test(`the status of a pod ${name}`, () => {
    const made = status(pod(), more);
    assert.equal(made.phase, phase);
    assert.deepEqual(
      made.conditions?.map((one) => [one.type, one.status, one.reason]),
      [
        ["Initialized", "True", undefined],
        ["Ready", ready, reason],
        ["ContainersReady", containersReady, reason],
      ],
    );
    assert.partialDeepStrictEqual(made.containerStatuses?.[0], container);
    assert.deepEqual(
      made.containerStatuses?.map((one) => one.name),
      ["a", "b"],
    );
    assert.deepEqual([made.hostIP, made.podIP, made.podIPs], ["192.0.2.1", "10.0.0.1", [{ ip: "10.0.0.1" }]]);
    assert.equal(made.reason, undefined);
  });
}

test("a pod that has run for too long has failed, whatever its containers' exit code", () => {
  const made = status(pod(), { phase: "ended", isOverdue: true, last: { ...last, exitCode: 0 } });
  assert.deepEqual(
    [made.phase, made.reason, made.message],
    ["Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"],
  );
});

test("a pod is ready when all of its readiness gates are True, its containers are without them", () => {
  const spec = { readinessGates: [{ conditionType: "x" }, { conditionType: "y" }] };
  const gates = (...values: string[]) => values.map((value, i) => ({ type: "xy"[i], status: value }));
  const conditions = (...values: string[]) =>
    status(pod({ spec, status: { conditions: gates(...values) } }), {}).conditions?.map((one) => [
      one.status,
      one.reason,
      one.message,
    ]);
  const waits = ["False", "ReadinessGatesNotReady", "the status of a readiness gate is not True"];
  const good = ["True", undefined, undefined];
  assert.deepEqual(conditions("True"), [good, waits, good]);
  assert.deepEqual(conditions("True", "False"), [good, waits, good]);
  assert.deepEqual(conditions("True", "True"), [good, good, good]);
});

test("a condition keeps the time since which it has its value, and a pod that when it was started", () => {
  const before = {
    startTime: second(1),
    conditions: [
      { type: "Initialized", status: "True", lastTransitionTime: second(2) },
      { type: "Ready", status: "False", lastTransitionTime: second(3) },
    ],
  };
  const made = status(pod({ status: before }), {});
  assert.equal(made.startTime, second(1));
  assert.deepEqual(
    made.conditions?.map(({ lastTransitionTime }) => lastTransitionTime),
    [second(2), second(60), second(60)],
  );
  assert.equal(status(pod(), {}).startTime, second(60));
  assert.equal(status(pod(), { phase: "running" }).conditions?.[1]?.message, "containers with unready status: [a b]");
});

test("init containers are complete", () => {
  const { initContainerStatuses } = status(pod({ spec: { initContainers: [{ name: "i", image: "busybox" }] } }), {});
  hasFields(initContainerStatuses, [
    { name: "i", image: "busybox", ready: true, restartCount: 0, state: { terminated: { exitCode: 0, reason: "Completed" } } },
  ]);
  assert.equal(status(pod(), {}).initContainerStatuses, undefined);
});
