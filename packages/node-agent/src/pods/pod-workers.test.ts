import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import type { PodRunner, SyncOutcome } from "./pod-runner.ts";
import { newPodWorkers, type PodWorkers } from "./pod-workers.ts";

/** A runner that records its calls and can be held. */
function setUp(): {
  workers: PodWorkers;
  calls: string[];
  clock: ReturnType<typeof newFakeClock>;
  runner: {
    outcome: SyncOutcome;
    hold: Promise<void> | undefined;
    holdKill: Promise<void> | undefined;
    holdGone: Promise<void> | undefined;
    terminateFails: number;
    cleanFails: number;
    /** Value of the random function: the fraction of the maximum jitter. */
    portion: number;
  };
  gone: string[];
  /** Calls for Pods, except those that only the runtime knows. */
  reportedPods: string[];
} {
  const clock = newFakeClock();
  const calls: string[] = [];
  const gone: string[] = [];
  const reportedPods: string[] = [];
  const control = {
    outcome: { kind: "synced" } as SyncOutcome,
    hold: undefined as Promise<void> | undefined,
    holdKill: undefined as Promise<void> | undefined,
    holdGone: undefined as Promise<void> | undefined,
    terminateFails: 0,
    cleanFails: 0,
    portion: 0,
  };
  const inside = new Set<string>();
  const alone = async (uid: string, what: string, work: () => Promise<void>): Promise<void> => {
    assert.ok(!inside.has(uid), `${what} while something else runs for the pod`);
    inside.add(uid);
    calls.push(uid === "uid-1" ? what : `${what} ${uid}`);
    await work();
    inside.delete(uid);
  };
  const runner: PodRunner = {
    async sync({ metadata }, signal) {
      let aborted = false;
      await alone(metadata.uid, "sync", async () => {
        await control.hold;
        aborted = signal.aborted;
      });
      if (aborted) calls.push("sync was interrupted");
      return control.outcome;
    },
    async terminate(_, { graceSecondsOverride, verdict, runtimeOnly }) {
      calls.push(
        ["terminate", graceSecondsOverride, verdict?.reason, runtimeOnly ? "orphan" : undefined]
          .filter((part) => part !== undefined)
          .join(" "),
      );
      await control.holdKill;
      if (control.terminateFails-- > 0) throw new Error("still running");
    },
    async clean(_, { deleted, runtimeOnly }) {
      calls.push(deleted ? "clean all" : "clean");
      if (!runtimeOnly) reportedPods.push("clean");
      if (control.cleanFails-- > 0) throw new Error("still mounted");
    },
    collect: () => undefined,
  };
  const workers = newPodWorkers({
    runner,
    clock,
    log: discardLogger,
    syncFrequencyMs: 60_000,
    random: () => control.portion,
    async onGone(pod, { wantedAgain, runtimeOnly }) {
      if (!runtimeOnly) reportedPods.push("gone");
      gone.push(`${pod.metadata.name}${wantedAgain ? " again" : ""}`);
      await control.holdGone;
    },
  });
  return { workers, calls, clock, runner: control, gone, reportedPods };
}

const deleted = (pod: NodePod, seconds = 30): NodePod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: seconds },
});

test("a pod is synced when it is added, when it is woken, and every minute", async () => {
  const { workers, calls, clock } = setUp();
  workers.update(aNodePod());
  await workers.idle();
  workers.wake("uid-1");
  await workers.idle();
  assert.deepEqual(calls, ["sync", "sync"]);
  await clock.advance(59_000);
  await settle();
  assert.equal(calls.length, 2);
  await clock.advance(2_000);
  await settle();
  assert.equal(calls.length, 3);
});

test("a pod is synced when its deadline is due", async () => {
  const { workers, calls, clock, runner } = setUp();
  runner.outcome = { kind: "synced", againMs: 5_000 };
  workers.update(aNodePod());
  await workers.idle();
  await clock.advance(5_000);
  assert.equal(calls.length, 2);
});

test("a failed sync is retried, after the error's own delay if it has one", async () => {
  const { workers, calls, clock, runner } = setUp();
  runner.outcome = { kind: "failed", error: new Error("x"), retryMs: 1_000 };
  workers.update(aNodePod());
  await workers.idle();
  runner.outcome = { kind: "failed", error: new Error("x") };
  await clock.advance(1_000);
  await settle();
  assert.equal(calls.length, 2);
  await clock.advance(9_999);
  await settle();
  assert.equal(calls.length, 2);
  await clock.advance(1);
  await settle();
  assert.equal(calls.length, 3);
});

