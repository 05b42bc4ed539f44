import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import { formatTime, parseTime } from "@coxswain/apimachinery/meta/time";
import type { HistogramChild } from "@coxswain/apimachinery/metrics/registry";
import type { CronJob, CronJobStatus, Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import { cronJobs, jobs } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { finishedConditionOf, isJobFinished } from "../../jobs/job-state.ts";
import { decide, type Told } from "./decide.ts";
import { untilNextMs } from "./due.ts";
import { deleteJob, deleteSurplusJobs, startJob } from "./job-writes.ts";

export interface CronJobRoom {
  readonly ctx: ControllerContext;
  readonly cronJobs: SharedInformer<CronJob>;
  readonly jobs: SharedInformer<Job>;
  readonly creationSkew: HistogramChild;
}

/** One look at one CronJob. */
export interface Look {
  readonly room: CronJobRoom;
  /** Our own copy. */
  readonly cronJob: CronJob;
  /** Changed as the look goes on, and stored at its end. */
  readonly status: CronJobStatus;
  readonly signal: AbortSignal;
}

type Reference = NonNullable<CronJobStatus["active"]>[number];

/** Level-based: looks at what is, never at which event woke it. A throw is retried with backoff. */
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
    // Also when something failed: what was done must not be forgotten.
    await storeStatus(look, told);
  }
}

/** A Job that the status does not know: the cached CronJob may be older than the Job, so the server is asked. */
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

/** Jobs that have ended leave the list; the last success is noted. */
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

/** Jobs on the list that are gone leave it; our cache alone is no proof. */
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
    if (!isNotFound(err)) throw err; // deleted meanwhile
  }
  // Told once it is stored: a conflict would have it told twice.
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
