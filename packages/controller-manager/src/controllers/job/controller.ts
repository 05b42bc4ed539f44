import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey, splitKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { isControlledBy } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs, pods as podsResource } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, runTogether } from "../../define-controller.ts";
import { isJobFinished } from "../../jobs/job-state.ts";
import { candidatesFor, claimObjects } from "../../pods/ownership.ts";
import { isActive, isReady } from "../../pods/pod-state.ts";
import { type JobContext, type JobSync, newJobContext } from "./context.ts";
import { jobRateLimiter } from "./failure-backoff.ts";
import type { SyncAction } from "./metrics.ts";
import { type JobState, planJob, planStatus } from "./plan.ts";
import { jobOfPod, podHandlers } from "./pod-handlers.ts";
import { type Counters, storeCounted, storeTracked } from "./status.ts";
import { uidOf } from "./tracking.ts";
import { hasTrackingAnnotation, hasTrackingFinalizer, removeFinalizerPatch, trackingName } from "./tracking-finalizer.ts";
import { applyPlan, deleteAll } from "./writes.ts";

/**
 * job-controller: runs up to `spec.parallelism` Pods at a time until `spec.completions` of them have succeeded, and counts
 * finished Pods in the status.
 * Watches Jobs (own key) and Pods (key of the controlling Job; an orphan enqueues every Job that selects it). Writes Pods,
 * their finalizers, jobs/status and Events on the Job. A second queue, of Pods, removes the tracking finalizer from Pods
 * whose Job is finished or deleted.
 * Source: pkg/controller/job/job_controller.go
 */
export function newJobController(base: ControllerContext): Runnable {
  const ctx: JobContext = newJobContext(base, {
    enqueueAfter: (key, delayMs) => jobQueue.enqueueAfter(key, delayMs),
    enqueueOrphan: (pod) => orphanQueue.enqueue(keyOf(pod)),
  });
  const jobQueue: Controller = defineController(ctx, {
    name: "job",
    sources: [enqueueSelf(ctx.jobs), enqueueBy(ctx.pods, (queue) => podHandlers(ctx, queue))],
    reconcile,
    limiter: jobRateLimiter(),
    workers,
  });
  const orphanQueue: Controller = defineController(ctx, {
    name: "job_orphan_pod",
    sources: [needsSynced(ctx.jobs), needsSynced(ctx.pods)],
    reconcile: reconcileOrphan,
    limiter: jobRateLimiter(),
  });
  return runTogether(jobQueue, orphanQueue);
}

/** Not configurable by a flag. Source: pkg/controller/job/config/v1alpha1/defaults.go ConcurrentJobSyncs */
const workers = 5;

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
async function reconcile(ctx: JobContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { expectations, finalizerExpectations, uncertainWrites, failures, metrics } = ctx;
  const job = uncertainWrites.has(key) ? await readLive(ctx, key, signal) : ctx.newest.get(key);
  if (job === undefined) {
    for (const records of [expectations, finalizerExpectations, failures]) records.forget(key);
    ctx.compared.delete(key);
    return done;
  }
  if (isJobFinished(job)) {
    failures.forget(key);
    return done;
  }
  const { completionMode: mode = "NonIndexed" } = job.spec;
  const skipped = skipReason(mode, ctx.featureGates);
  if (skipped !== undefined) {
    ctx.recorder.event(job, "Warning", ...skipped);
    return { decision: { verdict: "refused", reason: skipped[0], description: skipped[1] } };
  }
  const start = ctx.clock.monotonic();
  const measured: { action: SyncAction } = { action: "reconciling" };
  let result: "success" | "error" = "error";
  try {
    const tracked = ctx.featureGates.enabled("JobTrackingWithFinalizers") && hasTrackingAnnotation(job);
    const copy = tracked ? deepClone(job) : await withoutTrackingAnnotation(ctx, job, signal);
    if (!ctx.featureGates.enabled("SuspendJob")) copy.spec.suspend = false;
    const failing = await syncJob({ ctx, key, job: copy, tracked, signal }, measured);
    if (!failing) result = "success";
    return { decision: waitingFor(copy, failing) };
  } finally {
    metrics.synced(mode, result, measured.action, (ctx.clock.monotonic() - start) / 1000);
  }
}

function waitingFor({ spec }: Job, failing: boolean): Outcome | undefined {
  if (spec.suspend === true)
    return { verdict: "waiting", reason: "Suspended", description: "is suspended: its pods are not created" };
  if (!failing) return undefined;
  return {
    verdict: "waiting",
    reason: "FailedPodBackOff",
    description: "a pod of it failed: the next one is created after a back-off",
  };
}

/** Reads the Job from the API server after a status write of unknown outcome; undefined when it does not exist. */
async function readLive(ctx: JobContext, key: ObjectKey, signal: AbortSignal): Promise<Job | undefined> {
  const { newest, uncertainWrites } = ctx;
  try {
    newest.written(await ctx.client.get<Job>(jobs, splitKey(key), { signal }));
    uncertainWrites.delete(key);
    return newest.get(key);
  } catch (err) {
    if (!isNotFound(err)) throw err;
    uncertainWrites.delete(key);
    return undefined;
  }
}

/** Reason and message of the Event for a Job that is not reconciled; undefined otherwise. */
function skipReason(mode: string, gates: FeatureGates): [reason: string, message: string] | undefined {
  if (mode === "NonIndexed") return undefined;
  if (mode !== "Indexed") return ["UnknownCompletionMode", "Skipped Job sync because completion mode is unknown"];
  if (gates.enabled("IndexedJob")) return undefined;
  return ["IndexedJobDisabled", "Skipped Indexed Job sync because feature is disabled."];
}