test("retries of pods that wait for the network are spread by up to 50 %", async () => {
  for (const { jitter, portion, want } of [
    { jitter: true, portion: 0.5, want: 1_250 },
    { jitter: true, portion: 0, want: 1_000 },
    { jitter: false, portion: 0.5, want: 1_000 },
  ]) {
    const { workers, calls, clock, runner } = setUp();
    runner.outcome = { kind: "failed", error: new Error("network is not ready"), retryMs: 1_000, jitter };
    runner.portion = portion;
    workers.update(aNodePod());
    await workers.idle();
    await clock.advance(want - 1);
    await settle();
    assert.equal(calls.length, 1, `${want} ms: not before`);
    await clock.advance(1);
    await settle();
    assert.equal(calls.length, 2, `${want} ms`);
  }
});

test("a finished pod is terminated and cleaned up once, and stays known until it is deleted", async () => {
  const { workers, calls, runner, gone } = setUp();
  runner.outcome = { kind: "ended" };
  workers.update(aNodePod());
  await workers.idle();
  assert.deepEqual(calls, ["sync", "terminate", "clean"]);
  assert.equal(workers.hasEnded("uid-1"), true);
  workers.wake("uid-1");
  workers.update(aNodePod({}, { labels: { a: "b" } }));
  await workers.idle();
  assert.deepEqual(calls, ["sync", "terminate", "clean"], "nothing starts again");
  workers.update(deleted(aNodePod()));
  await workers.idle();
  assert.deepEqual(calls, ["sync", "terminate", "clean", "clean all"]);
  assert.deepEqual(gone, ["web"]);
  assert.equal(workers.knows("uid-1"), false);
});

test("a deletion interrupts a sync that is under way", async () => {
  const { workers, calls, runner, gone } = setUp();
  let release: () => void = () => undefined;
  runner.hold = new Promise((resolve) => {
    release = resolve;
  });
  workers.update(aNodePod());
  await waitFor(() => calls.length === 1);
  workers.update(deleted(aNodePod()));
  release();
  await workers.idle();
  assert.deepEqual(calls, ["sync", "sync was interrupted", "terminate", "clean all"]);
  assert.deepEqual(gone, ["web"]);
});

test("a pod first seen in deletion starts nothing", async () => {
  const { workers, calls, gone } = setUp();
  workers.update(deleted(aNodePod()));
  await workers.idle();
  assert.deepEqual(calls, ["terminate", "clean all"]);
  assert.deepEqual(gone, ["web"]);
});

test("termination and clean-up are retried until they succeed", async () => {
  const { workers, calls, clock, runner, gone } = setUp();
  runner.terminateFails = 1;
  runner.cleanFails = 1;
  workers.update(deleted(aNodePod()));
  await workers.idle();
  assert.deepEqual([calls, gone], [["terminate"], []]);
  await clock.advance(10_000);
  await settle();
  await workers.idle();
  assert.deepEqual([calls, gone], [["terminate", "terminate", "clean all"], []]);
  await clock.advance(1_000);
  await settle();
  await workers.idle();
  assert.deepEqual(gone, ["web"]);
});

test("an eviction kills with its own grace period and says why; the pod is kept until it is deleted", async () => {
  const { workers, calls, gone } = setUp();
  workers.update(aNodePod());
  await workers.idle();
  await workers.evict("uid-1", { reason: "Evicted", message: "no memory" }, 0);
  await workers.idle();
  assert.deepEqual(calls, ["sync", "terminate 0 Evicted", "clean"]);
  assert.deepEqual(gone, []);
});

test("an orphaned pod of the runtime is ended within one second and removed", async () => {
  const { workers, calls } = setUp();
  workers.removeOrphan(aNodePod());
  await workers.idle();
  assert.deepEqual(calls, ["terminate 1 orphan", "clean all"]);
});

test("an orphaned pod that its source then reports as being deleted is reported as ended", async () => {
  const { workers, runner, calls, reportedPods } = setUp();
  const { hold, release } = held();
  runner.holdKill = hold;
  workers.removeOrphan(aNodePod());
  await waitFor(() => calls.length === 1);
  workers.update(deleted(aNodePod()));
  release();
  await workers.idle();
  assert.deepEqual(reportedPods, ["clean", "gone"]);
});

/** A promise and its resolve function. */
function held(): { hold: Promise<void>; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { hold: promise, release: resolve };
}

