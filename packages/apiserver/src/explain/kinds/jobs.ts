/** Jobs and CronJobs. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { CronJob, Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import {
  conditionOf,
  firstTimeOfEvent,
  isOlder,
  latestEvent,
  oneLine,
  plural,
  type Rule,
  rulesFor,
  sinceTime,
  timeOfEvent,
} from "../rule.ts";
import { failedCreate, type OwnedPods, podsOf } from "./workloads.ts";

const job = "job-controller";

const jobRules: Rule<Job, OwnedPods>[] = [
  ({ object: { status, spec }, related: { unready } }) => {
    const failed = conditionOf(status?.conditions, "Failed");
    if (failed?.status !== "True") return undefined;
    const limit = failed.reason === "BackoffLimitExceeded" ? ` (backoffLimit ${spec.backoffLimit ?? 6})` : "";
    const deadline = failed.reason === "DeadlineExceeded" ? ` (activeDeadlineSeconds ${spec.activeDeadlineSeconds})` : "";
    return {
      by: job,
      reason: failed.reason ?? "JobFailed",
      summary: `has failed${limit}${deadline}: ${oneLine(failed.message)}`,
      remedy: "Fix the cause of the pods' failures, then create the job again.",
      // Only for a deadline: after it the controller itself has terminated the pods, so that their state is not the cause.
      ...(deadline === "" && { follow: unready }),
      ...sinceTime(failed.lastTransitionTime),
    };
  },
  ({ object: { spec, status, metadata } }) => {
    if (spec.suspend !== true) return undefined;
    return {
      by: job,
      reason: "JobSuspended",
      summary: "is suspended",
      remedy: `kubectl patch job ${metadata.name} -n ${metadata.namespace} -p '{"spec":{"suspend":false}}'`,
      ...sinceTime(conditionOf(status?.conditions, "Suspended")?.lastTransitionTime),
    };
  },
  (facts) => {
    const { status, spec, metadata } = facts.object;
    if (conditionOf(status?.conditions, "Complete")?.status === "True") return undefined;
    const { unready, pods } = facts.related;
    if (pods !== undefined && pods.length === 0) {
      const refused = failedCreate(facts, job);
      if (refused !== undefined) return refused;
      if (spec.parallelism === 0) {
        return {
          by: job,
          reason: "NoParallelism",
          summary: "runs no pods: its parallelism is 0",
          remedy: "Raise spec.parallelism.",
        };
      }
      if (isOlder(metadata.creationTimestamp, 15_000, facts.now) && status?.startTime === undefined) {
        return {
          by: "explain",
          reason: "ControllerAway",
          summary: "the job controller has not processed it",
          remedy: "Look at the log of kube-controller-manager and at the lease kube-system/kube-controller-manager.",
          ...sinceTime(metadata.creationTimestamp),
        };
      }
      return undefined;
    }
    return {
      by: job,
      reason: "PodsNotReady",
      summary: `${status?.succeeded ?? 0} of ${spec.completions ?? 1} done, ${plural(status?.failed ?? 0, "pod")} failed, ${status?.active ?? 0} active`,
      follow: unready,
      onlyIfFollowed: true,
      ...sinceTime(status?.startTime),
    };
  },
];

export const jobKind = rulesFor<Job, OwnedPods>({
  gather: (object, reader) => podsOf(object, object.spec.selector, reader),
  rules: jobRules,
});

interface CronJobFacts {
  /** The jobs of the CronJob, the newest first. */
  readonly jobs: readonly { readonly object: Job; readonly ref: ObjectRef }[];
}

const cronJob = "cronjob-controller";

const cronJobRules: Rule<CronJob, CronJobFacts>[] = [
  ({ object: { spec, metadata } }) => {
    if (spec.suspend !== true) return undefined;
    return {
      by: cronJob,
      reason: "CronJobSuspended",
      summary: "is suspended: it creates no jobs",
      remedy: `kubectl patch cronjob ${metadata.name} -n ${metadata.namespace} -p '{"spec":{"suspend":false}}'`,
    };
  },
  ({ object: { spec }, events }) => {
    const event = latestEvent(events, ["UnparseableCronJobSchedule", "InvalidSchedule", "UnparseableSchedule"]);
    if (event === undefined) return undefined;
    return {
      by: cronJob,
      reason: "InvalidSchedule",
      summary: `its schedule ${JSON.stringify(spec.schedule)} cannot be read: ${oneLine(event.message)}`,
      remedy: "Correct spec.schedule.",
      ...sinceTime(firstTimeOfEvent(event)),
    };
  },
  ({ object: { spec, status, metadata }, events, related: { jobs } }) => {
    const event = latestEvent(events, ["JobAlreadyActive", "MissSchedule", "TooManyMissedTimes", "FailedNeedsStart"]);
    const active = jobs.filter(({ object }) => status?.active?.some(({ uid }) => uid === object.metadata.uid));
    const since = event && sinceTime(firstTimeOfEvent(event));
    // A job that was started later, or has succeeded since, shows that the schedule is kept again.
    const { lastScheduleTime, lastSuccessfulTime } = status ?? {};
    const time = (event && timeOfEvent(event)) ?? "";
    if (event === undefined || time < (lastSuccessfulTime ?? "") || time < (lastScheduleTime ?? "")) return undefined;
    if (event.reason === "JobAlreadyActive" && active.length > 0) {
      return {
        by: cronJob,
        reason: "JobAlreadyActive",
        summary: `starts no job while ${active.map(({ ref }) => ref.name).join(", ")} is still active (concurrencyPolicy ${spec.concurrencyPolicy})`,
        remedy: "Let the active job end or delete it; concurrencyPolicy Replace or Allow does not wait for it.",
        follow: active.map(({ ref }) => ref),
        ...since,
      };
    }
    if (event.reason === "JobAlreadyActive") return undefined;
    return {
      by: cronJob,
      reason: event.reason ?? "MissSchedule",
      summary: `a start was missed: ${oneLine(event.message)}`,
      remedy: `Raise startingDeadlineSeconds (${spec.startingDeadlineSeconds ?? "none"}) of ${metadata.name}, and check whether kube-controller-manager was down.`,
      ...since,
    };
  },
  ({ object: { status }, events }) => {
    const event = latestEvent(events, ["FailedCreate"]);
    if (event === undefined || (timeOfEvent(event) ?? "") < (status?.lastScheduleTime ?? "")) return undefined;
    return {
      by: cronJob,
      reason: "FailedCreate",
      summary: `jobs cannot be created: ${oneLine(event.message)}`,
      ...sinceTime(firstTimeOfEvent(event)),
    };
  },
  ({ related: { jobs } }) => {
    const [newest] = jobs;
    if (newest === undefined) return undefined;
    return {
      by: cronJob,
      reason: "LastJobFailed",
      summary: `its last job ${newest.ref.name} is not healthy`,
      follow: [newest.ref],
      onlyIfFollowed: true,
      ...sinceTime(newest.object.metadata.creationTimestamp),
    };
  },
];

export const cronJobKind = rulesFor<CronJob, CronJobFacts>({
  async gather(object, reader) {
    const all = (await reader.list<Job>("jobs", "batch", object.metadata.namespace ?? "")) ?? [];
    const own = all.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === object.metadata.uid));
    const sorted = own.toSorted((a, b) => ((a.metadata.creationTimestamp ?? "") < (b.metadata.creationTimestamp ?? "") ? 1 : -1));
    return { jobs: sorted.map((one) => ({ object: one, ref: reader.refOf(one, "jobs", "batch") })) };
  },
  rules: cronJobRules,
});
