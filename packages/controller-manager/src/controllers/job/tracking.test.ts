import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { aJob, aJobPod } from "../../testing/jobs.ts";
import { parseIndexes } from "./completion-indexes.ts";
import { countFinishedPods, moveToCounters, recordFinishedPods } from "./tracking.ts";

const deletedAt = "2022-01-01T00:00:00Z";
const none: ReadonlySet<string> = new Set();
const indexed = { completionMode: "Indexed", completions: 3, parallelism: 3 };

test("tallies counters, uids and held pods, each once", () => {
  const status = { succeeded: 2, failed: 1, uncountedTerminatedPods: { succeeded: ["a-uid"], failed: ["b-uid"] } };
  const job = aJob({ status });
  const pods = [
    aJobPod(job, "a", { phase: "Succeeded" }), // its uid is recorded
    aJobPod(job, "b", { phase: "Failed", withFinalizer: false }), // recorded, finalizer removed
    aJobPod(job, "c", { phase: "Succeeded", withFinalizer: false }), // counted already
    aJobPod(job, "d", { phase: "Succeeded" }),
    aJobPod(job, "e", { phase: "Failed" }), // finalizer removed, not shown by the cache yet
    aJobPod(job, "f", { phase: "Running", deletedAt }),
    aJobPod(job, "g", { phase: "Succeeded", deletedAt }),
    aJobPod(job, "h"),
  ];
  assert.deepEqual(countFinishedPods(job, pods, new Set(["e-uid"])), { succeeded: 2 + 1 + 2, failed: 1 + 1 + 1 });
  assert.deepEqual(countFinishedPods(job, pods, undefined), { succeeded: 4, failed: 2 });
});

test("an indexed job counts valid indexes only", () => {
  const job = aJob({ spec: indexed });
  const pods = [
    aJobPod(job, "a", { phase: "Succeeded", index: 0 }),
    aJobPod(job, "b", { phase: "Succeeded", index: 3 }),
    aJobPod(job, "c", { phase: "Failed" }),
  ];
  for (const removals of [none, undefined]) assert.deepEqual(countFinishedPods(job, pods, removals), { succeeded: 1, failed: 0 });
  const recorded = recordFinishedPods(job, {}, pods, { expectedRemovals: none, completed: [], finishing: false });
  assert.deepEqual(recorded.status.uncountedTerminatedPods?.failed ?? [], []);
});

test("records the uids of finished pods and releases them, not running ones", () => {
  const job = aJob();
  const pods = [
    aJobPod(job, "a", { phase: "Succeeded" }),
    aJobPod(job, "b", { phase: "Failed" }),
    aJobPod(job, "c"),
    aJobPod(job, "d", { deletedAt }),
    aJobPod(job, "e", { phase: "Failed", withFinalizer: false }),
  ];
  const { status, release, withFinalizer } = recordFinishedPods(job, {}, pods, {
    expectedRemovals: none,
    completed: [],
    finishing: false,
  });
  assert.deepEqual(status, { uncountedTerminatedPods: { succeeded: ["a-uid"], failed: ["b-uid", "d-uid"] } });
  assert.deepEqual(
    release.map(({ metadata }) => metadata.name),
    ["a", "b", "d"],
  );
  const settled = moveToCounters(status, withFinalizer.difference(new Set(["a-uid", "b-uid"])));
  assert.deepEqual(settled, { succeeded: 1, failed: 1, uncountedTerminatedPods: { failed: ["d-uid"] } });
  assert.deepEqual(moveToCounters(settled, none), { succeeded: 1, failed: 2, uncountedTerminatedPods: {} });
});

test("a running pod counts as failed when its job finishes, and loses only its finalizer when its job is deleted", () => {
  const [job, deleted] = [aJob(), aJob({ deletedAt })];
  const ending = recordFinishedPods(job, {}, [aJobPod(job, "a")], { expectedRemovals: none, completed: [], finishing: true });
  assert.deepEqual(ending.status.uncountedTerminatedPods, { failed: ["a-uid"] });
  const status: JobStatus = {};
  const leaving = recordFinishedPods(deleted, status, [aJobPod(deleted, "a")], {
    expectedRemovals: none,
    completed: [],
    finishing: false,
  });
  assert.equal(leaving.status, status);
  assert.equal(leaving.release.length, 1);
});

test("an index that succeeded is counted at once, and once", () => {
  const job = aJob({ spec: indexed });
  const pods = [
    aJobPod(job, "a", { phase: "Succeeded", index: 0 }),
    aJobPod(job, "b", { phase: "Succeeded", index: 2 }),
    aJobPod(job, "c", { phase: "Succeeded", index: 2 }),
    aJobPod(job, "d", { phase: "Succeeded", index: 7 }),
    aJobPod(job, "e", { phase: "Failed", index: 1 }),
  ];
  const options = { expectedRemovals: none, completed: parseIndexes("0", 3), finishing: false };
  const { status, release } = recordFinishedPods(job, { succeeded: 1, completedIndexes: "0" }, pods, options);
  assert.deepEqual(status, { succeeded: 2, completedIndexes: "0,2", uncountedTerminatedPods: { failed: ["e-uid"] } });
  assert.equal(release.length, 5);
});

test("an index that is counted already is no news", () => {
  const job = aJob({ spec: indexed });
  const options = { expectedRemovals: none, completed: parseIndexes("0", 3), finishing: false };
  const before: JobStatus = { succeeded: 1, completedIndexes: "0" };
  const { status } = recordFinishedPods(job, before, [aJobPod(job, "a", { phase: "Succeeded", index: 0 })], options);
  assert.equal(status, before, "nothing is to be written");
});

test("notes 500 at once at most", () => {
  const job = aJob();
  const pods = Array.from({ length: 600 }, (_, i) => aJobPod(job, `p${i}`, { phase: "Failed" }));
  const { status, release } = recordFinishedPods(job, {}, pods, { expectedRemovals: none, completed: [], finishing: false });
  assert.equal(status.uncountedTerminatedPods?.failed?.length, 500);
  assert.equal(release.length, 500);
});

test("a counter without news is left as it is stored, also when it is absent", () => {
  const status = { uncountedTerminatedPods: { succeeded: ["a-uid"], failed: ["b-uid"] } };
  const held = (uid: string): ReadonlySet<string> => new Set([uid]);
  assert.deepEqual(moveToCounters(status, held("a-uid")), { failed: 1, uncountedTerminatedPods: { succeeded: ["a-uid"] } });
  assert.deepEqual(moveToCounters(status, held("b-uid")), { succeeded: 1, uncountedTerminatedPods: { failed: ["b-uid"] } });
});
