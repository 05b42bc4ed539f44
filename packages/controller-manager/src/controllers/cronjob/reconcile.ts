import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import { formatTime, parseTime } from "@coxswain/apimachinery/meta/time";
import type { CronJob, CronJobStatus, Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import { cronJobs, jobs } from "@coxswain/apimachinery/schema/kinds/resources";
import { finishedConditionOf, isJobFinished } from "../../jobs/job-state.ts";
import { decide, type Told } from "./decide.ts";
import { untilNextMs } from "./due.ts";
import { deleteJob, deleteSurplusJobs, startJob } from "./job-writes.ts";
import type { CronJobRoom, Look } from "./look.ts";

type Reference = NonNullable<CronJobStatus["active"]>[number];

/** Level-based: acts on the cached state, not on the event that enqueued the key. A rejection is retried with backoff. */
export async function reconcileCronJob(room: CronJobRoom, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const cached = room.cronJobs.lister.get(key);
  if (cached === undefined) return done;
  const children = room.jobs.lister.controlledBy(cached);
  const cronJob = deepClone(await knowingItsJobs(room, cached, children, signal));
  const look: Look = { room, cronJob, status: { ...cronJob.status }, signal };
  const told: Told[] = [];
  try {
    noteChildren(look, children, told);
    await noteMissing(look, children, told);
    return await act(look, children);
  } finally {
    // Also after a failure: actions that succeeded must be recorded.
    await storeStatus(look, told);
  }
}

/**
 * Returns the cached CronJob, or reads it from the API server when an active child Job is missing in its status: the
 * cached CronJob may be older than the Job.
 */
async function knowingItsJobs(
  { ctx }: CronJobRoom,
  cached: CronJob,
  children: readonly Job[],
  signal: AbortSignal,
): Promise<CronJob> {
  if (children.every((job) => isJobFinished(job) || isListed(cached.status, job))) return cached;
  const { namespace, name = "" } = cached.metadata;
  const fresh = await ctx.client.get<CronJob>(cronJobs, { namespace, name }, { signal });
  for (const job of children) {
    if (isJobFinished(job) || isListed(fresh.status, job)) continue;
    const message = `Saw a job that the controller did not create or forgot: ${job.metadata.name}`;
    ctx.recorder.event(cached, "Warning", "UnexpectedJob", message);
  }
  return fresh;
}

/** Removes finished Jobs from `status.active` and updates lastSuccessfulTime. */
function noteChildren({ status }: Look, children: readonly Job[], told: Told[]): void {
  for (const job of children) {
    const end = finishedConditionOf(job);
    if (end === undefined) continue;
    if (isListed(status, job)) {
      removeActive(status, job.metadata.uid);
      told.push(["Normal", "SawCompletedJob", `Saw completed job: ${job.metadata.name}, status: ${end.type}`]);
    }
    const completed = job.status?.completionTime;
    if (completed && isLater(completed, status.lastSuccessfulTime)) status.lastSuccessfulTime = completed;
  }
}

/** Removes deleted Jobs from `status.active`, after confirming with the API server that they do not exist. */
async function noteMissing({ room, status, signal }: Look, children: readonly Job[], told: Told[]): Promise<void> {
  const known = new Set(children.map(({ metadata }) => metadata.uid));
  for (const { uid, namespace, name = "" } of [...(status.active ?? [])]) {
    if (known.has(uid)) continue;
    try {
      await room.ctx.client.get<Job>(jobs, { namespace, name }, { signal });
    } catch (err) {
      if (!isNotFound(err)) throw err;
      removeActive(status, uid);
      told.push(["Normal", "MissingJob", `Active job went missing: ${name}`]);
    }
  }
}

async function act(look: Look, children: readonly Job[]): Promise<Result> {
  const { room, cronJob, status } = look;
  const { clock, recorder } = room.ctx;
  const { start, schedule, events } = decide({ ...cronJob, status }, clock.now());
  for (const event of events) recorder.event(cronJob, ...event);
  if (start !== undefined) {
    if (cronJob.spec.concurrencyPolicy === "Replace") await deleteActive(look);
    const reference = await startJob(look, start);
    if (reference !== undefined) {
      if (reference !== "over") status.active = [...(status.active ?? []), reference];
      status.lastScheduleTime = formatTime(start);
    }
  }
  for (const uid of await deleteSurplusJobs(look, children)) removeActive(status, uid);
  const delayMs = schedule && untilNextMs({ ...cronJob, status }, schedule, clock.now());
  return delayMs === undefined ? done : { requeueAfterMs: delayMs };
}

async function deleteActive(look: Look): Promise<void> {
  const { room, cronJob, status, signal } = look;
  for (const { namespace, name = "" } of [...(status.active ?? [])]) {
    let job: Job;
    try {
      job = await room.ctx.client.get<Job>(jobs, { namespace, name }, { signal });
    } catch (err) {
      room.ctx.recorder.event(cronJob, "Warning", "FailedGet", `Get job: ${messageOf(err)}`);
      throw err;
    }
    if (!(await deleteJob(look, job))) throw new Error(`could not replace job ${namespace}/${name}`);
    removeActive(status, job.metadata.uid);
  }
}

async function storeStatus({ room, cronJob, status, signal }: Look, told: readonly Told[]): Promise<void> {
  const { client, recorder } = room.ctx;
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
  for (const event of told) recorder.event(cronJob, ...event);
}

function isListed(status: CronJobStatus | undefined, { metadata }: Job): boolean {
  return status?.active?.some(({ uid }) => uid === metadata.uid) === true;
}

function removeActive(status: CronJobStatus, uid: string | undefined): void {
  const rest: Reference[] = (status.active ?? []).filter((reference) => reference.uid !== uid);
  if (rest.length > 0) status.active = rest;
  else delete status.active;
}

function isLater(time: string, than: string | null | undefined): boolean {
  return !than || (parseTime(time) ?? 0) > (parseTime(than) ?? 0);
}
