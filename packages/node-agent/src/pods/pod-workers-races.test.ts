import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import type { SyncOutcome } from "./pod-runner.ts";
import { newPodWorkers } from "./pod-workers.ts";

type Call = "sync" | "terminate" | "clean" | "gone";

/** Workers with a runner that records its calls (`sync uid-1`); tests can hold or fail the next call of a kind. */
function working() {
  const clock = newFakeClock();
  const calls: string[] = [];
  const failures: string[] = [];
  const next: Record<Call, (() => Promise<void>)[]> = { sync: [], terminate: [], clean: [], gone: [] };
  const control = { outcome: { kind: "synced" } as SyncOutcome };
  const said = async (call: Call, uid: string, more = ""): Promise<void> => {
    calls.push(`${call} ${uid}${more}`);
    await next[call].shift()?.();
  };
  const workers = newPodWorkers({
    runner: {
      async sync({ metadata }) {
        await said("sync", metadata.uid, metadata.labels?.["v"] === undefined ? "" : ` v${metadata.labels["v"]}`);
        return control.outcome;
      },
      terminate: ({ metadata }, { graceSecondsOverride, verdict }) =>
        said(
          "terminate",
          metadata.uid,
          `${graceSecondsOverride === undefined ? "" : ` ${graceSecondsOverride}`}${verdict ? ` ${verdict.reason}` : ""}`,
        ),
      clean: ({ metadata }, { deleted }) => said("clean", metadata.uid, deleted ? " all" : ""),
      collect: () => undefined,
    },
    clock,
    log: discardLogger,
    syncFrequencyMs: 60_000,
    random: () => 0,
    onGone: ({ metadata }) => said("gone", metadata.uid),
    onFailure: (_, err) => void failures.push((err as Error).message),
  });
  const fail = (call: Call, times = 1): void => {
    for (let i = 0; i < times; i++) next[call].push(() => Promise.reject(new Error(`${call} failed`)));
  };
  const hold = (call: Call): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    next[call].push(() => promise);
    return resolve;
  };
  const interrupt = (call: Call): ((err: Error) => void) => {
    const { promise, reject } = Promise.withResolvers<void>();
    next[call].push(() => promise);
    return reject;
  };
  return { workers, clock, calls, failures, control, fail, hold, interrupt };
}

const version = (v: string): NodePod => aNodePod({}, { labels: { v } });
const deleted = (pod: NodePod, seconds = 30): NodePod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: seconds },
});
const evicted = { reason: "Evicted", message: "no memory" };

test("a pod that changes twice during a sync is synced once more, with its latest state", async () => {
  const { workers, calls, hold } = working();
  const release = hold("sync");
  workers.update(version("1"));
  await waitFor(() => calls.length === 1);
  workers.update(version("2"));
  workers.update(version("3"));
  release();
  await workers.idle();
  assert.deepEqual(calls, ["sync uid-1 v1", "sync uid-1 v3"]);
});

test("waking a pod during a sync leaves one timer", async () => {
  const { workers, calls, hold, clock } = working();
  const release = hold("sync");
  workers.update(aNodePod());
  await waitFor(() => calls.length === 1);
  workers.wake("uid-1");
  release();
  await workers.idle();
  assert.deepEqual([calls.length, clock.waiting], [2, 1]);
  workers.wake("uid-1");
  await workers.idle();
  assert.deepEqual([calls.length, clock.waiting], [3, 1], "the timer of the sync before is cancelled");
});

test("a sync that throws is logged and repeated after ten seconds", async () => {
  const { workers, calls, failures, fail, clock } = working();
  fail("sync");
  workers.update(aNodePod());
  await workers.idle();
  assert.deepEqual([calls, failures], [["sync uid-1"], ["sync failed"]]);
  await clock.advance(9_999);
  assert.equal(calls.length, 1);
  await clock.advance(1);
  await workers.idle();
  assert.deepEqual([calls.length, failures.length], [2, 1]);
});

test("a pod deleted during the clean-up of its eviction is cleaned up completely, then reported as gone", async () => {
  const { workers, calls, hold } = working();
  workers.update(aNodePod());
  await workers.idle();
  const release = hold("clean");
  await workers.evict("uid-1", evicted, 0);
  await waitFor(() => calls.includes("clean uid-1"));
  workers.update(deleted(aNodePod()));
  release();
  await workers.idle();
  assert.deepEqual(calls.slice(2), ["clean uid-1", "clean uid-1 all", "gone uid-1"]);
  assert.equal(workers.knows("uid-1"), false);
});

test("a failed clean-up is retried with delays that double up to sixteen seconds until it succeeds", async () => {
  const { workers, calls, fail, clock } = working();
  fail("clean", 7);
  workers.update(deleted(aNodePod()));
  await workers.idle();
  const cleans = (): number => calls.filter((call) => call === "clean uid-1 all").length;
  let count = 1;
  for (const waitMs of [500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000]) {
    await clock.advance(waitMs - 1);
    assert.equal(cleans(), count, `not before ${waitMs} ms`);
    await clock.advance(1);
    await workers.idle();
    assert.equal(cleans(), ++count);
  }
  assert.deepEqual([calls.at(-1), workers.knows("uid-1")], ["gone uid-1", false]);
});

