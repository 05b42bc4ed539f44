import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aNodePod } from "../testing/builders.ts";
import type { NodePod } from "./pod.ts";
import type { PodRunner, SyncOutcome } from "./pod-runner.ts";
import { newPodWorkers, type PodWorkers } from "./pod-workers.ts";

/** A runner whose calls are written down and can be held. */
function setUp(): {
  workers: PodWorkers;
  calls: string[];
  clock: ReturnType<typeof newFakeClock>;
  runner: { outcome: SyncOutcome; hold: Promise<void> | undefined; terminateFails: number; cleanFails: number };
  gone: string[];
} {
  const clock = newFakeClock();
  const calls: string[] = [];
  const gone: string[] = [];
  const control = {
    outcome: { kind: "synced" } as SyncOutcome,
    hold: undefined as Promise<void> | undefined,
    terminateFails: 0,
    cleanFails: 0,
  };
  let inside = 0;
  const alone = async (what: string, work: () => Promise<void>): Promise<void> => {
    inside++;
    assert.equal(inside, 1, `${what} while something else runs for the pod`);
    calls.push(what);
    await work();
    inside--;
  };
  const runner: PodRunner = {
    async sync(_, signal) {
      let aborted = false;
      await alone("sync", async () => {
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
      if (control.terminateFails-- > 0) throw new Error("still running");
    },
    async clean(_, { deleted }) {
      calls.push(deleted ? "clean all" : "clean");
      if (control.cleanFails-- > 0) throw new Error("still mounted");
    },
    collect: () => undefined,
  };
  const workers = newPodWorkers({
    runner,
    clock,
    log: discardLogger,
    syncFrequencyMs: 60_000,
    random: () => 0,
    onGone: async (pod) => void gone.push(pod.metadata.name),
  });
  return { workers, calls, clock, runner: control, gone };
}

const deleted = (pod: NodePod, seconds = 30): NodePod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: seconds },
});

test("a pod is synced when it is wanted, when it is woken, and each minute", async () => {
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

test("a pod that could not be synced is tried again, sooner where the reason says so", async () => {
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

test("a pod that has ended is terminated and cleaned up once, and stays known until it is deleted", async () => {
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

test("termination and cleaning are tried until they succeed", async () => {
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

test("what only the runtime knows is ended and removed", async () => {
  const { workers, calls } = setUp();
  workers.removeOrphan(aNodePod());
  await workers.idle();
  assert.deepEqual(calls, ["terminate orphan", "clean all"]);
});
