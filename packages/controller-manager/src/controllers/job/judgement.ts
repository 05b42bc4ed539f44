import { formatTime } from "@coxswain/apimachinery/meta/time";
import type { Job, JobStatus } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { countIndexes, type Intervals, parseIndexes, withIndexes } from "./completion-indexes.ts";
import {
  type Announced,
  backoffLimitExceeded,
  complete,
  deadlineExceeded,
  defaultBackoffLimit,
  isSuspended,
  remainingMs,
  resumed,
  suspended,
  tooManyRestarts,
  withCondition,
} from "./conditions.ts";
import { type PodPlan, planPods } from "./pod-plan.ts";
import { completionIndexOf, hasValidIndex, isIndexed } from "./pods.ts";
import { tallyPods } from "./tracking.ts";
import { isHeld } from "./tracking-finalizer.ts";

/** Input of one reconciliation of a Job. */
export interface Seen {
  readonly job: Job;
  readonly pods: readonly Pod[];
  readonly active: readonly Pod[];
  /** Tracked Jobs only: uids of Pods whose finalizer has been removed although the informer cache still shows it. */
  readonly letGo: ReadonlySet<string> | undefined;
  /** True when the informer cache shows all Pod creations and deletions of earlier reconciliations. */
  readonly satisfied: boolean;
  readonly now: number;
}

/** Result of `judgeJob`. */
export interface Judgement {
  readonly succeeded: number;
  readonly failed: number;
  /** Indexed Jobs only: succeeded indexes as stored in the status, and including those of newly succeeded Pods. */
  readonly completed: { readonly before: Intervals; readonly now: Intervals } | undefined;
  /** True when Pods have failed since the status was last stored. */
  readonly failing: boolean;
  readonly startTime: string | undefined;
  /** Time in ms until the active deadline; undefined without one. */
  readonly remainingMs: number | undefined;
  /** Failure condition, when the Job has failed: its active Pods are deleted. */
  readonly failure: Announced | undefined;
  /** Pods to create or delete; undefined when the Job has failed or is being deleted, or when the cache is behind. */
  readonly plan: PodPlan | undefined;
}

/**
 * Pure: computes the counts of a Job, whether it has failed, and the Pods to create or delete.
 * Source: pkg/controller/job/job_controller.go, syncJob
 */
export function judgeJob({ job, pods, active, letGo, satisfied, now }: Seen): Judgement {
  const { metadata, spec, status = {} } = job;
  const tally = tallyPods(job, pods, letGo);
  const completed = isIndexed(job) ? completedIndexes(job, pods, letGo !== undefined) : undefined;
  const succeeded = completed === undefined ? tally.succeeded : countIndexes(completed.now);
  const failing = tally.failed > (status.failed ?? 0);
  const startTime = status.startTime || (spec.suspend === true ? undefined : formatTime(now));
  // activeDeadlineSeconds counts from the start time, which is reset when the Job is resumed.
  const resuming = spec.suspend !== true && isSuspended(status);
  const remaining = remainingMs(job, resuming ? formatTime(now) : startTime, now);

  const { backoffLimit = defaultBackoffLimit, parallelism = 1 } = spec;
  // With all Pods active, the higher count comes from a status update that failed and not from a new Pod failure.
  const exceeded = failing && active.length !== parallelism && tally.failed > backoffLimit;
  const late = remaining !== undefined && remaining <= 0;
  const failure = exceeded || tooManyRestarts(job, pods) ? backoffLimitExceeded : late ? deadlineExceeded : undefined;
  const mayAct = failure === undefined && satisfied && !metadata.deletionTimestamp;
  return {
    succeeded,
    failed: tally.failed,
    completed,
    failing,
    startTime,
    remainingMs: remaining,
    failure,
    plan: mayAct ? planPods(job, active, { succeeded, completed: completed?.now ?? [] }) : undefined,
  };
}

/** Outcome of one reconciliation, computed after Pods were created or deleted. */
export interface Conclusion {
  readonly ending: Announced | undefined;
  readonly told: Announced | undefined;
  /** The stored status with the start time and conditions of this reconciliation. */
  readonly status: JobStatus;
}

/**
 * Pure: decides whether the Job is finished, and which condition to set and record.
 * @param running number of active Pods after this reconciliation's creations and deletions
 */
export function concludeJob(seen: Seen, judged: Judgement, running: number): Conclusion {
  const { job, letGo, satisfied, now } = seen;
  const { failure, plan, startTime, succeeded } = judged;
  const status: JobStatus = { ...job.status, ...(startTime !== undefined && { startTime }) };
  if (failure !== undefined) {
    // Pods that still run, or that the cache does not show yet, may hold finalizers; a finished Job would not remove them.
    const mayEnd = letGo === undefined || (running === 0 && satisfied);
    return { ending: mayEnd ? failure : undefined, told: undefined, status };
  }
  const { completions, suspend } = job.spec;
  const enough = completions == null ? succeeded > 0 : succeeded >= completions;
  if (enough && running === 0) return { ending: complete, told: undefined, status };
  const unchanged: Conclusion = { ending: undefined, told: undefined, status };
  if (plan === undefined) return unchanged;
  const told = suspend === true ? suspended : resumed;
  const changed = withCondition(status, told, now);
  if (changed === status) return unchanged;
  return { ending: undefined, told, status: told === resumed ? { ...changed, startTime: formatTime(now) } : changed };
}

function completedIndexes(job: Job, pods: readonly Pod[], tracked: boolean): { before: Intervals; now: Intervals } {
  const before = tracked ? parseIndexes(job.status?.completedIndexes ?? "", job.spec.completions ?? 0) : [];
  const added = pods
    .filter((pod) => pod.status?.phase === "Succeeded" && hasValidIndex(job, pod) && (!tracked || isHeld(pod)))
    .map((pod) => completionIndexOf(pod) ?? 0)
    .toSorted((a, b) => a - b);
  return { before, now: withIndexes(before, added) };
}
