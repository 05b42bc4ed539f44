import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Extender, Victims } from "./extenders/extender.ts";
import { newSchedulerMetrics } from "./metrics.ts";
import { startScheduler } from "./testing/running-scheduler.ts";
import { aTestPod } from "./testing/test-cluster.ts";

test("a pod gets a node, and an event says which", async (t) => {
  const { events, step, names } = await startScheduler(t);
  names.node("a");
  names.pod("web");
  await step();
  assert.equal(names.where("web"), "a");
  assert.deepEqual(events, ["web Normal Scheduled Binding: Successfully assigned default/web to a"]);
});

test("a pod that fits nowhere is marked by event and condition, and gets its node when there is one", async (t) => {
  const { events, step, names } = await startScheduler(t);
  names.node("small", { cpu: "1" });
  names.pod("web", { cpu: "2" });
  await step();
  const message = "0/1 nodes are available: 1 Insufficient cpu.";
  assert.deepEqual(events, [`web Warning FailedScheduling Scheduling: ${message}`]);
  const [condition] = names.status("web")?.conditions ?? [];
  assert.deepEqual(
    [condition?.type, condition?.status, condition?.reason, condition?.message],
    ["PodScheduled", "False", "Unschedulable", message],
  );
  names.node("large");
  await step(1_000);
  assert.equal(names.where("web"), "large");
});

test("without nodes a pod waits for the first one", async (t) => {
  const { events, step, names } = await startScheduler(t);
  names.pod("web");
  await step();
  assert.deepEqual(events, ["web Warning FailedScheduling Scheduling: no nodes available to schedule pods"]);
  names.node("a");
  await step(1_000);
  assert.equal(names.where("web"), "a");
});

test("each scheduler name has its profile; pods of other schedulers are left alone", async (t) => {
  const { events, step, names } = await startScheduler(t, { schedulerNames: ["default-scheduler", "second"] });
  names.node("a");
  names.pod("first", { spec: { schedulerName: "default-scheduler" } });
  names.pod("second", { spec: { schedulerName: "second" } });
  names.pod("foreign", { spec: { schedulerName: "somebody-else" } });
  await step();
  assert.deepEqual([names.where("first"), names.where("second"), names.where("foreign")], ["a", "a", undefined]);
  assert.ok(events.includes("second Normal Scheduled Binding: second: Successfully assigned default/second to a"));
});

test("a node that changes wakes no pod that it would not fit", async (t) => {
  const { events, step, names } = await startScheduler(t);
  names.node("a", { cpu: "1" });
  names.pod("web", { cpu: "2" });
  await step();
  names.node("b", { cpu: "1" });
  await step(1_000);
  names.node("b", { cpu: "1500m" });
  await step(1_000);
  assert.equal(events.length, 1);
  names.node("c", { cpu: "2" });
  await step(1_000);
  assert.equal(names.where("web"), "c");
});

