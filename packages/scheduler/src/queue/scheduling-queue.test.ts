import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import type { QueuedPodView } from "../framework/extension-points.ts";
import { newPrioritySort } from "../plugins/priority-sort.ts";
import { SchedulingQueue } from "./scheduling-queue.ts";

const podNamed = (name: string, priority = 0) => {
  const pod = aPod({ name });
  return { ...pod, spec: { ...pod.spec, priority } };
};

function newQueue(): { queue: SchedulingQueue; clock: ReturnType<typeof newFakeClock> } {
  const clock = newFakeClock();
  const { compare } = newPrioritySort();
  const queue = new SchedulingQueue({
    clock,
    log: discardLogger,
    compare: (a, b) => compare?.(a, b) ?? 0,
    mayHelp: (plugin, event) => event.startsWith(plugin),
  });
  return { queue, clock };
}

const popName = async (queue: SchedulingQueue): Promise<string | undefined> => (await queue.pop())?.pod.metadata.name;

test("the pod of higher priority comes first, then the one that waited longer", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("first"));
  await clock.advance(1);
  queue.add(podNamed("second"));
  queue.add(podNamed("urgent", 10));
  assert.deepEqual([await popName(queue), await popName(queue), await popName(queue)], ["urgent", "first", "second"]);
});

test("an unschedulable pod waits for an event that may help, and for its back-off", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  entry.unschedulablePlugins = new Set(["Node"]);
  queue.addUnschedulable(entry, queue.cycle);
  queue.wakeUp("Pod/Delete");
  assert.deepEqual(queue.counts, { active: 0, backoff: 0, unschedulable: 1 });
  queue.wakeUp("Node/Add");
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 0 });
  assert.equal(queue.counts.backoff, 1, "its back-off of a second is not over");
  await clock.advance(1_000);
  assert.equal(await popName(queue), "web");
});

for (const { ms, active } of [
  { ms: 999, active: 0 },
  { ms: 1_000, active: 1 },
])
  test(`an event ${ms} ms after an attempt ${active === 1 ? "finds the back-off over" : "does not end the back-off"}`, async () => {
    const { queue, clock } = newQueue();
    queue.add(podNamed("web"));
    const entry = await queue.pop();
    assert.ok(entry);
    queue.addUnschedulable(entry, queue.cycle);
    await clock.advance(ms);
    queue.wakeUp("Node/Add");
    assert.deepEqual(queue.counts, { active, backoff: 1 - active, unschedulable: 0 });
  });

test("the next attempt of a waiting pod is after its back-off, or a minute after it became unschedulable", async () => {
  const { queue, clock } = newQueue();
  const pod = podNamed("web");
  queue.add(pod);
  assert.equal(queue.nextTryMs(pod), undefined);
  await clock.advance(500);
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  assert.equal(queue.nextTryMs(pod), entry.queuedAtMs + 60_000);
  queue.wakeUp("Node/Add");
  assert.equal(queue.nextTryMs(pod), entry.queuedAtMs + 1_000);
});

test("an event during a pod's scheduling cycle makes it active again", async () => {
  const { queue } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  const cycle = queue.cycle;
  queue.wakeUp("Node/Add");
  queue.addUnschedulable(entry, cycle);
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 0 });
});

test("back-off doubles up to ten seconds", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  for (const wantMs of [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
    const entry = await queue.pop();
    assert.ok(entry);
    const cycle = queue.cycle;
    queue.wakeUp("*/*");
    queue.addUnschedulable(entry, cycle);
    await clock.advance(wantMs - 1);
    assert.equal(queue.counts.active, 0);
    await clock.advance(1);
    assert.equal(queue.counts.active, 1, `after ${wantMs} ms`);
  }
});

test("a pod that no event wakes is tried again after a minute", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  await clock.advance(60_000);
  assert.equal(await popName(queue), "web");
});

test("a wall clock that is set back does not lengthen a back-off", async () => {
  const { queue, clock } = newQueue();
  for (const name of ["refused", "failed"]) queue.add(podNamed(name));
  for (const wakes of [false, true]) {
    const entry = await queue.pop();
    assert.ok(entry);
    const { cycle } = queue;
    if (wakes) queue.wakeUp("Pod/Delete", () => false);
    queue.addUnschedulable(entry, cycle);
  }
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 1 });
  clock.setOn(-3_600_000);
  await clock.advance(60_000);
  assert.equal(queue.counts.active, 2);
});

test("a pending pop gets the next pod, and undefined when the queue closes", async () => {
  const { queue } = newQueue();
  const waiting = popName(queue);
  queue.add(podNamed("web"));
  assert.equal(await waiting, "web");
  const last = queue.pop();
  queue.close();
  assert.equal(await last, undefined);
});

