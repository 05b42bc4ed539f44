import type { Job } from "@coxswain/apimachinery/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { inRemovalOrder } from "../../pods/removal-order.ts";
import { firstMissing, type Intervals, withIndexes } from "./completion-indexes.ts";
import type { SyncAction } from "./metrics.ts";
import { completionIndexOf, hasValidIndex, isIndexed } from "./pods.ts";

/** What has to change: Pods are created or deleted, never both at one look. */
export interface PodPlan {
  readonly action: SyncAction;
  readonly delete: readonly Pod[];
  /** One item for each Pod: its completion index, undefined for a Job without. */
  readonly create: readonly (number | undefined)[];
}

/** No more than so many creates or deletes at once; the rest at the next look. Source: MaxPodCreateDeletePerSync */
const burstPods = 500;

/**
 * Pure: from what a Job wants and the Pods that run for it to what has to change.
 * @param state.completed the indexes that succeeded, of an indexed Job
 * Source: pkg/controller/job/job_controller.go, manageJob
 */
export function planPods(job: Job, active: readonly Pod[], state: { succeeded: number; completed: Intervals }): PodPlan {
  if (job.spec.suspend === true) return { action: "pods_deleted", delete: active, create: [] };
  const wanted = wantedActive(job, active.length, state.succeeded);
  const surplus = removals(job, active, Math.max(0, active.length - wanted)).slice(0, burstPods);
  if (surplus.length > 0) return { action: "pods_deleted", delete: surplus, create: [] };
  const missing = Math.min(wanted - active.length, burstPods);
  if (missing <= 0) return { action: "tracking", delete: [], create: [] };
  return { action: "pods_created", delete: [], create: newPods(job, active, state.completed, missing) };
}

/** Without completions all work on one thing: once one has done it no new ones begin, and those that run may end. */
function wantedActive({ spec }: Job, active: number, succeeded: number): number {
  const parallelism = spec.parallelism ?? 1;
  if (spec.completions == null) return succeeded > 0 ? active : parallelism;
  return Math.max(0, Math.min(parallelism, spec.completions - succeeded));
}

/** At least `count`, those first whose index is wrong, missing, or another Pod's too. */
function removals(job: Job, active: readonly Pod[], count: number): Pod[] {
  const useless = isIndexed(job) ? withoutOwnIndex(job, active) : new Set<Pod>();
  const more = count - useless.size;
  if (more <= 0) return [...useless];
  return [...useless, ...inRemovalOrder(active.filter((pod) => !useless.has(pod))).slice(0, more)];
}

function withoutOwnIndex(job: Job, active: readonly Pod[]): Set<Pod> {
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
