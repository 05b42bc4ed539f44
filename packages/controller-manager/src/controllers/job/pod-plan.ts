import type { Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { inRemovalOrder } from "../../pods/removal-order.ts";
import { firstMissing, type Intervals, withIndexes } from "./completion-indexes.ts";
import type { SyncAction } from "./metrics.ts";
import { completionIndexOf, hasValidIndex, isIndexed } from "./pods.ts";

/** Pods to create or delete; one reconciliation never does both. */
export interface PodPlan {
  readonly action: SyncAction;
  readonly delete: readonly Pod[];
  /** One item for each Pod: its completion index, or undefined for a Job that is not indexed. */
  readonly create: readonly (number | undefined)[];
}

/**
 * Upper bound of creations or deletions in one reconciliation; the rest follows in the next one.
 * Source: MaxPodCreateDeletePerSync
 */
const burstPods = 500;

/**
 * Pure: computes the Pods to create or delete from the Job's spec and its active Pods.
 * @param state.completed the succeeded indexes of an indexed Job
 * Source: pkg/controller/job/job_controller.go, manageJob
 */
export function planPods(job: Job, active: readonly Pod[], state: { succeeded: number; completed: Intervals }): PodPlan {
  if (job.spec.suspend === true) return { action: "pods_deleted", delete: active, create: [] };
  const wanted = desiredActive(job, active.length, state.succeeded);
  const surplus = podsToDelete(job, active, Math.max(0, active.length - wanted)).slice(0, burstPods);
  if (surplus.length > 0) return { action: "pods_deleted", delete: surplus, create: [] };
  const missing = Math.min(wanted - active.length, burstPods);
  if (missing <= 0) return { action: "tracking", delete: [], create: [] };
  return { action: "pods_created", delete: [], create: newPods(job, active, state.completed, missing) };
}

/**
 * Without `completions` the Pods work on one queue: after the first success no new Pods start, and running Pods are
 * left to finish.
 */
function desiredActive({ spec }: Job, active: number, succeeded: number): number {
  const parallelism = spec.parallelism ?? 1;
  if (spec.completions == null) return succeeded > 0 ? active : parallelism;
  return Math.max(0, Math.min(parallelism, spec.completions - succeeded));
}

/**
 * Selects at least `count` Pods to delete; Pods with an invalid, missing or duplicate index come first and are always
 * included.
 */
function podsToDelete(job: Job, active: readonly Pod[], count: number): Pod[] {
  const invalid = isIndexed(job) ? withoutUniqueIndex(job, active) : new Set<Pod>();
  const more = count - invalid.size;
  if (more <= 0) return [...invalid];
  return [...invalid, ...inRemovalOrder(active.filter((pod) => !invalid.has(pod))).slice(0, more)];
}

function withoutUniqueIndex(job: Job, active: readonly Pod[]): Set<Pod> {
  const byIndex = Map.groupBy(active, (pod) => (hasValidIndex(job, pod) ? completionIndexOf(pod) : undefined));
  return new Set([...byIndex].flatMap(([index, pods]) => (index === undefined ? pods : inRemovalOrder(pods).slice(0, -1))));
}

function newPods(job: Job, active: readonly Pod[], completed: Intervals, count: number): (number | undefined)[] {
  if (!isIndexed(job)) return Array.from({ length: count }, () => undefined);
  const running = active.map(completionIndexOf).filter((index) => index !== undefined);
  const taken = withIndexes(
    completed,
    running.toSorted((a, b) => a - b),
  );
  return firstMissing(taken, count, job.spec.completions ?? 0);
}
