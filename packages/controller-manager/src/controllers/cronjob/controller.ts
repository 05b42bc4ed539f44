import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueControllerOwner } from "@coxswain/apimachinery/controller/sources";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { formatTime, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CronJob, CronJobStatus, Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { cronJobs, jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { finishedConditionOf, isJobFinished } from "../../jobs/job-state.ts";
import { type CronJobContext, type CronJobSync, newCronJobContext } from "./context.ts";
import { type PendingEvent, planCronJob, untilNextScheduled } from "./plan.ts";
import { untilNextMs } from "./schedule-times.ts";
import { deleteJob, deleteSurplusJobs, startJob } from "./writes.ts";

/**
 * cronjob-controller: creates a Job at each scheduled time, named after that time.
 * Watches CronJobs (own key) and Jobs (key of the controlling CronJob), and requeues for the next scheduled time; writes
 * Jobs, cronjobs/status and Events on the CronJob.
 * Source: pkg/controller/cronjob/cronjob_controllerv2.go
 */
export function newCronJobController(base: ControllerContext): Controller {
  const ctx = newCronJobContext(base);
  return defineController(ctx, {
    name: "cronjob",
    resource: cronJobs,
    sources: [
      enqueueBy(ctx.cronJobs, ({ enqueue, enqueueAfter }) => ({
        added: (cronJob) => enqueue(keyOf(cronJob)),
        updated(old, cronJob) {
          if (old.spec.schedule === cronJob.spec.schedule) return enqueue(keyOf(cronJob));
          // The schedule changed: wait for its next time; times missed by the old schedule no longer count.
          const delayMs = untilNextAfterChange(ctx, cronJob);
          if (delayMs !== undefined) enqueueAfter(keyOf(cronJob), delayMs);
        },
      })),
      enqueueControllerOwner(ctx.jobs, "CronJob"),
    ],
    reconcile,
    workers,
  });
}

/** Not configurable by a flag. Source: pkg/controller/cronjob/config/v1alpha1/defaults.go ConcurrentCronJobSyncs */
const workers = 5;

function untilNextAfterChange({ clock, recorder }: ControllerContext, cronJob: CronJob): number | undefined {
  try {
    return untilNextScheduled(cronJob, clock.now());
  } catch {
    const message = `unparseable schedule for cronjob: ${cronJob.spec.schedule}`;
    recorder.event(cronJob, "Warning", "UnParseableCronJobSchedule", message);
    return undefined;
  }
}

type Reference = NonNullable<CronJobStatus["active"]>[number];

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
async function reconcile(ctx: CronJobContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const cached = ctx.cronJobs.lister.get(key);
  if (cached === undefined) return done;
  const children = ctx.jobs.lister.controlledBy(cached);
  const cronJob = deepClone(await refreshIfStale(ctx, cached, children, signal));
  const sync: CronJobSync = { ctx, cronJob, status: { ...cronJob.status }, signal };
  const pendingEvents: PendingEvent[] = [];
  try {
    recordFinishedJobs(sync, children, pendingEvents);
    await removeMissingJobs(sync, children, pendingEvents);
    return await applyPlan(sync, children);
  } finally {
    // Also after a failure: actions that succeeded must be recorded.
    await storeStatus(sync, pendingEvents);
  }
}

/**
 * Returns the cached CronJob, or reads it from the API server when an active child Job is missing in its status: the
 * cached CronJob may be older than the Job.
 */
async function refreshIfStale(
  ctx: CronJobContext,
  cached: CronJob,
  children: readonly Job[],
  signal: AbortSignal,
): Promise<CronJob> {
  const isKnown = (status: CronJobStatus | undefined): ((job: Job) => boolean) => {
    const listed = listedIn(status);
    return (job) => isJobFinished(job) || listed.has(job.metadata.uid);
  };
  if (children.every(isKnown(cached.status))) return cached;
  const { namespace, name = "" } = cached.metadata;
  const fresh = await ctx.client.get<CronJob>(cronJobs, { namespace, name }, { signal });
  const isKnownNow = isKnown(fresh.status);
  for (const job of children) {
    if (isKnownNow(job)) continue;
    const message = `Saw a job that the controller did not create or forgot: ${job.metadata.name}`;
    ctx.recorder.event(cached, "Warning", "UnexpectedJob", message);
  }
  return fresh;
}

/** Removes finished Jobs from `status.active` and updates lastSuccessfulTime. */
function recordFinishedJobs({ status }: CronJobSync, children: readonly Job[], pendingEvents: PendingEvent[]): void {
  const listed = listedIn(status);
  const ended = new Set<string | undefined>();
  for (const job of children) {
    const end = finishedConditionOf(job);
    if (end === undefined) continue;
    if (listed.has(job.metadata.uid)) {
      ended.add(job.metadata.uid);
      pendingEvents.push(["Normal", "SawCompletedJob", `Saw completed job: ${job.metadata.name}, status: ${end.type}`]);
    }
    const completed = job.status?.completionTime;
    if (completed && isAfter(completed, status.lastSuccessfulTime)) status.lastSuccessfulTime = completed;
  }
  removeActive(status, ended);
}

/** Removes deleted Jobs from `status.active`, after confirming with the API server that they do not exist. */
async function removeMissingJobs(
  { ctx, status, signal }: CronJobSync,
  children: readonly Job[],
  pendingEvents: PendingEvent[],
): Promise<void> {
  const known = new Set(children.map(({ metadata }) => metadata.uid));
  const missing = new Set<string | undefined>();
  try {
    for (const { uid, namespace, name = "" } of status.active ?? []) {
      if (known.has(uid)) continue;
      try {
        await ctx.client.get<Job>(jobs, { namespace, name }, { signal });
      } catch (err) {
        if (!isNotFound(err)) throw err;
        missing.add(uid);
        pendingEvents.push(["Normal", "MissingJob", `Active job went missing: ${name}`]);
      }
    }
  } finally {
    removeActive(status, missing);
  }
}

async function applyPlan(sync: CronJobSync, children: readonly Job[]): Promise<Result> {
  const { ctx, cronJob, status } = sync;
  const { clock, recorder } = ctx;
  const { start, schedule, events } = planCronJob({ ...cronJob, status }, clock.now());
  for (const event of events) recorder.event(cronJob, ...event);
  if (start !== undefined) {
    if (cronJob.spec.concurrencyPolicy === "Replace") await deleteActive(sync);
    const reference = await startJob(sync, start);
    if (reference !== undefined) {
      if (reference !== "finished") status.active = [...(status.active ?? []), reference];
      status.lastScheduleTime = formatTime(start);
    }
  }
  removeActive(status, new Set(await deleteSurplusJobs(sync, children)));
  const delayMs = schedule && untilNextMs({ ...cronJob, status }, schedule, clock.now());
  const [, reason, message] = events.at(-1) ?? [];
  const decision: Outcome | undefined =
    cronJob.spec.suspend === true
      ? { verdict: "waiting", reason: "Suspended", description: "is suspended: no jobs are started" }
      : reason === undefined
        ? undefined
        : { verdict: "refused", reason, description: message ?? "" };
  return delayMs === undefined ? { ...done, decision } : { requeueAfterMs: delayMs, decision };
}

async function deleteActive(sync: CronJobSync): Promise<void> {
  const { ctx, cronJob, status, signal } = sync;
  const replaced = new Set<string | undefined>();
  try {
    for (const { namespace, name = "" } of status.active ?? []) {
      let job: Job;
      try {
        job = await ctx.client.get<Job>(jobs, { namespace, name }, { signal });
      } catch (err) {
        ctx.recorder.event(cronJob, "Warning", "FailedGet", `Get job: ${messageOf(err)}`);
        throw err;
      }
      if (!(await deleteJob(sync, job))) throw new Error(`could not replace job ${namespace}/${name}`);
      replaced.add(job.metadata.uid);
    }
  } finally {
    removeActive(status, replaced);
  }
}

async function storeStatus({ ctx, cronJob, status, signal }: CronJobSync, pendingEvents: readonly PendingEvent[]): Promise<void> {
  const { client, recorder } = ctx;
  const before = cronJob.status ?? {};
  const changed =
    before.lastScheduleTime !== status.lastScheduleTime ||
    before.lastSuccessfulTime !== status.lastSuccessfulTime ||
    (before.active ?? []).length !== (status.active ?? []).length ||
    (before.active ?? []).some(({ uid }, i) => uid !== status.active?.[i]?.uid);
  try {
    if (changed) await client.update<CronJob>(cronJobs, { ...cronJob, status }, { subresource: "status", signal });
  } catch (err) {
    if (!isNotFound(err)) throw err; // deleted in the meantime
  }
  // Recorded after the status is stored: recorded earlier, a conflict would duplicate the Events.
  for (const event of pendingEvents) {
    const turn = ctx.turns.next();
    if (turn !== undefined) await turn;
    recorder.event(cronJob, ...event);
  }
}

/** Uids of the active Jobs. */
function listedIn(status: CronJobStatus | undefined): ReadonlySet<string | undefined> {
  return new Set(status?.active?.map(({ uid }) => uid));
}

/** All at once: a pass for each of 15,000 active Jobs would take seconds. */
function removeActive(status: CronJobStatus, uids: ReadonlySet<string | undefined>): void {
  const rest: Reference[] = (status.active ?? []).filter(({ uid }) => !uids.has(uid));
  if (rest.length > 0) status.active = rest;
  else delete status.active;
}

function isAfter(time: string, than: string | null | undefined): boolean {
  return !than || (parseTime(time) ?? 0) > (parseTime(than) ?? 0);
}