test("a pod whose end could not be reported stays known, and the report is retried", async () => {
  const { workers, calls, fail, clock } = working();
  fail("gone");
  workers.update(deleted(aNodePod()));
  await workers.idle();
  assert.equal(workers.knows("uid-1"), true);
  await clock.advance(500);
  await workers.idle();
  assert.deepEqual([calls.filter((call) => call === "gone uid-1").length, workers.knows("uid-1")], [2, false]);
});

test("an eviction ends when no container of the pod runs: not after a failed kill, and before the clean-up", async () => {
  const { workers, fail, hold, clock } = working();
  workers.update(aNodePod());
  await workers.idle();
  fail("terminate", 2); // the second eviction triggers an immediate retry
  const release = hold("clean");
  let over = 0;
  for (const _ of ["first", "second"]) void workers.evict("uid-1", evicted, 0).then(() => over++);
  await settle();
  assert.equal(over, 0, "the kill failed");
  assert.equal(workers.hasEnded("uid-1"), false, "it still holds resources");
  await clock.advance(10_000);
  await settle();
  assert.equal(over, 2, "both who wait hear of it, while the clean-up is under way");
  assert.equal(workers.hasEnded("uid-1"), true);
  release();
});

test("a pod ended for several reasons reports the first, and no kill runs during a sync", async () => {
  const { workers, calls, hold } = working();
  const release = hold("sync");
  workers.update(aNodePod());
  await waitFor(() => calls.length === 1);
  void workers.evict("uid-1", evicted, 20);
  void workers.evict("uid-1", { reason: "Preempting", message: "" }, 10);
  void workers.evict("uid-1", { reason: "Terminated", message: "" }, 15);
  await settle();
  assert.deepEqual(calls, ["sync uid-1"]);
  release();
  await workers.idle();
  assert.deepEqual(calls.slice(1), ["terminate uid-1 10 Evicted", "clean uid-1"]);
});

test("evicting an unknown or ended pod returns at once and kills nothing", async () => {
  const { workers, calls, control } = working();
  await workers.evict("uid-9", evicted, 0);
  control.outcome = { kind: "ended" };
  workers.update(aNodePod());
  await workers.idle();
  const before = calls.length;
  await workers.evict("uid-1", evicted, 0);
  await workers.idle();
  assert.equal(calls.length, before);
});

test("an eviction requested while the pod is cleaned up completes immediately, since no container runs any more", async () => {
  const { workers, calls, hold } = working();
  const release = hold("clean");
  workers.update(deleted(aNodePod()));
  await waitFor(() => calls.includes("clean uid-1 all"));
  let isOver = false;
  void workers.evict("uid-1", evicted, 0).then(() => {
    isOver = true;
  });
  await settle();
  assert.equal(isOver, true);
  release();
  await workers.idle();
  assert.deepEqual(calls, ["terminate uid-1", "clean uid-1 all", "gone uid-1"]);
});

test("a deletion with a shorter grace period shortens a running kill, one with the same does not", async () => {
  const { workers, calls, hold } = working();
  workers.update(aNodePod());
  await workers.idle();
  const release = hold("terminate");
  workers.update(deleted(aNodePod(), 30));
  await waitFor(() => calls.includes("terminate uid-1"));
  workers.update(deleted(aNodePod(), 30));
  await settle();
  assert.equal(calls.filter((call) => call.startsWith("terminate")).length, 1);
  workers.update(deleted(aNodePod(), 5));
  await settle();
  assert.equal(calls.at(-1), "terminate uid-1 5");
  release();
  await workers.idle();
});

test("a kill that a deletion shortens ends the pod though the second one fails", async () => {
  const { workers, calls, hold, fail } = working();
  workers.update(aNodePod());
  await workers.idle();
  const release = hold("terminate");
  workers.update(deleted(aNodePod(), 30));
  await waitFor(() => calls.includes("terminate uid-1"));
  fail("terminate");
  workers.update(deleted(aNodePod(), 5));
  await waitFor(() => calls.includes("terminate uid-1 5"));
  release();
  await workers.idle();
  assert.deepEqual(calls.slice(1), ["terminate uid-1", "terminate uid-1 5", "clean uid-1 all", "gone uid-1"]);
});

test("the deletion of an evicted pod does not lengthen its grace period", async () => {
  const { workers, calls, fail, clock } = working();
  workers.update(aNodePod());
  await workers.idle();
  fail("terminate");
  void workers.evict("uid-1", evicted, 3);
  await workers.idle();
  workers.update(deleted(aNodePod(), 30));
  await clock.advance(10_000);
  await workers.idle();
  const kills = calls.filter((call) => call.startsWith("terminate"));
  assert.deepEqual([...new Set(kills)], ["terminate uid-1 3 Evicted"]);
});

test("a pod whose sync hangs does not delay other pods", async () => {
  const { workers, calls, hold } = working();
  const release = hold("sync");
  workers.update(aNodePod());
  workers.update(aNodePod({}, { uid: "uid-2", name: "other" }));
  await waitFor(() => calls.includes("sync uid-2"));
  workers.remove(aNodePod({}, { uid: "uid-2", name: "other" }));
  await waitFor(() => calls.includes("gone uid-2"));
  assert.equal(workers.knows("uid-1"), true);
  release();
  await workers.idle();
});

