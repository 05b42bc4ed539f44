import { isConflict } from "@coxswain/apimachinery/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { Job, JobStatus } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { jobs } from "@coxswain/apimachinery/schema/kinds/resources";
import { formatIndexes } from "./completion-indexes.ts";
import { type Announced, complete, withCondition } from "./conditions.ts";
import type { Sync } from "./context.ts";
import type { Judgement } from "./judgement.ts";
import { completionIndexOf, isIndexed } from "./pods.ts";
import { allCounted, noteEnded, settleCounters } from "./tracking.ts";
import { isHeld } from "./tracking-finalizer.ts";
import { letGoOf } from "./writes.ts";

/** Counts and conditions of one reconciliation. */
export interface Counters {
  /** Number of active Pods after the creations and deletions of this reconciliation. */
  readonly running: number;
  /** Number of ready Pods; undefined when the feature gate JobReadyPods is off. */
  readonly ready: number | undefined;
  readonly succeeded: number;
  readonly failed: number;
  readonly completed: Judgement["completed"];
  /** Final condition, when the Job is finished. */
  readonly ending: Announced | undefined;
  /** Condition that is part of the status; its Event is recorded after the status is stored. */
  readonly told: Announced | undefined;
}

/**
 * Counts Pods that have the tracking finalizer, in an order that survives a crash at any point: first stores the status with
 * their uids, then removes the finalizers, then stores the updated counters (and the final condition, once all Pods
 * are counted).
 * @param status the stored status with the start time and conditions of this reconciliation
 * @returns whether the Job is finished
 */
export async function storeTracked(
  sync: Sync,
  status: JobStatus,
  pods: readonly Pod[],
  { letGo, running, ready, completed, ending, told }: Counters & { letGo: ReadonlySet<string> },
): Promise<boolean> {
  const { job } = sync;
  const ordered = isIndexed(job) ? pods.toSorted((a, b) => (completionIndexOf(a) ?? -1) - (completionIndexOf(b) ?? -1)) : pods;
  const current = withCounts({ uncountedTerminatedPods: {}, ...status }, { active: running, ready });
  const noted = noteEnded(job, current, ordered, { letGo, completed: completed?.before ?? [], finishing: ending !== undefined });
  const write = newStatusWriter(sync);

  // A new start time alone does not cause a write; it is stored together with the first Pods.
  const changed = noted.status !== current || told !== undefined || !sameCounts(job.status, running, ready);
  let stored = changed ? await write(noted.status) : noted.status;
  if (told !== undefined) sync.ctx.recorder.event(job, ...told.event);

  const released = noted.release.length > 0 ? await letGoOf(sync, noted.release) : { uids: new Set<string>() };
  const settled = settleCounters(stored, noted.held.difference(released.uids));
  if (released.error !== undefined) {
    if (settled !== stored) await write(settled);
    throw released.error;
  }
  const finished = ending !== undefined && allCounted(settled);
  if (!finished && settled === stored) return false;
  stored = await write(finished ? ended(sync, settled, ending) : settled);
  if (finished) tellEnd(sync, stored, ending);
  return finished;
}

/**
 * Status update of Jobs without finalizer tracking: counts the existing Pods.
 * @returns whether the Job is finished
 */
export async function storeCounted(
  sync: Sync,
  status: JobStatus,
  pods: readonly Pod[],
  { running, ready, succeeded, failed, completed, ending, told }: Counters,
): Promise<boolean> {
  const { job } = sync;
  const { error } = await letGoOf(sync, pods.filter(isHeld)); // left over from the time when the Job was tracked
  if (error !== undefined) throw error;
  const { uncountedTerminatedPods: _, ...rest } = status;
  const { succeeded: before = 0, failed: failedBefore = 0 } = job.status ?? {};
  const same = sameCounts(job.status, running, ready) && before === succeeded && failedBefore === failed;
  if (same && told === undefined && ending === undefined) return false;
  const counted: JobStatus = {
    ...withCounts(rest, { active: running, ready, succeeded, failed }),
    ...(completed && { completedIndexes: formatIndexes(completed.now) }),
  };
  const stored = await newStatusWriter(sync)(ending === undefined ? counted : ended(sync, counted, ending));
  if (told !== undefined) sync.ctx.recorder.event(job, ...told.event);
  if (ending !== undefined) tellEnd(sync, stored, ending);
  return ending !== undefined;
}

function ended({ ctx }: Sync, status: JobStatus, ending: Announced): JobStatus {
  const next = withCondition(status, ending, ctx.clock.now());
  const time = next.conditions?.at(-1)?.lastTransitionTime;
  return ending === complete && time ? { ...next, completionTime: time } : next;
}

/** Called after the status is stored: recorded earlier, a conflict would duplicate the Events. */
function tellEnd({ ctx, job }: Sync, status: JobStatus, ending: Announced): void {
  const { recorder } = ctx;
  const { completions, completionMode = "NonIndexed" } = job.spec;
  if (ending === complete && completions != null && (status.succeeded ?? 0) > completions) {
    const message = "Too many succeeded pods running after completion count reached";
    recorder.event(job, "Warning", "TooManySucceededPods", message);
  }
  recorder.event(job, ...ending.event);
  ctx.metrics.finished(completionMode, ending === complete ? "succeeded" : "failed");
}

/** Returns a function that writes the status repeatedly, each time based on the object returned by the previous write. */
function newStatusWriter({ ctx, key, job, tracked, signal }: Sync): (status: JobStatus) => Promise<JobStatus> {
  const { completionMode = "NonIndexed" } = job.spec;
  let last: Job = job;
  return async (status) => {
    const { succeeded = 0, failed = 0 } = last.status ?? {};
    try {
      last = await ctx.client.update<Job>(jobs, { ...last, status }, { subresource: "status", signal });
    } catch (err) {
      if (!isConflict(err)) ctx.unsure.add(key);
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
  for (const [name, count] of Object.entries(counts) as [keyof typeof counts, number][]) {
    if (count === 0) delete next[name];
    else next[name] = count;
  }
  if (ready === undefined) delete next.ready;
  else next.ready = ready;
  return next;
}

function sameCounts(stored: JobStatus | undefined, running: number, ready: number | undefined): boolean {
  return semanticEqual([stored?.active ?? 0, stored?.ready ?? -1], [running, ready ?? -1]);
}