/**
 * Removes the tracking annotation. Once tracking is off, Pods have no finalizers, and the Job must not be treated as
 * tracked later.
 */
async function withoutTrackingAnnotation(ctx: JobContext, job: Job, signal: AbortSignal): Promise<Job> {
  const copy = deepClone(job);
  if (!hasTrackingAnnotation(job)) return copy;
  delete copy.metadata.annotations?.[trackingName];
  return ctx.client.update<Job>(jobs, copy, { signal });
}

/**
 * Reconciles one Job.
 * @returns whether new Pod failures were found and the Job is not finished
 */
async function syncJob(sync: JobSync, measured: { action: SyncAction }): Promise<boolean> {
  const { ctx, key, job, tracked } = sync;
  const { expectations, failures } = ctx;
  if (tracked) await findCountedPods(sync);
  const expectedRemovals = tracked ? ctx.finalizerExpectations.of(key) : undefined;
  // Evaluated before the Pods are listed; otherwise Pods observed in between would be counted twice.
  const satisfied = expectations.satisfied(key);
  const pods = await claimPods(sync);
  const active = pods.filter(isActive);
  const state: JobState = { job, pods, active, expectedRemovals, satisfied, now: ctx.clock.now() };
  const jobPlan = planJob(state);
  const { failure, plan, failing, succeeded, remainingMs } = jobPlan;
  measured.action = plan?.action ?? "reconciling";
  if (failure === undefined && remainingMs !== undefined) ctx.enqueueAfter(key, remainingMs);

  const { change, error } = failure !== undefined ? await deleteAll(sync, active) : await applyPlan(sync, plan);
  // Pods of an untracked Job have no finalizers, so a failed Job counts all of them as deleted.
  const deleted = failure === undefined ? 0 : tracked ? -change : active.length;
  const running = active.length + (failure === undefined ? change : -deleted);

  const { status, finalCondition, suspendedCondition, tooManyActive } = planStatus(state, jobPlan, running);
  if (tooManyActive) {
    const message = "Too many active pods running after completion count reached";
    ctx.recorder.event(job, "Warning", "TooManyActivePods", message);
  }
  const ready = ctx.featureGates.enabled("JobReadyPods") ? active.filter(isReady).length : undefined;
  const counters: Counters = {
    ...jobPlan,
    failed: jobPlan.failed + deleted,
    running,
    ready,
    finalCondition,
    suspendedCondition,
  };
  const finished = await (expectedRemovals === undefined
    ? storeCounted(sync, status, pods, counters)
    : storeTracked(sync, status, pods, { ...counters, expectedRemovals }));
  const stillFailing = failing && !finished;
  if (stillFailing) ctx.enqueueAfter(key, failures.failed(key));
  else if (succeeded > (job.status?.succeeded ?? 0) || suspendedCondition !== undefined) failures.forget(key);
  const pendingMs = expectations.pendingMs(key);
  if (!finished && pendingMs !== undefined) ctx.enqueueAfter(key, pendingMs);
  if (error !== undefined) throw error;
  return stillFailing;
}

/**
 * Finds the Pods that an earlier process has counted, once for each Job that has started: their finalizers are gone, but a cache that is
 * behind still shows them, or will. They would be counted again, since the Job's cache may be ahead of that of Pods.
 */
async function findCountedPods({ ctx, key, job, signal }: JobSync): Promise<void> {
  if (ctx.compared.has(key)) return;
  if (job.status?.startTime) {
    const { namespace = "" } = splitKey(key);
    const labelSelector = LabelSelector.ofCached(job.spec.selector ?? {}).toString();
    const { items } = await ctx.client.list<Pod>(podsResource, { namespace }, { labelSelector, signal });
    const held = new Set(items.filter(hasTrackingFinalizer).map(uidOf));
    const cached = ctx.pods.lister.controlledBy(job);
    const shown = new Set(cached.filter((pod) => !hasTrackingFinalizer(pod)).map(uidOf));
    const released = [...items.filter((pod) => isControlledBy(pod, job)), ...cached].map(uidOf);
    ctx.finalizerExpectations.expect(
      key,
      released.filter((uid) => !held.has(uid) && !shown.has(uid)),
    );
  }
  ctx.compared.add(key);
}

/**
 * Adopts and releases Pods. Newly adopted Pods are returned with the finalizer that the adoption added, which the
 * cache does not show yet.
 */
async function claimPods({ ctx, job, tracked, signal }: JobSync): Promise<Pod[]> {
  const claimed = await claimObjects<Pod>({
    client: ctx.client,
    ref: podsResource,
    owner: job,
    ownerResource: jobs,
    selector: LabelSelector.ofCached(job.spec.selector ?? {}),
    candidates: candidatesFor(ctx.pods, job),
    ...(tracked && { finalizers: [trackingName] }),
    signal,
  });
  if (!tracked) return claimed;
  return claimed.map((pod) => {
    if (isControlledBy(pod, job) || hasTrackingFinalizer(pod)) return pod;
    const { metadata } = pod;
    return { ...pod, metadata: { ...metadata, finalizers: [...(metadata.finalizers ?? []), trackingName] } };
  });
}

/** Removes the tracking finalizer of a Pod that no Job will count. */
async function reconcileOrphan(ctx: JobContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const pod = ctx.pods.lister.get(key);
  if (pod === undefined || !hasTrackingFinalizer(pod)) return done;
  const job = jobOfPod(ctx, pod);
  if (job !== undefined && !isJobFinished(job)) return done; // adopted in the meantime; the new Job counts the Pod
  try {
    const patch = { type: "strategic", body: removeFinalizerPatch } as const;
    await ctx.client.patch(podsResource, splitKey(key), patch, { readsMetadataOnly: true, signal });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
  return done;
}