test("a pod preempts one of lower priority, keeps its nomination while the victim terminates, and is then bound", async (t) => {
  const { client, events, step, names } = await startScheduler(t);
  names.node("a");
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  // Graceful deletion: the pod gets a deletionTimestamp and stays.
  client.react("delete", "pods", ({ name }) => {
    const pod = client.object<Pod>(pods, `default/${name}`);
    if (pod !== undefined) client.put(pods, { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2024-01-01T00:00:00Z" } });
    return {};
  });
  names.pod("urgent", { cpu: "3", priority: 10 });
  await step();
  assert.equal(names.status("urgent")?.nominatedNodeName, "a");
  assert.deepEqual(events, [
    "old Normal Preempted Preempting: Preempted by default/urgent on node a",
    "urgent Warning FailedScheduling Scheduling: 0/1 nodes are available: 1 Insufficient cpu.",
  ]);
  names.pod("lesser", { cpu: "3", priority: 5 });
  await step();
  client.remove(pods, "default/old");
  await step(1_000);
  await step(1_000);
  assert.equal(names.where("urgent"), "a");
  assert.equal(names.where("lesser"), undefined);
});

test("a terminating pod is not scheduled", async (t) => {
  const { events, step, names } = await startScheduler(t);
  names.node("a");
  names.pod("web", { metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } });
  await step();
  assert.equal(names.where("web"), undefined);
  assert.deepEqual(events, ["web Warning FailedScheduling Scheduling: skip schedule deleting pod: default/web"]);
});

test("a failed binding frees the node's resources and is retried", async (t) => {
  const { client, events, step, names } = await startScheduler(t);
  let failures = 1;
  client.react("create", "pods", ({ subresource }) => {
    if (subresource === "binding" && failures-- > 0) throw new Error("no luck");
    return undefined;
  });
  names.node("a");
  names.pod("web", { cpu: "4" });
  await step();
  assert.deepEqual(events, [
    'web Warning FailedScheduling Scheduling: binding rejected: running Bind plugin "DefaultBinder": no luck',
  ]);
  assert.equal(names.status("web")?.conditions?.[0]?.reason, "SchedulerError");
  // No plugin rejected the pod, so it is retried without a cluster event.
  await step(1_000);
  assert.equal(names.where("web"), "a");
});

test("a pod that changes during its preemption is scheduled in its new state", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a", { cpu: "4" });
  names.node("b", { spec: { taints: [{ key: "k", value: "v", effect: "NoSchedule" }] } });
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  let answer: () => void = () => {};
  const deleting = new Promise<void>((resolve) => {
    answer = resolve;
  });
  client.react("delete", "pods", async () => {
    await deleting;
    return {};
  });
  names.pod("urgent", { cpu: "3", priority: 10 });
  await step();
  names.pod("urgent", { cpu: "3", priority: 10, spec: { tolerations: [{ key: "k", operator: "Exists" }] } });
  await step();
  answer();
  await step(2_000);
  await step(2_000);
  assert.equal(names.where("urgent"), "b");
});

test("a bound pod wakes one that requires affinity to it", async (t) => {
  const { step, names } = await startScheduler(t);
  names.node("a");
  const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "db" } } };
  const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
  names.pod("web", { spec: { affinity } });
  await step();
  assert.equal(names.where("web"), undefined);
  names.pod("db", { on: "a", labels: { app: "db" } });
  await step(1_000);
  assert.equal(names.where("web"), "a");
});

test("pods that took fifteen attempts or more are counted together", async () => {
  const registry = newMetricsRegistry();
  const metrics = newSchedulerMetrics(registry, newFakeClock());
  const entry = { pod: aTestPod("web"), queuedAtMs: 0, firstQueuedAtMs: 0, unschedulablePlugins: new Set<string>() };
  for (const attempts of [14, 15, 99]) metrics.podScheduled({ ...entry, attempts }, 1_000);
  const text = await registry.render();
  for (const line of [
    'scheduler_pod_scheduling_duration_seconds_count{attempts="14"} 1',
    'scheduler_pod_scheduling_duration_seconds_count{attempts="15+"} 2',
  ])
    assert.ok(text.includes(line), `${line}\n${text}`);
});

test("counts attempts, queues, points and victims under upstream's names", async (t) => {
  const { registry, step, names } = await startScheduler(t);
  names.node("a");
  names.pod("web");
  await step();
  names.pod("huge", { cpu: "40" });
  await step(1_000);
  const text = await registry.render();
  for (const line of [
    'scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"} 1',
    'scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"} 1',
    'scheduler_queue_incoming_pods_total{queue="active",event="PodAdd"} 2',
    'scheduler_queue_incoming_pods_total{queue="unschedulable",event="ScheduleAttemptFailure"} 1',
    'scheduler_pending_pods{queue="unschedulable"} 1',
    'scheduler_scheduler_cache_size{type="nodes"} 1',
    "scheduler_preemption_attempts_total 1",
    "scheduler_scheduling_algorithm_duration_seconds_count 1",
    'scheduler_pod_scheduling_duration_seconds_count{attempts="1"} 1',
    'scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",status="Success",profile="default-scheduler"} 2',
    'scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",status="Success",profile="default-scheduler"} 1',
    'scheduler_framework_extension_point_duration_seconds_count{extension_point="PostFilter",status="Unschedulable",profile="default-scheduler"} 1',
    'scheduler_scheduler_goroutines{work="binding"} 0',
  ]) {
    assert.ok(text.includes(line), `${line}\n${text}`);
  }
  assert.match(
    text,
    /scheduler_plugin_execution_duration_seconds_count\{plugin="NodeResourcesFit",extension_point="Filter",status="Unschedulable"\} 1/,
  );
});