const fromFile = (uid: string): NodePod => aNodePod({}, { uid, annotations: { [configSourceAnnotation]: "file" } });

test("a static pod whose file was put back while it ended runs again when it has ended", async () => {
  const { workers, calls, runner, gone } = setUp();
  workers.update(fromFile("uid-1"));
  await workers.idle();
  const { hold, release } = held();
  runner.holdKill = hold;
  workers.remove(fromFile("uid-1"));
  await waitFor(() => calls.includes("terminate"));
  assert.deepEqual(
    workers.ending().map(({ metadata }) => metadata.uid),
    ["uid-1"],
  );
  workers.update(fromFile("uid-1"));
  await settle();
  assert.deepEqual(calls, ["sync", "terminate"], "first it ends");
  release();
  await workers.idle();
  assert.deepEqual(calls, ["sync", "terminate", "clean all", "sync"]);
  assert.deepEqual([gone, workers.ending()], [["web again"], []]);
  assert.equal(workers.knows("uid-1"), true);
});

test("a static pod that was added and removed again during its termination is not started", async () => {
  const { workers, calls, runner, gone } = setUp();
  workers.update(fromFile("uid-1"));
  await workers.idle();
  const { hold, release } = held();
  runner.holdKill = hold;
  workers.remove(fromFile("uid-1"));
  await waitFor(() => calls.includes("terminate"));
  workers.update(fromFile("uid-1"));
  workers.remove(fromFile("uid-1"));
  release();
  await workers.idle();
  assert.deepEqual([calls, gone], [["sync", "terminate", "clean all"], ["web"]]);
});

test("a static pod added and removed during its termination is not started, and starts when added again", async () => {
  const { workers, calls, runner, gone } = setUp();
  const { hold, release } = held();
  runner.holdGone = hold;
  workers.removeOrphan(aNodePod());
  workers.update(fromFile("uid-1"));
  await waitFor(() => gone.length > 0);
  workers.remove(fromFile("uid-1"));
  release();
  await workers.idle();
  assert.deepEqual([calls, workers.knows("uid-1")], [["terminate 1 orphan", "clean all"], false]);
  workers.update(fromFile("uid-1"));
  await workers.idle();
  assert.equal(calls.at(-1), "sync");
});

test("an orphaned pod that a source adds meanwhile starts after the orphan has ended", async () => {
  const { workers, calls } = setUp();
  workers.removeOrphan(aNodePod());
  workers.update(fromFile("uid-1"));
  await workers.idle();
  assert.deepEqual(calls, ["terminate 1 orphan", "clean all", "sync"]);
});

test("a changed static pod starts after the previous one of its name has ended", async () => {
  const { workers, calls, runner } = setUp();
  workers.update(fromFile("uid-1"));
  await workers.idle();
  const { hold, release } = held();
  runner.holdKill = hold;
  workers.remove(fromFile("uid-1"));
  workers.update(fromFile("uid-2"));
  workers.update(fromFile("uid-3"));
  workers.remove(fromFile("uid-2"));
  await settle();
  assert.ok(!calls.some((call) => call.startsWith("sync uid-")), "the old one still runs");
  release();
  await workers.idle();
  assert.ok(calls.indexOf("sync uid-3") > calls.indexOf("clean all"), `${calls.join()}`);
  assert.ok(!calls.includes("sync uid-2"), "one that came and went between never began");
});

test("pods of one name that are not static do not wait for each other", async () => {
  const { workers, calls, runner } = setUp();
  workers.update(aNodePod());
  await workers.idle();
  runner.holdKill = new Promise(() => undefined);
  workers.remove(aNodePod());
  workers.update(aNodePod({}, { uid: "uid-2" }));
  await waitFor(() => calls.includes("sync uid-2"));
});

test("the node can shorten the grace period of a terminating pod, never lengthen it", async () => {
  const { workers, calls, runner } = setUp();
  workers.update(aNodePod({ terminationGracePeriodSeconds: 3600 }));
  await workers.idle();
  const { hold, release } = held();
  runner.holdKill = hold;
  workers.update(deleted(aNodePod({ terminationGracePeriodSeconds: 3600 }), 3600));
  await waitFor(() => calls.includes("terminate"));
  const ended = workers.evict("uid-1", { reason: "Terminated", message: "down" }, 10);
  void workers.evict("uid-1", { reason: "Evicted", message: "late" }, 20);
  await settle();
  release();
  await ended;
  await workers.idle();
  assert.deepEqual(calls, ["sync", "terminate", "terminate 10 Terminated", "clean all"]);
});
