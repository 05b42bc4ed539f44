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
import { type PodPlan, planPods } from "./plan.ts";
import { completionIndexOf, hasValidIndex, isIndexed } from "./pods.ts";
import { tallyPods } from "./tracking.ts";
import { isHeld } from "./tracking-finalizer.ts";

/** What a look at a Job begins with. */
export interface Seen {
  readonly job: Job;
  readonly pods: readonly Pod[];
  readonly active: readonly Pod[];
  /** Of a tracked Job: uids of Pods whose finalizer was removed though the cache does not show it. */
  readonly letGo: ReadonlySet<string> | undefined;
  /** The cache shows all Pods that were created and deleted for the Job. */
  readonly satisfied: boolean;
  readonly now: number;
}

export interface Judgement {
  readonly succeeded: number;
  readonly failed: number;
  /** Of an indexed Job: the indexes that succeeded, as the status has them and as they are. */
  readonly completed: { readonly before: Intervals; readonly now: Intervals } | undefined;
  /** Pods failed since the last look. */
  readonly failing: boolean;
  readonly startTime: string | undefined;
  /** How long it may go on; undefined without limit. */
  readonly remainingMs: number | undefined;
  /** How it failed: whatever runs of it has to end. */
  readonly failure: Announced | undefined;
  /** What has to change; undefined when it failed, is being deleted, or the cache is behind. */
  readonly plan: PodPlan | undefined;
}

/** Pure: what a Job has come to, and what is to be done. Source: pkg/controller/job/job_controller.go, syncJob */
export function judgeJob({ job, pods, active, letGo, satisfied, now }: Seen): Judgement {
  const { metadata, spec, status = {} } = job;
  const tally = tallyPods(job, pods, letGo);
  const completed = isIndexed(job) ? completedIndexes(job, pods, letGo !== undefined) : undefined;
  const succeeded = completed === undefined ? tally.succeeded : countIndexes(completed.now);
  const failing = tally.failed > (status.failed ?? 0);
  const startTime = status.startTime || (spec.suspend === true ? undefined : formatTime(now));
  // activeDeadlineSeconds is about the time in which the Job runs: resumed, it begins anew.
  const resuming = spec.suspend !== true && isSuspended(status);
  const remaining = remainingMs(job, resuming ? formatTime(now) : startTime, now);

  const { backoffLimit = defaultBackoffLimit, parallelism = 1 } = spec;
  // With all Pods running it was the last status that could not be stored; nothing failed since.
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

/** How the Job ends, or what changed about it and is to be told; after what was to be done is done. */
export interface Conclusion {
  readonly ending: Announced | undefined;
  readonly told: Announced | undefined;
  /** The stored one with this look's start time and conditions. */
  readonly status: JobStatus;
}

/** @param running active Pods that are left */
export function concludeJob(seen: Seen, judged: Judgement, running: number): Conclusion {
  const { job, letGo, satisfied, now } = seen;
  const { failure, plan, startTime, succeeded } = judged;
  const status: JobStatus = { ...job.status, ...(startTime !== undefined && { startTime }) };
  if (failure !== undefined) {
    // Pods that go on, or that the cache does not show, may hold finalizers that a finished Job would not remove.
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