test("a malformed pod waits with back-off and gets an event; others are scheduled", async (t) => {
  const { client, events, registry, step, names } = await startScheduler(t);
  names.node("a");
  const broken = aTestPod("broken", { priority: 100 });
  client.put(pods, { ...broken, spec: { ...broken.spec, containers: undefined as never } });
  names.pod("web");
  await step();
  assert.equal(names.where("web"), "a");
  const attempts = () => events.filter((event) => event.startsWith("broken Warning FailedScheduling")).length;
  const atOnce = attempts();
  assert.ok(atOnce >= 1 && atOnce <= 2, events.join("\n"));
  names.node("b");
  names.pod("later");
  await step();
  assert.ok(names.where("later"));
  for (let seconds = 0; seconds < 60; seconds++) await step(1_000);
  assert.ok(attempts() - atOnce <= 10, `no hot loop: ${attempts()}`);
  assert.match(await registry.render(), /scheduler_schedule_attempts_total\{result="error",profile="default-scheduler"\} [1-9]/);
  client.put(pods, aTestPod("broken"));
  for (let seconds = 0; seconds < 15; seconds++) await step(1_000);
  assert.ok(names.where("broken"), "mended, it gets its node");
});

test("a malformed waiting pod does not prevent waking others", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("small", { cpu: "1" });
  const broken = aTestPod("broken", { priority: 100 });
  client.put(pods, { ...broken, spec: { ...broken.spec, containers: undefined as never } });
  names.pod("web", { cpu: "2" });
  await step();
  names.node("large");
  await step(1_000);
  assert.equal(names.where("web"), "large");
});

test("a pod deleted during its binding frees its resources at once", async (t) => {
  const { client, step, names } = await startScheduler(t);
  const { promise, reject } = Promise.withResolvers<never>();
  client.react("create", "pods", ({ subresource, name }) => (subresource === "binding" && name === "web" ? promise : undefined));
  names.node("a", { cpu: "4" });
  names.pod("web", { cpu: "4" });
  await step();
  names.pod("next", { cpu: "4" });
  await step();
  assert.equal(names.where("next"), undefined);
  client.remove(pods, "default/web");
  await step(1_000);
  assert.equal(names.where("next"), "a");
  reject(new Error("not found"));
  await step(1_000);
  assert.equal(names.where("next"), "a", "the late failure takes nothing from who came after");
});

test("a pod recreated during the binding of its predecessor is scheduled on its own", async (t) => {
  const { client, step, names } = await startScheduler(t);
  const { promise, resolve } = Promise.withResolvers<object>();
  let held = true;
  client.react("create", "pods", ({ subresource }) => {
    if (subresource !== "binding" || !held) return undefined;
    held = false;
    return promise;
  });
  names.node("a", { cpu: "4" });
  names.node("b", { cpu: "4" });
  names.pod("web", { cpu: "4" });
  await step();
  client.remove(pods, "default/web");
  client.put(pods, { ...aTestPod("web", { cpu: "4" }), metadata: { name: "web", namespace: "default", uid: "second" } });
  await step(1_000);
  assert.ok(names.where("web"));
  resolve({});
  await step(1_000);
  assert.ok(names.where("web"));
});

test("a second failure of the same pod waits twice as long, and a success elsewhere does not shorten it", async (t) => {
  const { client, clock, step, names } = await startScheduler(t);
  const at: number[] = [];
  client.react("create", "pods", ({ subresource, name }) => {
    if (subresource !== "binding" || name !== "web") return undefined;
    at.push(clock.monotonic());
    throw new Error("no luck");
  });
  names.node("a");
  names.pod("web");
  await step();
  names.pod("other");
  await step();
  assert.equal(names.where("other"), "a");
  for (let seconds = 0; seconds < 8; seconds++) await step(1_000);
  const waits = at.slice(1).map((ms, i) => ms - (at[i] as number));
  assert.deepEqual(waits.slice(0, 2), [1_000, 2_000]);
});

