import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Deployment, DeploymentCondition, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { conditionOf, newCondition, withCondition, withoutCondition } from "./conditions.ts";
import { desiredReplicas } from "./replica-counts.ts";
import { type CountedStatus, countedForm } from "./status.ts";

/** Reasons of the Progressing condition. Source: deployment_util.go */
export const progressReasons = {
  available: "NewReplicaSetAvailable",
  updated: "ReplicaSetUpdated",
  created: "NewReplicaSetCreated",
  found: "FoundNewReplicaSet",
  createError: "ReplicaSetCreateError",
  timedOut: "ProgressDeadlineExceeded",
  paused: "DeploymentPaused",
  resumed: "DeploymentResumed",
} as const;

/** Whether a progress deadline is set; 2147483647 means none. */
export function hasProgressDeadline({ spec }: Deployment): boolean {
  return spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== 2147483647;
}

/** Whether all replicas are updated and available, none are old, and the status is for the current generation. */
export function isComplete(deployment: Deployment, status: CountedStatus): boolean {
  const desired = desiredReplicas(deployment);
  return (
    status.updatedReplicas === desired &&
    status.replicas === desired &&
    status.availableReplicas === desired &&
    status.observedGeneration >= (deployment.metadata.generation ?? 0)
  );
}

/** Compared with the stored status: more updated, fewer old, more ready or more available replicas. */
function isProgressing(deployment: Deployment, status: CountedStatus): boolean {
  const old = countedForm(deployment.status);
  return (
    status.updatedReplicas > old.updatedReplicas ||
    status.replicas - status.updatedReplicas < old.replicas - old.updatedReplicas ||
    status.readyReplicas > old.readyReplicas ||
    status.availableReplicas > old.availableReplicas
  );
}

function isTimedOut(deployment: Deployment, status: CountedStatus, now: number): boolean {
  const condition = conditionOf(status.conditions, "Progressing");
  if (condition === undefined || condition.reason === progressReasons.available) return false;
  return updatedAt(condition) + deadlineMs(deployment) < now;
}

/**
 * Pure: returns the status with updated Progressing and ReplicaFailure conditions.
 * Source: pkg/controller/deployment/progress.go syncRolloutStatus
 */
export function withProgress(
  deployment: Deployment,
  calculated: CountedStatus,
  newSet: ReplicaSet | undefined,
  all: readonly ReplicaSet[],
  now: number,
): CountedStatus {
  let { conditions } = calculated;
  if (!hasProgressDeadline(deployment)) conditions = withoutCondition(conditions, "Progressing");
  const current = conditionOf(deployment.status?.conditions, "Progressing");
  const wasComplete = calculated.replicas === calculated.updatedReplicas && current?.reason === progressReasons.available;
  const status = { ...calculated, conditions };
  if (hasProgressDeadline(deployment) && !wasComplete)
    conditions = progressingConditions(deployment, status, newSet, current, now);

  const failure = failureOf(all, newSet);
  conditions = failure === undefined ? withoutCondition(conditions, "ReplicaFailure") : withCondition(conditions, failure);
  return { ...calculated, conditions };
}

function progressingConditions(
  deployment: Deployment,
  status: CountedStatus,
  newSet: ReplicaSet | undefined,
  current: DeploymentCondition | undefined,
  now: number,
): DeploymentCondition[] {
  const { conditions } = status;
  const subject = newSet === undefined ? `Deployment "${deployment.metadata.name}"` : `ReplicaSet "${newSet.metadata.name}"`;
  if (isComplete(deployment, status)) {
    const message = `${subject} has successfully progressed.`;
    return withCondition(conditions, newCondition("Progressing", "True", progressReasons.available, message, now));
  }
  if (isProgressing(deployment, status)) {
    const condition = newCondition("Progressing", "True", progressReasons.updated, `${subject} is progressing.`, now);
    // lastUpdateTime records the last progress, so the condition is written even when status and reason are unchanged.
    if (current?.status === "True" && current.lastTransitionTime) condition.lastTransitionTime = current.lastTransitionTime;
    return withCondition(withoutCondition(conditions, "Progressing"), condition);
  }
  if (isTimedOut(deployment, status, now)) {
    const message = `${subject} has timed out progressing.`;
    return withCondition(conditions, newCondition("Progressing", "False", progressReasons.timedOut, message, now));
  }
  return conditions;
}

/** Source: progress.go getReplicaFailures */
function failureOf(all: readonly ReplicaSet[], newSet: ReplicaSet | undefined): DeploymentCondition | undefined {
  const ordered = newSet === undefined ? all : [newSet, ...all];
  for (const set of ordered) {
    const failure = set.status?.conditions?.find(({ type }) => type === "ReplicaFailure");
    if (failure === undefined) continue;
    const { lastTransitionTime } = failure;
    const time = lastTransitionTime ? { lastTransitionTime, lastUpdateTime: lastTransitionTime } : {};
    return {
      type: "ReplicaFailure",
      status: failure.status,
      ...time,
      reason: failure.reason ?? "",
      message: failure.message ?? "",
    };
  }
  return undefined;
}

/**
 * Delay until a stalled rollout has to be checked for exceeding its progress deadline.
 * @returns ms from now; undefined when no check is needed
 * Source: progress.go requeueStuckDeployment
 */
export function nextProgressCheckMs(deployment: Deployment, status: CountedStatus, now: number): number | undefined {
  const condition = conditionOf(deployment.status?.conditions, "Progressing");
  if (!hasProgressDeadline(deployment) || condition === undefined) return undefined;
  if (isComplete(deployment, status) || condition.reason === progressReasons.timedOut) return undefined;
  // Plus one second because the condition's timestamp is in whole seconds.
  return Math.max(1000, updatedAt(condition) + deadlineMs(deployment) - now + 1000);
}

/**
 * Pausing suspends the progress deadline, resuming restarts it.
 * @returns the condition to write; undefined when unchanged
 * Source: sync.go checkPausedConditions
 */
export function pausedCondition(deployment: Deployment, now: number): DeploymentCondition | undefined {
  if (!hasProgressDeadline(deployment)) return undefined;
  const current = conditionOf(deployment.status?.conditions, "Progressing");
  if (current?.reason === progressReasons.timedOut) return undefined;
  const saysPaused = current?.reason === progressReasons.paused;
  const paused = deployment.spec.paused === true;
  if (paused && !saysPaused) return newCondition("Progressing", "Unknown", progressReasons.paused, "Deployment is paused", now);
  if (!paused && saysPaused) return newCondition("Progressing", "Unknown", progressReasons.resumed, "Deployment is resumed", now);
  return undefined;
}

function updatedAt({ lastUpdateTime }: DeploymentCondition): number {
  return parseTime(lastUpdateTime ?? "") ?? 0;
}

function deadlineMs({ spec }: Deployment): number {
  return (spec.progressDeadlineSeconds ?? 0) * 1000;
}
