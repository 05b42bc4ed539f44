import { isConflict } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Job, JobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { formatIndexes } from "./completion-indexes.ts";
import { type ConditionWithEvent, complete, withCondition } from "./conditions.ts";
import type { JobSync } from "./context.ts";
import type { JobPlan } from "./plan.ts";
import { completionIndexOf, isIndexed } from "./pods.ts";
import { allCounted, moveToCounters, recordFinishedPods } from "./tracking.ts";
import { hasTrackingFinalizer } from "./tracking-finalizer.ts";
import { removeFinalizers } from "./writes.ts";

/** Counts and conditions of one reconciliation. */
export interface Counters {
  /** Number of active Pods after the creations and deletions of this reconciliation. */
  readonly running: number;
  /** Number of ready Pods; undefined when the feature gate JobReadyPods is off. */
  readonly ready: number | undefined;
  readonly succeeded: number;
  readonly failed: number;
  readonly completed: JobPlan["completed"];
  /** Final condition, when the Job is finished. */
  readonly finalCondition: ConditionWithEvent | undefined;
  /** Condition that is part of the status; its Event is recorded after the status is stored. */
  readonly suspendedCondition: ConditionWithEvent | undefined;
}

/**
 * Counts Pods that have the tracking finalizer, in an order that survives a crash at any point: first stores the status with
 * their uids, then removes the finalizers, then stores the updated counters (and the final condition, once all Pods
 * are counted).
 * @param status the stored status with the start time and conditions of this reconciliation
 * @returns whether the Job is finished
 */
export async function storeTracked(
  sync: JobSync,
  status: JobStatus,
  pods: readonly Pod[],
  {
    expectedRemovals,
    running,
    ready,
    completed,
    finalCondition,
    suspendedCondition,
  }: Counters & { expectedRemovals: ReadonlySet<string> },
): Promise<boolean> {
  const { job } = sync;
  const ordered = isIndexed(job) ? pods.toSorted((a, b) => (completionIndexOf(a) ?? -1) - (completionIndexOf(b) ?? -1)) : pods;
  const current = withCounts({ uncountedTerminatedPods: {}, ...status }, { active: running, ready });
  const recorded = recordFinishedPods(job, current, ordered, {
    expectedRemovals,
    completed: completed?.before ?? [],
    finishing: finalCondition !== undefined,
  });
  const write = newStatusWriter(sync);

  // A new start time alone does not cause a write; it is stored together with the first Pods.
  const changed = recorded.status !== current || suspendedCondition !== undefined || !sameCounts(job.status, running, ready);
  let stored = changed ? await write(recorded.status) : recorded.status;
  if (suspendedCondition !== undefined) sync.ctx.recorder.event(job, ...suspendedCondition.event);

  const released = recorded.release.length > 0 ? await removeFinalizers(sync, recorded.release) : { uids: new Set<string>() };
  const counted = moveToCounters(stored, recorded.withFinalizer.difference(released.uids));
  if (released.error !== undefined) {
    if (counted !== stored) await write(counted);
    throw released.error;
  }
  const finished = finalCondition !== undefined && allCounted(counted);
  if (!finished && counted === stored) return false;
  stored = await write(finished ? withFinalCondition(sync, counted, finalCondition) : counted);
  if (finished) recordFinished(sync, stored, finalCondition);
  return finished;
}

/**
 * Status update of Jobs without finalizer tracking: counts the existing Pods.
 * @returns whether the Job is finished
 */
export async function storeCounted(
  sync: JobSync,
  status: JobStatus,
  pods: readonly Pod[],
  { running, ready, succeeded, failed, completed, finalCondition, suspendedCondition }: Counters,
): Promise<boolean> {
  const { job } = sync;
  const { error } = await removeFinalizers(sync, pods.filter(hasTrackingFinalizer)); // left over from the time when the Job was tracked
  if (error !== undefined) throw error;
  const { uncountedTerminatedPods: _, ...rest } = status;
  const { succeeded: before = 0, failed: failedBefore = 0 } = job.status ?? {};
  const same = sameCounts(job.status, running, ready) && before === succeeded && failedBefore === failed;
  if (same && suspendedCondition === undefined && finalCondition === undefined) return false;
  const counted: JobStatus = {
    ...withCounts(rest, { active: running, ready, succeeded, failed }),
    ...(completed && { completedIndexes: formatIndexes(completed.now) }),
  };
  const stored = await newStatusWriter(sync)(
    finalCondition === undefined ? counted : withFinalCondition(sync, counted, finalCondition),
  );
  if (suspendedCondition !== undefined) sync.ctx.recorder.event(job, ...suspendedCondition.event);
  if (finalCondition !== undefined) recordFinished(sync, stored, finalCondition);
  return finalCondition !== undefined;
}

function withFinalCondition({ ctx }: JobSync, status: JobStatus, finalCondition: ConditionWithEvent): JobStatus {
  const next = withCondition(status, finalCondition, ctx.clock.now());
  const time = next.conditions?.at(-1)?.lastTransitionTime;
  return finalCondition === complete && time ? { ...next, completionTime: time } : next;
}

/** Called after the status is stored: recorded earlier, a conflict would duplicate the Events. */
function recordFinished({ ctx, job }: JobSync, status: JobStatus, finalCondition: ConditionWithEvent): void {
  const { recorder } = ctx;
  const { completions, completionMode = "NonIndexed" } = job.spec;
  if (finalCondition === complete && completions != null && (status.succeeded ?? 0) > completions) {
    const message = "Too many succeeded pods running after completion count reached";
    recorder.event(job, "Warning", "TooManySucceededPods", message);
  }
  recorder.event(job, ...finalCondition.event);
  ctx.metrics.finished(completionMode, finalCondition === complete ? "succeeded" : "failed");
}

/** Returns a function that writes the status repeatedly, each time based on the object returned by the previous write. */
function newStatusWriter({ ctx, key, job, tracked, signal }: JobSync): (status: JobStatus) => Promise<JobStatus> {
  const { completionMode = "NonIndexed" } = job.spec;
  let last: Job = job;
  return async (status) => {
    const { succeeded = 0, failed = 0 } = last.status ?? {};
    try {
      last = await ctx.client.update<Job>(jobs, { ...last, status }, { subresource: "status", signal });
    } catch (err) {
      if (!isConflict(err)) ctx.uncertainWrites.add(key);
      throw err;
    }
    ctx.newest.written(last);
    if (tracked) {
      ctx.metrics.podsFinished(completionMode, "succeeded", (status.succeeded ?? 0) - succeeded);
      ctx.metrics.podsFinished(completionMode, "failed", (status.failed ?? 0) - failed);
    }
    return status;
  };
}

/** Sets the counts; zero counts are omitted as in the API's serialization, except `ready`. */
function withCounts(
  status: JobStatus,
  { ready, ...counts }: { active: number; ready: number | undefined; succeeded?: number; failed?: number },
): JobStatus {
  const next: JobStatus = { ...status };
  for (const [name, count] of entriesOf(counts)) {
    if (!count) delete next[name];
    else next[name] = count;
  }
  if (ready === undefined) delete next.ready;
  else next.ready = ready;
  return next;
}

function sameCounts(stored: JobStatus | undefined, running: number, ready: number | undefined): boolean {
  return semanticEqual([stored?.active ?? 0, stored?.ready ?? -1], [running, ready ?? -1]);
}
