import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { newPrioritySort } from "../plugins/priority-sort.ts";
import { newSchedulingQueue, type SchedulingQueue } from "./scheduling-queue.ts";

const podNamed = (name: string, priority = 0) => {
  const pod = aPod({ name });
  return { ...pod, spec: { ...pod.spec, priority } };
};

function newQueue(): { queue: SchedulingQueue; clock: ReturnType<typeof newFakeClock> } {
  const clock = newFakeClock();
  const { compare } = newPrioritySort();
  const queue = newSchedulingQueue({
    clock,
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

test("a refused pod waits for an event that helps, and for its back-off", async () => {
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
  queue.flush();
  assert.equal(queue.counts.backoff, 1, "its back-off of a second is not over");
  await clock.advance(1_000);
  queue.flush();
  assert.equal(await popName(queue), "web");
});

test("an event during the cycle is not missed", async () => {
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
    queue.flush();
    assert.equal(queue.counts.active, 0);
    await clock.advance(1);
    queue.flush();
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
  queue.flush();
  assert.equal(await popName(queue), "web");
});

test("a time of day that is set back keeps no pod waiting longer", async () => {
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
  queue.flush();
  assert.equal(queue.counts.active, 2);
});

test("a waiting pop gets the next pod, and undefined when the queue closes", async () => {
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
  queue.flush();
  assert.equal(queue.counts.active, 0);
});

test("a pod added anew under its name is in one part only, and starts with no attempts", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  queue.add(podNamed("web"));
  assert.deepEqual(queue.counts, { active: 1, backoff: 0, unschedulable: 0 });
  assert.equal((await queue.pop())?.attempts, 1);
  await clock.advance(120_000);
  queue.flush();
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

test("a change of a waiting pod brings it back, one of its status alone does not, and its priority moves it", async () => {
  const { queue, clock } = newQueue();
  queue.add(podNamed("web"));
  const entry = await queue.pop();
  assert.ok(entry);
  queue.addUnschedulable(entry, queue.cycle);
  await clock.advance(5_000);
  const old = podNamed("web");
  queue.update(old, { ...old, status: { phase: "Pending", nominatedNodeName: "a" } });
  assert.equal(queue.counts.unschedulable, 1);
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
  // The one that is not helped stands before the others.
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

test("handed back twice, a pod waits once; closed, the queue gives nothing", async () => {
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
