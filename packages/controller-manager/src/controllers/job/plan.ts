import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Job, JobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { countIndexes, type Intervals, parseIndexes, withIndexes } from "./completion-indexes.ts";
import {
  backoffLimitExceeded,
  type ConditionWithEvent,
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
import { countFinishedPods } from "./tracking.ts";
import { hasTrackingFinalizer } from "./tracking-finalizer.ts";

/** Input of one reconciliation of a Job. */
export interface JobState {
  readonly job: Job;
  readonly pods: readonly Pod[];
  readonly active: readonly Pod[];
  /** Tracked Jobs only: uids of Pods whose finalizer has been removed although the informer cache still shows it. */
  readonly expectedRemovals: ReadonlySet<string> | undefined;
  /** True when the informer cache shows all Pod creations and deletions of earlier reconciliations. */
  readonly satisfied: boolean;
  readonly now: number;
}

/** Result of `planJob`. */
export interface JobPlan {
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
  readonly failure: ConditionWithEvent | undefined;
  /** Pods to create or delete; undefined when the Job has failed or is being deleted, or when the cache is behind. */
  readonly plan: PodPlan | undefined;
}

/**
 * Pure: computes the counts of a Job, whether it has failed, and the Pods to create or delete.
 * Source: pkg/controller/job/job_controller.go, syncJob
 */
export function planJob({ job, pods, active, expectedRemovals, satisfied, now }: JobState): JobPlan {
  const { metadata, spec, status = {} } = job;
  const counts = countFinishedPods(job, pods, expectedRemovals);
  const completed = isIndexed(job) ? completedIndexes(job, pods, expectedRemovals !== undefined) : undefined;
  const succeeded = completed === undefined ? counts.succeeded : countIndexes(completed.now);
  const failing = counts.failed > (status.failed ?? 0);
  const startTime = status.startTime || (spec.suspend === true ? undefined : formatTime(now));
  // activeDeadlineSeconds counts from the start time, which is reset when the Job is resumed.
  const resuming = spec.suspend !== true && isSuspended(status);
  const remaining = remainingMs(job, resuming ? formatTime(now) : startTime, now);

  const { backoffLimit = defaultBackoffLimit, parallelism = 1 } = spec;
  // With all Pods active, no Pod has failed since: the count is higher because the last status update failed.
  const exceeded = failing && active.length !== parallelism && counts.failed > backoffLimit;
  const late = remaining !== undefined && remaining <= 0;
  const failure = exceeded || tooManyRestarts(job, pods) ? backoffLimitExceeded : late ? deadlineExceeded : undefined;
  const mayAct = failure === undefined && satisfied && !metadata.deletionTimestamp;
  return {
    succeeded,
    failed: counts.failed,
    completed,
    failing,
    startTime,
    remainingMs: remaining,
    failure,
    plan: mayAct ? planPods(job, active, { succeeded, completed: completed?.now ?? [] }) : undefined,
  };
}

/** Outcome of one reconciliation, computed after Pods were created or deleted. */
interface StatusPlan {
  readonly finalCondition: ConditionWithEvent | undefined;
  readonly suspendedCondition: ConditionWithEvent | undefined;
  /** Whether Pods are active although enough have succeeded: the cache shows creations late, or deletions failed. */
  readonly tooManyActive?: boolean;
  /** The stored status with the start time and conditions of this reconciliation. */
  readonly status: JobStatus;
}

/**
 * Pure: decides whether the Job is finished, and which condition to set and record.
 * @param running number of active Pods after this reconciliation's creations and deletions
 */
export function planStatus(state: JobState, jobPlan: JobPlan, running: number): StatusPlan {
  const { job, expectedRemovals, satisfied, now } = state;
  const { failure, plan, startTime, succeeded } = jobPlan;
  const status: JobStatus = { ...job.status, ...(startTime !== undefined && { startTime }) };
  if (failure !== undefined) {
    // Pods that still run, or that the cache does not show yet, may hold finalizers; a finished Job would not remove them.
    const mayEnd = expectedRemovals === undefined || (running === 0 && satisfied);
    return { finalCondition: mayEnd ? failure : undefined, suspendedCondition: undefined, status };
  }
  const { completions, suspend } = job.spec;
  const enough = completions == null ? succeeded > 0 : succeeded >= completions;
  if (enough && running === 0) return { finalCondition: complete, suspendedCondition: undefined, status };
  const tooManyActive = enough && completions != null;
  const unchanged: StatusPlan = { finalCondition: undefined, suspendedCondition: undefined, tooManyActive, status };
  if (plan === undefined) return unchanged;
  const suspendedCondition = suspend === true ? suspended : resumed;
  const changed = withCondition(status, suspendedCondition, now);
  if (changed === status) return unchanged;
  return {
    finalCondition: undefined,
    suspendedCondition,
    tooManyActive,
    status: suspendedCondition === resumed ? { ...changed, startTime: formatTime(now) } : changed,
  };
}

function completedIndexes(job: Job, pods: readonly Pod[], tracked: boolean): { before: Intervals; now: Intervals } {
  const before = tracked ? parseIndexes(job.status?.completedIndexes ?? "", job.spec.completions ?? 0) : [];
  const added = pods
    .filter((pod) => pod.status?.phase === "Succeeded" && hasValidIndex(job, pod) && (!tracked || hasTrackingFinalizer(pod)))
    .map((pod) => completionIndexOf(pod) ?? 0)
    .toSorted((a, b) => a - b);
  return { before, now: withIndexes(before, added) };
}
