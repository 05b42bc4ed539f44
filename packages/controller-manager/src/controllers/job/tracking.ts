import type { Job, JobStatus } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isFinished } from "../../pods/pod-state.ts";
import { countIndexes, formatIndexes, hasIndex, type Intervals, withIndexes } from "./completion-indexes.ts";
import { completionIndexOf, hasValidIndex, isIndexed } from "./pods.ts";
import { hasTrackingFinalizer } from "./tracking-finalizer.ts";

/**
 * Counts each Pod exactly once although a finished Pod can be deleted at any time. A finalizer keeps the Pod until its
 * uid is in `status.uncountedTerminatedPods`; after the finalizer is removed the uid moves into the counter. Succeeded
 * indexes of an indexed Job are recorded in `completedIndexes` and need no uid. Terminating Pods count as failed.
 * Source: KEP 2307; pkg/controller/job/job_controller.go, trackJobStatusAndRemoveFinalizers
 */

/**
 * Upper bound of uids per reconciliation: keeps the status below about 20 kB and prevents a large Job from starving
 * small ones.
 */
const maxUncounted = 500;

/** Numbers of finished Pods, including those that the stored counters do not contain yet. */
interface FinishedCounts {
  readonly succeeded: number;
  readonly failed: number;
}

/**
 * Counts the Pods that have succeeded and failed since the Job started.
 * @param expectedRemovals uids of Pods whose finalizer was removed although the cache still shows it; undefined for a Job without
 * tracking, which counts the existing Pods
 */
export function countFinishedPods(
  job: Job,
  pods: readonly Pod[],
  expectedRemovals: ReadonlySet<string> | undefined,
): FinishedCounts {
  const { succeeded = 0, failed = 0, uncountedTerminatedPods: uncounted = {} } = job.status ?? {};
  const known = new Set([...(uncounted.succeeded ?? []), ...(uncounted.failed ?? []), ...(expectedRemovals ?? [])]);
  const valid = pods.filter((pod) => hasValidIndex(job, pod));
  const uncountedPods =
    expectedRemovals === undefined ? valid : valid.filter((pod) => hasTrackingFinalizer(pod) && !known.has(uidOf(pod)));
  const succeededPods = uncountedPods.filter(({ status }) => status?.phase === "Succeeded").length;
  const failedPods = uncountedPods.filter((pod) => hasFailed(pod, expectedRemovals !== undefined)).length;
  if (expectedRemovals === undefined) return { succeeded: succeededPods, failed: failedPods };
  return {
    succeeded: succeeded + (uncounted.succeeded?.length ?? 0) + succeededPods,
    failed: failed + (uncounted.failed?.length ?? 0) + failedPods,
  };
}

/** Pods orphaned by a removed node never reach phase Failed, so a tracked Pod that is being deleted counts as failed. */
function hasFailed({ metadata, status }: Pod, tracked: boolean): boolean {
  if (status?.phase === "Failed") return true;
  return tracked && Boolean(metadata.deletionTimestamp) && status?.phase !== "Succeeded";
}

/** Result of `recordFinishedPods`. */
interface RecordedPods {
  /** Status with the uids and indexes of newly finished Pods; the argument itself when there are none. */
  readonly status: JobStatus;
  /** Pods whose finalizer is removed once the status is stored. */
  readonly release: readonly Pod[];
  /** Uids of Pods that still have the finalizer. */
  readonly withFinalizer: ReadonlySet<string>;
}

/**
 * Records finished Pods in the status.
 * @param pods for an indexed Job, in the order of their indexes
 * @param options.finishing the Job is about to finish: Pods that still run count as failed
 */
export function recordFinishedPods(
  job: Job,
  status: JobStatus,
  pods: readonly Pod[],
  options: { expectedRemovals: ReadonlySet<string>; completed: Intervals; finishing: boolean },
): RecordedPods {
  const { expectedRemovals, completed, finishing } = options;
  const podsWithFinalizer = pods.filter((pod) => hasTrackingFinalizer(pod) && !expectedRemovals.has(uidOf(pod)));
  const withFinalizer = new Set(podsWithFinalizer.map(uidOf));
  const counted = moveToCounters(status, withFinalizer);
  const succeeded = new Set(counted.uncountedTerminatedPods?.succeeded);
  const failed = new Set(counted.uncountedTerminatedPods?.failed);
  const before = succeeded.size + failed.size;
  const indexes = new Set<number>();
  const release: Pod[] = [];
  for (const pod of podsWithFinalizer) {
    const phase = pod.status?.phase;
    const terminating = finishing || Boolean(pod.metadata.deletionTimestamp);
    if (isFinished(phase) || terminating || job.metadata.deletionTimestamp) release.push(pod);
    if (phase === "Succeeded") {
      const index = completionIndexOf(pod);
      if (!isIndexed(job)) succeeded.add(uidOf(pod));
      else if (index !== undefined && hasValidIndex(job, pod) && !hasIndex(completed, index)) indexes.add(index);
    } else if ((phase === "Failed" || terminating) && hasValidIndex(job, pod)) failed.add(uidOf(pod));
    if (indexes.size + succeeded.size + failed.size >= maxUncounted) break; // the rest follows in the next reconciliation
  }
  if (indexes.size === 0 && succeeded.size + failed.size === before) return { status: counted, release, withFinalizer };
  const all = withIndexes(completed, [...indexes].toSorted(ascending));
  return {
    status: {
      ...counted,
      ...(indexes.size > 0 && { succeeded: countIndexes(all), completedIndexes: formatIndexes(all) }),
      uncountedTerminatedPods: uncountedOf([...succeeded], [...failed]),
    },
    release,
    withFinalizer,
  };
}

/** Moves the uids of Pods without the finalizer into the counters; returns the argument itself when there are none. */
export function moveToCounters(status: JobStatus, withFinalizer: ReadonlySet<string>): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const isPending = (uid: string): boolean => withFinalizer.has(uid);
  const [stillSucceeded, stillFailed] = [succeeded.filter(isPending), failed.filter(isPending)];
  const [moreSucceeded, moreFailed] = [succeeded.length - stillSucceeded.length, failed.length - stillFailed.length];
  if (moreSucceeded + moreFailed === 0) return status;
  return {
    ...status,
    ...(moreSucceeded > 0 && { succeeded: (status.succeeded ?? 0) + moreSucceeded }),
    ...(moreFailed > 0 && { failed: (status.failed ?? 0) + moreFailed }),
    uncountedTerminatedPods: uncountedOf(stillSucceeded, stillFailed),
  };
}

/** Whether no uid is left to be moved into the counters. */
export function allCounted({ uncountedTerminatedPods: uncounted }: JobStatus): boolean {
  return !uncounted?.succeeded?.length && !uncounted?.failed?.length;
}

function uncountedOf(succeeded: string[], failed: string[]): NonNullable<JobStatus["uncountedTerminatedPods"]> {
  return { ...(succeeded.length > 0 && { succeeded }), ...(failed.length > 0 && { failed }) };
}

export function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? "";
}

const ascending = (a: number, b: number): number => a - b;
