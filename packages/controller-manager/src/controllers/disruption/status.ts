import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatTime, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Condition } from "@coxswain/apimachinery/objects/schema/kinds/meta/v1";
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { isReady } from "../../pods/pod-state.ts";
import type { Expectation } from "./plan.ts";

/**
 * Time after which an evicted Pod that is not terminating is considered not deleted. Requires that the clocks of the API
 * server and of this process are synchronized.
 */
const deletionTimeoutMs = 2 * 60_000;

/** Evictions admitted by the API server that have not taken effect yet. */
interface Disruptions {
  /** Eviction time by Pod name. */
  readonly pending: Readonly<Record<string, string>>;
  /** Pods whose deletion timed out. */
  readonly overdue: readonly Pod[];
  /** Time at which the first pending Pod becomes overdue, in ms since the epoch. */
  readonly recheckAt: number | undefined;
}

/**
 * Pure: evaluates `status.disruptedPods`.
 * @param now ms since the epoch
 * Source: disruption.go buildDisruptedPodMap
 */
export function disruptionsOf(budget: PodDisruptionBudget, pods: readonly Pod[], now: number): Disruptions {
  const recorded = budget.status?.disruptedPods ?? {};
  const pending: [string, string][] = [];
  const overdue: Pod[] = [];
  let recheckAt: number | undefined;
  for (const pod of pods) {
    const { name = "", deletionTimestamp } = pod.metadata;
    if (deletionTimestamp || !Object.hasOwn(recorded, name)) continue;
    const at = recorded[name]!;
    const dueAt = (parseTime(at) ?? 0) + deletionTimeoutMs;
    if (dueAt < now) {
      overdue.push(pod);
      continue;
    }
    pending.push([name, at]);
    recheckAt = Math.min(recheckAt ?? dueAt, dueAt);
  }
  return { pending: Object.fromEntries(pending), overdue, recheckAt };
}

/** Pure: counts ready Pods that are neither terminating nor evicted. Source: disruption.go countHealthyPods */
export function countHealthy(pods: readonly Pod[], pending: Disruptions["pending"], now: number): number {
  const isDisrupted = (name: string): boolean =>
    Object.hasOwn(pending, name) && (parseTime(pending[name]!) ?? 0) + deletionTimeoutMs > now;
  return pods.filter((pod) => !pod.metadata.deletionTimestamp && !isDisrupted(pod.metadata.name ?? "") && isReady(pod)).length;
}

/**
 * Pure: computes the status; undefined when unchanged. With 0 expected Pods no disruption is allowed, because the
 * first Pods of a new workload may appear before the next reconciliation.
 * Source: disruption.go updatePdbStatus; k8s.io/component-helpers apps/poddisruptionbudget
 */
export function desiredStatus(
  { metadata, status }: PodDisruptionBudget,
  { expectedPods, desiredHealthy }: Expectation,
  currentHealthy: number,
  disruptedPods: Disruptions["pending"],
  now: number,
): PodDisruptionBudgetStatus | undefined {
  const disruptionsAllowed = expectedPods <= 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  const observedGeneration = metadata.generation ?? 0;
  const condition =
    disruptionsAllowed > 0
      ? { status: "True" as const, reason: "SufficientPods", message: "", observedGeneration }
      : { status: "False" as const, reason: "InsufficientPods", message: "", observedGeneration };
  const desired: PodDisruptionBudgetStatus = {
    ...(Object.keys(disruptedPods).length === 0 ? {} : { disruptedPods }),
    currentHealthy,
    desiredHealthy,
    disruptionsAllowed,
    expectedPods,
    ...(observedGeneration === 0 ? {} : { observedGeneration }),
    conditions: withCondition(status?.conditions, condition, now),
  };
  return status !== undefined && deepEqual(comparable(status), comparable(desired)) ? undefined : desired;
}

/** Pure: status after a failed computation: no disruption is allowed. Source: disruption.go failSafe */
export function failedStatus({ status }: PodDisruptionBudget, message: string, now: number): PodDisruptionBudgetStatus {
  const { observedGeneration = 0 } = status ?? {};
  const condition = { status: "False" as const, reason: "SyncFailed", message, observedGeneration };
  return {
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
    ...status,
    disruptionsAllowed: 0,
    conditions: withCondition(status?.conditions, condition, now),
  };
}

/** Sets the condition; lastTransitionTime only changes with the status. Source: meta.SetStatusCondition */
function withCondition(
  conditions: readonly Condition[] = [],
  { observedGeneration, ...desired }: Pick<Condition, "status" | "reason" | "message"> & { observedGeneration: number },
  now: number,
): Condition[] {
  const current = conditions.find(({ type }) => type === conditionType);
  const lastTransitionTime = current?.status === desired.status ? current.lastTransitionTime : formatTime(now);
  const next: Condition = {
    type: conditionType,
    ...desired,
    ...(observedGeneration === 0 ? {} : { observedGeneration }),
    lastTransitionTime,
  };
  return current === undefined
    ? [...conditions, next]
    : conditions.map((condition) => (condition === current ? next : condition));
}

const conditionType = "DisruptionAllowed";

/** Normalized form for comparison: absent and empty values are equal. */
function comparable({ disruptedPods = {}, observedGeneration = 0, ...status }: PodDisruptionBudgetStatus): unknown {
  return { ...status, disruptedPods, observedGeneration };
}