test("a pod deleted while it waits in any part of the queue is not handed out", async () => {
  const { queue, clock } = newQueue();
  for (const name of ["active", "backoff", "refused"]) queue.add(podNamed(name));
  const entries = [await queue.pop(), await queue.pop(), await queue.pop()];
  assert.ok(entries[1] && entries[2]);
  queue.addUnschedulable(entries[2], queue.cycle);
  const { cycle } = queue;
  queue.wakeUp("Pod/Add", () => false);
  queue.addUnschedulable(entries[1], cycle);
  queue.add(podNamed("active"));
  assert.deepEqual(queue.counts, { active: 1, backoff: 1, unschedulable: 1 });
  for (const name of ["active", "backoff", "refused"]) queue.delete(podNamed(name));
  assert.deepEqual(queue.counts, { active: 0, backoff: 0, unschedulable: 0 });
  await clock.advance(120_000);
  assert.equal(queue.counts.active, 0);
});

test("a recreated pod is in one part of the queue only, with no attempts", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  queue.add(podNamed("web"));
  assert.deepEqual(queue.counts, { active: 1, backoff: 0, unschedulable: 0 });
  assert.equal((await queue.pop())?.attempts, 1);
  await clock.advance(120_000);
  assert.equal(queue.counts.active, 0);
});

test("an event before the cycle began does not count as one during it", async () => {
  const { queue } = newQueue();
  queue.add(podNamed("first"));
  await queue.pop();
  queue.wakeUp("Node/Add");
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  assert.deepEqual(queue.counts, { active: 0, backoff: 0, unschedulable: 1 });
});

test("a changed spec makes a waiting pod active, a changed status does not, and its priority reorders it", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  await clock.advance(5_000);
  const old = podNamed("web");
  queue.update(old, { ...old, status: { phase: "Pending", nominatedNodeName: "a" } });
  assert.equal(queue.counts.unschedulable, 1);
  const written = { generation: 7, finalizers: ["a/b"], resourceVersion: "77", managedFields: [{ manager: "kube-scheduler" }] };
  queue.update(old, { ...old, metadata: { ...old.metadata, ...written } });
  assert.equal(queue.counts.unschedulable, 1, "neither do generation, finalizers and managed fields");
  const latest = { ...old, status: { nominatedNodeName: "b" } };
  queue.update(old, latest);
  assert.equal(entry.pod, latest, "what is tried again is the pod as it is then");
  queue.add(podNamed("other", 5));
  queue.update(old, podNamed("web", 9));
  assert.deepEqual(queue.counts, { active: 2, backoff: 0, unschedulable: 0 });
  assert.equal(await popName(queue), "web");
  queue.add(podNamed("third", 1));
  queue.update(undefined, podNamed("third", 7));
  assert.equal(await popName(queue), "third", "also one that is active already");
});

test("several refused pods are woken by one event, each by its own check", async () => {
  const { queue, clock } = newQueue();
  // The first pod in the queue is one that the event does not help.
  for (const [name, priority] of [
    ["a", 1],
    ["b", 9],
    ["c", 2],
  ] as const)
    queue.add(podNamed(name, priority));
  for (const _ of ["a", "b", "c"]) {
    const entry = await queue.pop();
    assert.ok(entry);
    entry.unschedulablePlugins = new Set(["Node"]);
    queue.addUnschedulable(entry, queue.cycle);
  }
  await clock.advance(2_000);
  queue.wakeUp("Node/Add", ({ metadata }) => {
    if (metadata.name === "a") throw new Error("unreadable");
    return metadata.name === "c";
  });
  assert.deepEqual(queue.counts, { active: 2, backoff: 0, unschedulable: 1 });
  assert.deepEqual([await popName(queue), await popName(queue)].toSorted(), ["a", "c"]);
});

test("a pod requeued twice waits once; a closed queue returns nothing", async () => {
  const { queue } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  const { cycle } = queue;
  queue.addUnschedulable(entry, cycle);
  queue.wakeUp("*/*");
  queue.addUnschedulable(entry, cycle);
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 0 });
  queue.add(podNamed("late"));
  queue.close();
  assert.equal(await queue.pop(), undefined);
});

/** Adds pods and has each rejected by the plugin `Node`. */
async function refused(queue: SchedulingQueue, ...names: string[]): Promise<void> {
  for (const name of names) queue.add(podNamed(name));
  for (const _ of names) {
    const entry = await queue.pop();
    assert.ok(entry);
    entry.unschedulablePlugins = new Set(["Volume", "Node"]);
    queue.addUnschedulable(entry, queue.cycle);
  }
}

test("exactly the pods that have been unschedulable for a minute are retried", async () => {
  const { queue, clock } = newQueue();
  await refused(queue, "a", "b");
  await clock.advance(1);
  await refused(queue, "c");
  await clock.advance(59_998);
  assert.equal(queue.counts.unschedulable, 3);
  await clock.advance(1);
  assert.deepEqual(queue.counts, { active: 2, backoff: 0, unschedulable: 1 });
});