test("removing an orphan does nothing for a pod that has a worker", async () => {
  const { workers, calls } = working();
  workers.update(aNodePod());
  workers.removeOrphan(aNodePod());
  await workers.idle();
  assert.deepEqual(calls, ["sync uid-1"]);
});

test("a static pod waits only while a pod of the same full name runs, not for other pods of its namespace", async () => {
  const { workers, calls, hold } = working();
  const fromFile = (uid: string, namespace: string): NodePod =>
    aNodePod({}, { uid, namespace, annotations: { [configSourceAnnotation]: "file" } });
  workers.update(fromFile("uid-1", "a"));
  await workers.idle();
  const release = hold("terminate");
  workers.remove(fromFile("uid-1", "a"));
  workers.update(fromFile("uid-2", "b"));
  workers.update(fromFile("uid-3", "a"));
  await settle();
  assert.ok(calls.includes("sync uid-2") && !calls.includes("sync uid-3"), calls.join());
  release();
  await workers.idle();
  assert.ok(calls.indexOf("sync uid-3") > calls.indexOf("gone uid-1"), calls.join());
});

test("a waiting static pod starts as soon as the one before it is gone, though another was evicted before it started", async () => {
  const { workers, calls } = working();
  const fromFile = (uid: string): NodePod => aNodePod({}, { uid, annotations: { [configSourceAnnotation]: "file" } });
  for (const uid of ["uid-1", "uid-2", "uid-3"]) workers.update(fromFile(uid));
  await workers.idle();
  await workers.evict("uid-2", evicted, 0);
  await workers.idle();
  assert.deepEqual([calls.includes("sync uid-3"), workers.hasEnded("uid-2"), workers.knows("uid-2")], [false, true, true]);
  workers.remove(fromFile("uid-1"));
  await workers.idle();
  assert.deepEqual(calls.slice(-2), ["gone uid-1", "sync uid-3"]);
});

test("of two static pods that wait for a third one of their name the first starts, and the other waits on", async () => {
  const { workers, calls } = working();
  const fromFile = (uid: string): NodePod => aNodePod({}, { uid, annotations: { [configSourceAnnotation]: "file" } });
  for (const uid of ["uid-1", "uid-2", "uid-3"]) workers.update(fromFile(uid));
  await workers.idle();
  workers.remove(fromFile("uid-1"));
  await workers.idle();
  assert.deepEqual([calls.at(-1), calls.includes("sync uid-3")], ["sync uid-2", false]);
});

test("after stop no sync starts, and no timer is left", async () => {
  const { workers, calls, clock } = working();
  workers.update(aNodePod());
  await workers.idle();
  workers.stop();
  workers.wake("uid-1");
  workers.update(aNodePod({}, { uid: "uid-2", name: "other" }));
  await workers.idle();
  assert.deepEqual([calls, clock.waiting], [["sync uid-1"], 0]);
});

test("a sync interrupted by a deletion reports no failure", async () => {
  const { workers, calls, failures, interrupt } = working();
  const fail = interrupt("sync");
  workers.update(aNodePod());
  await waitFor(() => calls.length === 1);
  workers.update(deleted(aNodePod()));
  fail(new Error("the sandbox is gone"));
  await workers.idle();
  assert.deepEqual([calls, failures], [["sync uid-1", "terminate uid-1", "clean uid-1 all", "gone uid-1"], []]);
});

test("after a failed kill one kill runs at a time, with the shortest requested grace period", async () => {
  const { workers, calls, fail } = working();
  workers.update(aNodePod());
  await workers.idle();
  fail("terminate");
  void workers.evict("uid-1", evicted, 20);
  await workers.idle();
  workers.update(deleted(aNodePod(), 5));
  await workers.idle();
  assert.deepEqual(calls.slice(1), ["terminate uid-1 20 Evicted", "terminate uid-1 5 Evicted", "clean uid-1 all", "gone uid-1"]);
});

test("waking a pod whose kill or clean-up has failed does not retry it before its time", async () => {
  const { workers, calls, fail, clock } = working();
  fail("terminate");
  fail("clean");
  workers.update(deleted(aNodePod()));
  await workers.idle();
  workers.wake("uid-1");
  await workers.idle();
  assert.deepEqual(calls, ["terminate uid-1"]);
  await clock.advance(10_000);
  await workers.idle();
  workers.wake("uid-1");
  await workers.idle();
  assert.deepEqual(calls.slice(1), ["terminate uid-1", "clean uid-1 all"]);
});

test("a pod that is terminating when the agent stops is left as it is", async () => {
  const { workers, calls, control, hold } = working();
  const release = hold("sync");
  control.outcome = { kind: "ended" } as SyncOutcome;
  workers.update(aNodePod());
  await waitFor(() => calls.length === 1);
  workers.stop();
  release();
  await settle();
  assert.deepEqual(calls, ["sync uid-1"]);
});
