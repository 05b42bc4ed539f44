import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aJob, aJobPod } from "../../testing/jobs.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newJobContext } from "./context.ts";
import { podHandlers } from "./pod-handlers.ts";

/** The handlers over an informer with these Jobs, and what they enqueue. */
async function handlersOf(t: Parameters<typeof newTestContext>[0], ...all: Job[]) {
  const { client, ctx, run } = newTestContext(t);
  client.put(jobs, ...all);
  const enqueued: string[] = [];
  const orphans: string[] = [];
  const enqueueOrphan = ({ metadata }: Pod) => void orphans.push(metadata.name ?? "");
  const context = newJobContext(ctx, { enqueueAfter() {}, enqueueOrphan });
  await run();
  const handlers = podHandlers(context, {
    enqueue: (key) => void enqueued.push(key),
    enqueueAfter: (key, delayMs) => void enqueued.push(`${key} in ${delayMs} ms`),
  });
  return { context, handlers, enqueued, orphans };
}

const withoutOwner = (pod: Pod, labels = pod.metadata.labels): Pod => {
  const { ownerReferences: _, ...metadata } = pod.metadata;
  return { ...pod, metadata: { ...metadata, ...(labels && { labels }) } };
};
const deletedAt = "2022-01-01T00:00:00Z";

test("a pod that changes its controller enqueues the former and the new one", async (t) => {
  const [a, b] = [aJob({ name: "a" }), aJob({ name: "b" })];
  const { handlers, enqueued } = await handlersOf(t, a, b);
  handlers.updated?.(aJobPod(a, "p"), aJobPod(b, "p"));
  assert.deepEqual(enqueued, ["default/a", "default/b"]);
});

test("an orphan enqueues each job that selects it, when it is new, released or relabelled", async (t) => {
  const selector = { matchLabels: { app: "x" } };
  const [a, b] = ["a", "b"].map((name) => aJob({ name, spec: { selector } })) as [Job, Job];
  const { handlers, enqueued } = await handlersOf(t, a, b, aJob({ name: "all", spec: { selector: {} } }));
  const orphan = withoutOwner(aJobPod(a, "p"), { app: "x" });
  const taken = (): string[] => enqueued.splice(0).toSorted();
  handlers.added?.(orphan);
  assert.deepEqual(taken(), ["default/a", "default/b"]);
  handlers.updated?.(withoutOwner(orphan, { app: "y" }), orphan);
  assert.deepEqual(taken(), ["default/a", "default/b"]);
  handlers.updated?.({ ...orphan, status: { phase: "Pending" } }, orphan);
  assert.deepEqual(taken(), [], "nothing that matters changed");
  const owned = aJobPod(a, "p");
  handlers.updated?.({ ...owned, metadata: { ...owned.metadata, labels: { app: "x" } } }, orphan);
  assert.deepEqual(taken(), ["default/a", "default/a", "default/b"]);
});

test("only a pod with the finalizer that a job or nothing controls is queued to lose it", async (t) => {
  const over = aJob({ name: "over", status: { conditions: [{ type: "Failed", status: "True" }] } });
  const { handlers, orphans } = await handlersOf(t, over);
  const [reference] = aJobPod(over, "p").metadata.ownerReferences ?? [];
  const ofSet = aJobPod(over, "of-set");
  ofSet.metadata = { ...ofSet.metadata, ownerReferences: [{ ...(reference as object), kind: "ReplicaSet" } as never] };
  handlers.added?.(ofSet);
  handlers.added?.(aJobPod(over, "released", { withFinalizer: false }));
  handlers.added?.(aJobPod(over, "held"));
  handlers.added?.(withoutOwner(aJobPod(over, "orphan")));
  assert.deepEqual(orphans, ["held", "orphan"]);
});

test("a pod that is first seen while it terminates is a deletion that was seen, not a creation", async (t) => {
  const job = aJob();
  const { context, handlers, enqueued } = await handlersOf(t, job);
  context.expectations.expect("default/work", 1, ["p-uid"]);
  handlers.added?.(aJobPod(job, "p", { deletedAt }));
  assert.deepEqual(enqueued, ["default/work"]);
  assert.equal(context.expectations.satisfied("default/work"), false, "the creation is still awaited");
  handlers.added?.(aJobPod(job, "q"));
  assert.equal(context.expectations.satisfied("default/work"), true);
});

test("only a failed pod waits for the backoff, and a deleted one does not", async (t) => {
  const job = aJob();
  const { context, handlers, enqueued } = await handlersOf(t, job);
  context.failures.failed("default/work");
  handlers.updated?.(aJobPod(job, "p"), aJobPod(job, "p", { phase: "Failed" }));
  handlers.updated?.(aJobPod(job, "p"), aJobPod(job, "p", { phase: "Succeeded" }));
  handlers.deleted?.(aJobPod(job, "p", { phase: "Failed" }));
  assert.deepEqual(enqueued, ["default/work in 10000 ms", "default/work", "default/work"]);
});

test("a finalizer that is gone when a pod changes its controller was removed for the former job", async (t) => {
  const [a, b] = [aJob({ name: "a" }), aJob({ name: "b" })];
  const { context, handlers } = await handlersOf(t, a, b);
  context.finalizerExpectations.expect("default/a", ["p-uid", "q-uid"]);
  handlers.updated?.(aJobPod(a, "p"), aJobPod(b, "p", { withFinalizer: false }));
  handlers.updated?.(aJobPod(a, "q"), aJobPod(b, "q"));
  assert.deepEqual([...context.finalizerExpectations.of("default/a")], ["q-uid"]);
});
