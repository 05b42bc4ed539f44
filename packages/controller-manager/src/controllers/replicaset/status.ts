import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { ReplicaSetCondition, ReplicaSetStatus } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { isAvailable, isReady } from "../../pods/pod-state.ts";

/** Fields common to ReplicaSets and ReplicationControllers. */
interface Replicated {
  readonly metadata: { readonly generation?: number };
  readonly spec: {
    readonly minReadySeconds?: number;
    readonly template?: { readonly metadata?: { readonly labels?: Record<string, string> } };
  };
  readonly status?: ReplicaSetStatus;
}

/** Failure to create or delete Pods in this reconciliation. */
export interface ReplicaFailure {
  readonly reason: "FailedCreate" | "FailedDelete";
  readonly message: string;
}

/** Pure: computes the status from the active Pods. Source: pkg/controller/replicaset/replica_set_utils.go, calculateStatus */
export function replicaStatus(
  owner: Replicated,
  active: readonly Pod[],
  failure: ReplicaFailure | undefined,
  now: number,
): ReplicaSetStatus {
  const template = LabelSelector.fromSet(owner.spec.template?.metadata?.labels ?? {});
  const minReadySeconds = owner.spec.minReadySeconds ?? 0;
  const conditions = conditionsAfter(owner.status?.conditions ?? [], failure, now);
  let [fullyLabeledReplicas, readyReplicas, availableReplicas] = [0, 0, 0];
  for (const pod of active) {
    if (template.matches(pod.metadata.labels)) fullyLabeledReplicas++;
    if (!isReady(pod)) continue;
    readyReplicas++;
    if (minReadySeconds === 0 || isAvailable(pod, minReadySeconds, now)) availableReplicas++;
  }
  return {
    replicas: active.length,
    fullyLabeledReplicas,
    readyReplicas,
    availableReplicas,
    observedGeneration: owner.metadata.generation ?? 0,
    ...(conditions.length === 0 ? {} : { conditions }),
  };
}

function conditionsAfter(before: ReplicaSetCondition[], failure: ReplicaFailure | undefined, now: number): ReplicaSetCondition[] {
  const others = before.filter(({ type }) => type !== "ReplicaFailure");
  if (failure === undefined) return others;
  if (others.length < before.length) return before; // keeps the time and message of the first failure
  return [...others, { type: "ReplicaFailure", status: "True", lastTransitionTime: formatTime(now), ...failure }];
}
