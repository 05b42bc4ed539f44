import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import type { SyncOutcome } from "./pod-runner.ts";
import { newPodWorkers } from "./pod-workers.ts";

/** Workers with the longest jitter whose syncs have these outcomes, the last one repeated; `kills` fail. */
function reportingKills(kills: number, ...outcomes: (SyncOutcome | Promise<never>)[]) {
  const clock = newFakeClock();
  const synced: string[] = [];
  const seen: string[] = [];
  const started: string[] = [];
  const workers = newPodWorkers({
    runner: {
      async sync({ metadata }) {
        synced.push(metadata.uid);
        const [outcome = { kind: "synced" }] = outcomes.length > 1 ? outcomes.splice(0, 1) : outcomes;
        return outcome;
      },
      terminate: async () => {
        if (kills-- > 0) throw new Error("still running");
      },
      clean: async () => undefined,
      collect: () => undefined,
    },
    clock,
    log: discardLogger,
    syncFrequencyMs: 60_000,
    random: () => 1,
    onGone: async () => undefined,
    onStarted: ({ metadata }, waitedMs) => void started.push(`${metadata.uid} after ${waitedMs}`),
    onTerminating: ({ metadata }, graceSeconds) => void seen.push(`${metadata.uid} has ${graceSeconds} s`),
    onRetry: (_, stage, err, delayMs) => void seen.push(`${stage} again in ${delayMs}: ${(err as Error).message}`),
    onWorked: (_, work) => void seen.push(work),
  });
  return { workers, clock, synced, seen, started };
}

const reporting = (...outcomes: (SyncOutcome | Promise<never>)[]) => reportingKills(0, ...outcomes);

const deleted = (pod: NodePod): NodePod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 },
});
const fromFile = (uid: string): NodePod => aNodePod({}, { uid, annotations: { [configSourceAnnotation]: "file" } });

test("a pod's work is reported as create, update, sync and kill", async () => {
  const { workers, seen, started } = reporting();
  workers.update(aNodePod());
  await Promise.all([workers.idle(), workers.idle()]);
  workers.update(aNodePod({}, { labels: { v: "2" } }));
  await workers.idle();
  workers.wake("uid-1");
  await workers.idle();
  workers.update(deleted(aNodePod()));
  await workers.idle();
  assert.deepEqual(seen, ["create", "update", "sync", "uid-1 has 30 s", "kill"]);
  assert.deepEqual(started, ["uid-1 after 0"], "its start is reported once");
});

test("a sync that a deletion interrupts is not reported as one that is retried", async () => {
  const failing = Promise.withResolvers<never>();
  const { workers, synced, seen } = reporting(failing.promise);
  workers.update(aNodePod());
  await settle();
  workers.update(deleted(aNodePod()));
  failing.reject(new Error("the sandbox is gone"));
  await workers.idle();
  assert.deepEqual([synced, seen], [["uid-1"], ["uid-1 has 30 s", "kill"]]);
});

test("a deadline that is due does not cause one sync after the other without a pause", async () => {
  const due: SyncOutcome = { kind: "synced", againMs: 0 };
  const { workers, clock, synced } = reporting(due, due, due, { kind: "synced" });
  workers.update(aNodePod());
  await workers.idle();
  assert.deepEqual([synced.length, clock.waiting], [1, 1]);
  await clock.advance(1);
  assert.equal(synced.length, 2);
  workers.stop();
});

test("a pod is synced again after --sync-frequency and up to half of it more", async () => {
  const { workers, clock, synced } = reporting();
  workers.update(aNodePod());
  await workers.idle();
  await clock.advance(89_999);
  assert.equal(synced.length, 1);
  await clock.advance(1);
  assert.equal(synced.length, 2);
  workers.stop();
});

for (const { outcome, wantMs } of [
  { outcome: { retryMs: 1_000 }, wantMs: 1_000 },
  { outcome: { retryMs: 1_000, jitter: true }, wantMs: 1_500 },
  { outcome: {}, wantMs: 15_000 },
]) {
  test(`a failed sync with ${JSON.stringify(outcome)} is retried after at most ${wantMs} ms`, async () => {
    const { workers, clock, synced, seen } = reporting({ kind: "failed", error: new Error("no image"), ...outcome });
    workers.update(aNodePod());
    await workers.idle();
    assert.deepEqual(seen, [`sync again in ${wantMs}: no image`, "create"].toReversed());
    await clock.advance(wantMs - 1);
    assert.equal(synced.length, 1);
    await clock.advance(1);
    assert.equal(synced.length, 2);
    workers.stop();
  });
}

test("a static pod starts beside a pod of the API server with its name, and after one of its name that has ended", async () => {
  const { workers, synced } = reporting({ kind: "synced" }, { kind: "ended" }, { kind: "synced" });
  workers.update(aNodePod({}, { uid: "api" }));
  await workers.idle();
  workers.update(fromFile("one"));
  await workers.idle();
  assert.equal(workers.hasEnded("one"), true);
  workers.update(fromFile("two"));
  await workers.idle();
  assert.deepEqual(synced, ["api", "one", "two"]);
});

test("a static pod that waits for another of its name looks again after ten seconds, and up to half of it more", async () => {
  const { workers, clock, synced } = reporting();
  workers.update(fromFile("one"));
  await workers.idle();
  workers.update(fromFile("two"));
  await workers.idle();
  assert.deepEqual([synced, (clock.nextDue ?? 0) - clock.now()], [["one"], 15_000]);
  workers.stop();
});

test("the end of a pod that only the runtime knows is not reported as that of a pod with a grace period", async () => {
  const { workers, seen } = reporting();
  workers.removeOrphan(aNodePod());
  await workers.idle();
  assert.deepEqual([seen, workers.knows("uid-1")], [["kill"], false]);
});

test("a failed kill is repeated after ten seconds, without jitter", async () => {
  const { workers, clock, seen } = reportingKills(1);
  workers.update(deleted(aNodePod()));
  await workers.idle();
  assert.deepEqual(seen, ["uid-1 has 30 s", "termination again in 10000: still running"]);
  await clock.advance(10_000);
  await workers.idle();
  assert.deepEqual(seen.slice(2), ["uid-1 has 30 s", "kill"]);
});

for (const { name, spec, deletion, eviction, want } of [
  { name: "of its deletion", spec: 60, deletion: 5, want: 5 },
  { name: "of its specification when its manifest is removed", spec: 60, want: 60 },
  { name: "of its eviction", spec: 60, eviction: 3, want: 3 },
  { name: "without an end when nothing sets one", want: Number.POSITIVE_INFINITY },
] as { name: string; spec?: number; deletion?: number; eviction?: number; want: number }[]) {
  test(`a pod's end is reported with the grace period ${name}`, async () => {
    const { workers, seen } = reporting();
    const pod = aNodePod(spec === undefined ? {} : { terminationGracePeriodSeconds: spec });
    if (spec === undefined) delete pod.spec.terminationGracePeriodSeconds;
    workers.update(pod);
    await workers.idle();
    if (eviction !== undefined) await workers.evict("uid-1", { reason: "Evicted", message: "" }, eviction);
    else if (deletion === undefined) workers.remove(pod);
    else workers.update({ ...pod, metadata: { ...deleted(pod).metadata, deletionGracePeriodSeconds: deletion } });
    await workers.idle();
    assert.deepEqual(seen.slice(1), [`uid-1 has ${want} s`, "kill"]);
  });
}
