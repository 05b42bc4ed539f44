import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { DeploymentCondition } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";

export function conditionOf(
  conditions: readonly DeploymentCondition[] | undefined,
  type: string,
): DeploymentCondition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** A condition that was updated and has changed now. @param now milliseconds since the Unix epoch */
export function newCondition(
  type: string,
  status: "True" | "False" | "Unknown",
  reason: string,
  message: string,
  now: number,
): DeploymentCondition {
  const time = formatTime(now);
  return { type, status, lastUpdateTime: time, lastTransitionTime: time, reason, message };
}

/**
 * Adds or replaces the condition of the same type.
 * @returns the conditions unchanged when status and reason are equal; lastTransitionTime is kept when the status is equal
 * Source: deployment_util.go SetDeploymentCondition
 */
export function withCondition(conditions: readonly DeploymentCondition[], condition: DeploymentCondition): DeploymentCondition[] {
  const current = conditionOf(conditions, condition.type);
  if (current !== undefined && current.status === condition.status && current.reason === condition.reason) return [...conditions];
  const { lastTransitionTime } = current?.status === condition.status ? current : condition;
  return [
    ...withoutCondition(conditions, condition.type),
    { ...condition, ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }) },
  ];
}

export function withoutCondition(conditions: readonly DeploymentCondition[], type: string): DeploymentCondition[] {
  return conditions.filter((condition) => condition.type !== type);
}