test("an event that may help against any rejection wakes all pods, except those that fail the check", async () => {
  const { queue } = newQueue();
  await refused(queue, "a", "b", "c");
  queue.wakeUp("Node/Add", (pod) => {
    if (pod.metadata.name === "a") throw new Error("cannot be read");
    return pod.metadata.name !== "b";
  });
  assert.deepEqual(queue.counts, { active: 0, backoff: 2, unschedulable: 1 });
});

test("back-off doubles from 1 s to 10 s; all pods whose back-off has ended become active together", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  for (const seconds of [1, 2, 4, 8, 10, 10]) {
    const entry = await queue.pop();
    assert.ok(entry);
    queue.addUnschedulable(entry, queue.cycle);
    queue.wakeUp("Node/Add");
    await clock.advance(seconds * 1000 - 1);
    assert.equal(queue.counts.backoff, 1, `${seconds} s`);
    await clock.advance(1);
    assert.equal(queue.counts.active, 1, `${seconds} s`);
  }
  queue.delete(podNamed("web"));
  await refused(queue, "a", "b");
  queue.wakeUp("Node/Add");
  await clock.advance(1_000);
  assert.deepEqual(queue.counts, { active: 2, backoff: 0, unschedulable: 0 });
});

test("a changed pod is updated in every queue, and becomes active only when the change may make it schedulable", async () => {
  const { queue, clock } = newQueue();
  const changed = (name: string) => ({ ...podNamed(name, 7), status: { phase: "Pending" as const } });
  queue.add(podNamed("active"));
  queue.update(podNamed("active"), changed("active"));
  assert.equal((await queue.pop())?.pod.spec.priority, 7);
  await refused(queue, "web");
  queue.update(podNamed("web"), { ...podNamed("web"), status: { phase: "Pending" } });
  assert.equal(queue.counts.unschedulable, 1, "a status changes nothing");
  queue.update(podNamed("web"), podNamed("web", 3));
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 0 });
  queue.update(podNamed("web", 3), podNamed("web", 7));
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 0 }, "it stays in its back-off");
  await clock.advance(1_000);
  assert.equal((await queue.pop())?.pod.spec.priority, 7);
  queue.update(undefined, podNamed("unknown"));
  assert.deepEqual(queue.counts, { active: 0, backoff: 0, unschedulable: 0 });
});

test("a change of priority moves a pod within the active queue", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("first"));
  await clock.advance(1);
  queue.add(podNamed("second"));
  queue.update(podNamed("second"), podNamed("second", 5));
  assert.deepEqual([await popName(queue), await popName(queue)], ["second", "first"]);
});

test("a pod is in one part of the queue, and in none when it was deleted", async () => {
  const { queue } = newQueue();
  await refused(queue, "a", "b");
  queue.add(podNamed("a"));
  queue.wakeUp("Node/Add");
  queue.add(podNamed("b"));
  assert.deepEqual(queue.counts, { active: 2, backoff: 0, unschedulable: 0 });
  queue.delete(podNamed("a"));
  queue.delete(podNamed("b"));
  await refused(queue, "c");
  queue.delete(podNamed("c"));
  await refused(queue, "d");
  queue.wakeUp("Node/Add");
  queue.delete(podNamed("d"));
  assert.deepEqual(queue.counts, { active: 0, backoff: 0, unschedulable: 0 });
});

test("a pod that was added during its cycle is not queued twice", async () => {
  const { queue } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.add(podNamed("web", 2));
  queue.addUnschedulable(entry, queue.cycle);
  assert.deepEqual(queue.counts, { active: 1, backoff: 0, unschedulable: 0 });
  const again = await queue.pop();
  assert.deepEqual([again?.pod.spec.priority, again?.attempts], [2, 1]);
});

test("pop returns each pod once, and undefined after the queue was closed", async () => {
  const { queue } = newQueue();
  const waiting = queue.pop();
  queue.add(podNamed("a"));
  queue.add(podNamed("b"));
  assert.equal((await waiting)?.pod.metadata.name, "a");
  assert.deepEqual([queue.counts.active, queue.cycle], [1, 1]);
  await queue.pop();
  const last = queue.pop();
  queue.close();
  assert.equal(await last, undefined);
  queue.add(podNamed("c"));
  assert.equal(await queue.pop(), undefined);
});

