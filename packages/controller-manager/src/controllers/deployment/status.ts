import type {
  Deployment,
  DeploymentCondition,
  DeploymentStatus,
  ReplicaSet,
} from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { newCondition, withCondition } from "./conditions.ts";
import { actualReplicasOf, availableOf, desiredReplicas, maxUnavailableOf, readyOf, replicasOf } from "./replica-counts.ts";

/** DeploymentStatus with all counts present, so that two of them can be compared. */
export type CountedStatus = Required<Omit<DeploymentStatus, "collisionCount" | "conditions">> & {
  collisionCount?: number;
  conditions: DeploymentCondition[];
};

/**
 * Pure: aggregates the status of the ReplicaSets. Keeps all conditions except Available.
 * Source: sync.go calculateStatus
 */
export function calculateStatus(
  deployment: Deployment,
  newSet: ReplicaSet | undefined,
  all: readonly ReplicaSet[],
  now: number,
): CountedStatus {
  const available = availableOf(all);
  const { collisionCount, conditions = [] } = deployment.status ?? {};
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: actualReplicasOf(all),
    updatedReplicas: actualReplicasOf([newSet]),
    readyReplicas: readyOf(all),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, replicasOf(all) - available),
    ...(collisionCount === undefined ? {} : { collisionCount }),
    conditions: withCondition(conditions, availability(deployment, available, now)),
  };
}

function availability(deployment: Deployment, available: number, now: number): DeploymentCondition {
  return available >= desiredReplicas(deployment) - maxUnavailableOf(deployment)
    ? newCondition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    : newCondition("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now);
}

/** The status in serialized form: zero counts and empty lists are omitted. */
export function storedForm(status: CountedStatus): DeploymentStatus {
  return Object.fromEntries(
    Object.entries(status).filter(([, value]) => value !== 0 && !(Array.isArray(value) && value.length === 0)),
  );
}

/** The stored status with missing counts set to 0. */
export function countedForm(status: DeploymentStatus | undefined): CountedStatus {
  const { collisionCount } = status ?? {};
  return {
    observedGeneration: status?.observedGeneration ?? 0,
    replicas: status?.replicas ?? 0,
    updatedReplicas: status?.updatedReplicas ?? 0,
    readyReplicas: status?.readyReplicas ?? 0,
    availableReplicas: status?.availableReplicas ?? 0,
    unavailableReplicas: status?.unavailableReplicas ?? 0,
    ...(collisionCount === undefined ? {} : { collisionCount }),
    conditions: status?.conditions ?? [],
  };
}