test("a pod that is deleted or bound by another scheduler leaves the queue", async (t) => {
  const { client, registry, step, names } = await startScheduler(t);
  names.node("small", { cpu: "1" });
  for (const name of ["gone", "taken", "stays"]) names.pod(name, { cpu: "2" });
  await step();
  const waiting = async () => /scheduler_pending_pods\{queue="unschedulable"\} (\d)/.exec(await registry.render())?.[1];
  await step(1_000);
  assert.equal(await waiting(), "3");
  client.remove(pods, "default/gone");
  names.pod("taken", { cpu: "2", on: "small" });
  await step(1_000);
  assert.equal(await waiting(), "1");
});

test("a deleted pod's nomination no longer reserves resources", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a", { cpu: "4" });
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  client.react("delete", "pods", () => ({}));
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  assert.equal(names.status("urgent")?.nominatedNodeName, "a");
  client.remove(pods, "default/urgent");
  client.remove(pods, "default/old");
  names.pod("lesser", { cpu: "4", priority: 0 });
  await step(1_000);
  await step(1_000);
  assert.equal(names.where("lesser"), "a");
});

test("a pod bound to another than its nominated node reserves nothing there during the binding", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a", { cpu: "4" });
  names.pod("old", { on: "a", cpu: "4", priority: 1 });
  await step();
  client.react("delete", "pods", () => ({}));
  client.react("create", "pods", ({ subresource, name }) =>
    subresource === "binding" && name === "urgent" ? new Promise(() => {}) : undefined,
  );
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  assert.equal(names.status("urgent")?.nominatedNodeName, "a");
  names.node("b", { cpu: "4" });
  await step(1_000);
  await step(1_000);
  client.remove(pods, "default/old");
  names.pod("lesser", { cpu: "4", priority: 0 });
  await step(1_000);
  await step(1_000);
  assert.equal(names.where("lesser"), "a");
});

for (const how of ["deleted", "deleted and made anew"]) {
  test(`a pod ${how} during an extender's preemption call preempts no pod and is not nominated`, async (t) => {
    const pending = Promise.withResolvers<ReadonlyMap<string, Victims>>();
    const answer = Promise.withResolvers<void>();
    const extender: Extender = {
      name: "http://extender",
      ignorable: false,
      binds: false,
      preempts: true,
      isInterested: ({ metadata }) => metadata.name === "urgent",
      filter: async (_, feasible) => ({ feasible, failed: new Map(), unresolvable: new Map() }),
      prioritize: async () => new Map(),
      async preempt(_, candidates) {
        pending.resolve(candidates);
        await answer.promise;
        return candidates;
      },
      bind: async () => {},
    };
    const { client, step, names } = await startScheduler(t, { extenders: [extender] });
    names.node("a", { cpu: "4" });
    names.pod("old", { on: "a", cpu: "2", priority: 1 });
    await step();
    names.pod("urgent", { cpu: "4", priority: 10 });
    await step();
    assert.deepEqual([...(await pending.promise).keys()], ["a"]);
    client.remove(pods, "default/urgent");
    await step();
    if (how !== "deleted") names.pod("urgent", { cpu: "4", priority: 0, metadata: { uid: "another" } });
    await step();
    answer.resolve();
    await step(1_000);
    assert.ok(names.where("old"), "its victim stays");
    names.pod("lesser", { cpu: "2", priority: 0 });
    await step(1_000);
    assert.equal(names.where("lesser"), "a");
  });
}

test("a pod whose binding was reverted by a restore of etcd is bound again, and its resources are free meanwhile", async (t) => {
  const { client, step, names } = await startScheduler(t);
  names.node("a", { cpu: "2" });
  names.pod("web", { cpu: "2", priority: 1 });
  await step();
  assert.equal(names.where("web"), "a");
  const bound = client.object<Pod>(pods, "default/web") as Pod;
  client.put(pods, { ...bound, spec: { ...bound.spec, nodeName: undefined } });
  await step(1_000);
  assert.equal(names.where("web"), "a");
});

test("a scheduler without a profile does not start", async (t) => {
  await assert.rejects(startScheduler(t, { schedulerNames: [] }), { message: "at least one profile is required" });
});