test("a timer is set only while a pod waits, for the wait that ends first, rounded up to 100 ms", async () => {
  const { queue, clock } = newQueue();
  const due = (): number | undefined => clock.nextDue && clock.nextDue - clock.now();
  queue.add(podNamed("a"));
  assert.equal(clock.waiting, 0, "an active pod waits for no time");
  await queue.pop();
  await clock.advance(7);
  await refused(queue, "b");
  assert.equal(due(), 60_093);
  queue.wakeUp("Node/Add");
  assert.deepEqual([due(), clock.waiting], [1_093, 1]);
  await clock.advance(1_093);
  assert.deepEqual([queue.counts.active, clock.waiting], [1, 0]);
  await refused(queue, "c");
  assert.equal(clock.waiting, 1);
  queue.close();
  assert.equal(clock.waiting, 0, "a closed queue moves nothing");
});

test("a pod requeued twice waits from the second time on, and does not delay pods behind it", async () => {
  const { queue, clock } = newQueue();
  for (const name of ["a", "b"]) queue.add(podNamed(name));
  const [a, b] = [await queue.pop(), await queue.pop()];
  assert.ok(a && b);
  for (const entry of [a, b]) queue.addUnschedulable(entry, queue.cycle);
  await clock.advance(30_000);
  queue.addUnschedulable(a, queue.cycle);
  await clock.advance(30_000);
  assert.deepEqual(queue.counts, { active: 1, backoff: 0, unschedulable: 1 });
  assert.equal(await popName(queue), "b");
});

test("a pod without a priority is ordered as one of priority 0", () => {
  const { compare } = newPrioritySort();
  const entry = (priority: number | undefined) => {
    const { priority: _, ...spec } = aPod({ name: "web" }).spec;
    const pod = { ...aPod({ name: "web" }), spec: { ...spec, ...(priority !== undefined && { priority }) } };
    return { pod, queuedAtMs: 0, attempts: 0 } as unknown as QueuedPodView;
  };
  assert.deepEqual([compare?.(entry(undefined), entry(0)), compare?.(entry(0), entry(undefined))], [0, 0]);
});

test("a pod in back-off that is requeued stays only in the back-off queue", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  const { cycle } = queue;
  queue.wakeUp("Node/Add");
  queue.addUnschedulable(entry, cycle);
  queue.addUnschedulable({ ...entry }, cycle + 1);
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 0 });
  await clock.advance(1_000);
  assert.deepEqual(queue.counts, { active: 1, backoff: 0, unschedulable: 0 });
});

test("each move of a pod is reported with the part of the queue and the event", async () => {
  const clock = newFakeClock();
  const moves: string[] = [];
  const queue = new SchedulingQueue({
    clock,
    log: discardLogger,
    compare: () => 0,
    mayHelp: () => true,
    incoming: (part, why) => void moves.push(`${part} ${why}`),
  });
  const refuse = async (): Promise<void> => {
    const entry = await queue.pop();
    assert.ok(entry);
    queue.addUnschedulable(entry, queue.cycle);
  };
  const pod = podNamed("web");
  queue.add(pod);
  await refuse();
  queue.wakeUp("PersistentVolumeClaim/Add");
  await clock.advance(1_000);
  await refuse();
  await clock.advance(5_000);
  queue.update(pod, podNamed("web", 3));
  await refuse();
  await clock.advance(60_000);
  assert.deepEqual(moves, [
    "active PodAdd",
    "unschedulable ScheduleAttemptFailure",
    "backoff PvcAdd",
    "active BackoffComplete",
    "unschedulable ScheduleAttemptFailure",
    "active PodUpdate",
    "unschedulable ScheduleAttemptFailure",
    "active UnschedulableTimeout",
  ]);
});

test("a changed annotation makes a waiting pod active", async () => {
  const { queue } = newQueue();
  await refused(queue, "web");
  const old = podNamed("web");
  queue.update(old, { ...old, metadata: { ...old.metadata, annotations: { a: "b" } } });
  assert.equal(queue.counts.backoff, 1);
});

test("a pod that waited a minute still waits for a longer back-off", async () => {
  const clock = newFakeClock();
  const options = {
    clock,
    log: discardLogger,
    compare: () => 0,
    mayHelp: () => true,
    initialBackoffMs: 90_000,
    maxBackoffMs: 90_000,
  };
  const queue = new SchedulingQueue(options);
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  await clock.advance(60_000);
  assert.deepEqual(queue.counts, { active: 0, backoff: 1, unschedulable: 0 });
  await clock.advance(30_000);
  assert.equal(queue.counts.active, 1);
});

test("a pod whose back-off ends later stays when that of another one ends", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("once"));
  queue.add(podNamed("twice"));
  for (const attempts of [1, 2]) {
    const entry = await queue.pop();
    assert.ok(entry);
    entry.attempts = attempts;
    queue.addUnschedulable(entry, queue.cycle);
  }
  queue.wakeUp("Node/Add");
  await clock.advance(1_000);
  assert.deepEqual(queue.counts, { active: 1, backoff: 1, unschedulable: 0 });
  assert.equal(await popName(queue), "once");
  await clock.advance(1_000);
  assert.equal(await popName(queue), "twice");
});
