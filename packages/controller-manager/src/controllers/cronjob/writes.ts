import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { hasCause, isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isControlledBy, newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CronJob, Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { ObjectReference } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { cronJobs, jobs } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { finishedConditionOf, isJobFinished } from "../../jobs/job-state.ts";
import type { CronJobSync } from "./context.ts";
import { jobName } from "./plan.ts";

/**
 * Creates the Job of one scheduled time. The name acts as a lock: an existing Job was created by an earlier
 * reconciliation that could not store its status.
 * @returns a reference to the Job; `finished` when it is finished already; undefined when it is not owned by the CronJob
 * or the namespace is terminating
 */
export async function startJob(sync: CronJobSync, time: number): Promise<ObjectReference | "finished" | undefined> {
  const { ctx, cronJob, signal } = sync;
  const { client, recorder } = ctx;
  const job = jobOf(cronJob, time);
  const { namespace, name = "" } = job.metadata;
  let created: Job;
  try {
    created = await client.create<Job>(jobs, job, { namespace, signal });
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return undefined;
    if (!isAlreadyExists(err)) {
      recorder.event(cronJob, "Warning", "FailedCreate", `Error creating job: ${messageOf(err)}`);
      throw err;
    }
    const existing = await client.get<Job>(jobs, { namespace, name }, { signal });
    if (!isControlledBy(existing, cronJob)) return undefined;
    return isJobFinished(existing) ? "finished" : referenceTo(existing);
  }
  const createdAt = parseTime(created.metadata.creationTimestamp ?? "") ?? time;
  ctx.creationSkew.observe((createdAt - time) / 1000);
  recorder.event(cronJob, "Normal", "SuccessfulCreate", `Created job ${name}`);
  return referenceTo(created);
}

function jobOf(cronJob: CronJob, time: number): Job {
  const { metadata = {}, spec } = cronJob.spec.jobTemplate;
  const { namespace } = cronJob.metadata;
  return deepClone({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: jobName(cronJob, time),
      ...(namespace !== undefined && { namespace }),
      ...(metadata.labels && { labels: metadata.labels }),
      ...(metadata.annotations && { annotations: metadata.annotations }),
      ownerReferences: [newControllerRef(cronJob, cronJobs)],
    },
    spec,
  });
}

function referenceTo({ metadata }: Job): ObjectReference {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata;
  return { kind: "Job", namespace, name, uid, apiVersion: "batch/v1", resourceVersion };
}

/**
 * Deletes finished Jobs beyond the history limits, oldest first.
 * @returns uids of the deleted Jobs
 */
export async function deleteSurplusJobs(sync: CronJobSync, children: readonly Job[]): Promise<string[]> {
  const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = sync.cronJob.spec;
  const surplus = [
    ...beyondLimit(successfulJobsHistoryLimit, children, "Complete"),
    ...beyondLimit(failedJobsHistoryLimit, children, "Failed"),
  ];
  const deleted: string[] = [];
  for (const job of surplus) if (await deleteJob(sync, job)) deleted.push(job.metadata.uid ?? "");
  return deleted;
}

function beyondLimit(limit: number | undefined, children: readonly Job[], end: "Complete" | "Failed"): Job[] {
  if (limit == null) return [];
  const ended = children.filter((job) => finishedConditionOf(job)?.type === end && !job.metadata.deletionTimestamp);
  return ended.toSorted(byStart).slice(0, Math.max(0, ended.length - limit));
}

/** Sort order by start time; Jobs that never started come last. */
function byStart(a: Job, b: Job): number {
  const [left, right] = [a, b].map(({ status }) => (status?.startTime ? parseTime(status.startTime) : undefined) ?? Infinity);
  if (left !== right) return left! < right! ? -1 : 1;
  return (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1;
}

/**
 * Deletes the Job in the background; a failure is recorded as an Event.
 * @returns whether the Job is deleted
 */
export async function deleteJob({ ctx, cronJob, signal }: CronJobSync, { metadata }: Job): Promise<boolean> {
  const { client, recorder } = ctx;
  const { namespace, name = "" } = metadata;
  try {
    await client.delete(jobs, { namespace, name }, { propagationPolicy: "Background", signal });
  } catch (err) {
    if (isNotFound(err)) return true; // the cache was stale
    recorder.event(cronJob, "Warning", "FailedDelete", `Deleted job: ${messageOf(err)}`);
    return false;
  }
  recorder.event(cronJob, "Normal", "SuccessfulDelete", `Deleted job ${name}`);
  return true;
}
