import type { StatefulSet, StatefulSetStatus } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { keysOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { isTerminating } from "../../pods/pod-state.ts";
import { revisionOf } from "./new-pod.ts";
import { isRunningAndAvailable, isRunningAndReady, type Step, type View } from "./plan.ts";

type CountedStatus = Required<Omit<StatefulSetStatus, "conditions">>;

/**
 * Pure: counts the Pods as they are after the executed steps.
 * Source: stateful_set_control.go updateStatefulSet, completeRollingUpdate
 */
export function statefulSetStatus(view: View, taken: readonly Step[], collisionCount: number): CountedStatus {
  const { set, pods, revisions } = view;
  const [current, update] = [revisions.current.metadata.name ?? "", revisions.update.metadata.name ?? ""];
  const created = taken.filter(({ action }) => action === "create").map(({ pod }) => pod);
  const replaced = new Set(taken.filter(({ action }) => action === "delete failed").map(({ pod }) => pod));
  const deleted = new Set(taken.filter(({ action }) => action === "delete").map(({ pod }) => pod));
  const existing = [...pods.filter((pod) => !replaced.has(pod)), ...created];
  const remaining = existing.filter((pod) => !isTerminating(pod) && !deleted.has(pod));
  const status: CountedStatus = {
    observedGeneration: set.metadata.generation ?? 0,
    replicas: existing.length,
    readyReplicas: pods.filter(isRunningAndReady).length,
    availableReplicas: pods.filter((pod) => isRunningAndAvailable(view, pod)).length,
    currentReplicas: remaining.filter((pod) => revisionOf(pod) === current).length,
    updatedReplicas: remaining.filter((pod) => revisionOf(pod) === update).length,
    currentRevision: current,
    updateRevision: update,
    collisionCount,
  };
  const { type } = set.spec.updateStrategy ?? {};
  const complete = status.updatedReplicas === status.replicas && status.readyReplicas === status.replicas;
  return type === "RollingUpdate" && complete
    ? { ...status, currentReplicas: status.updatedReplicas, currentRevision: update }
    : status;
}

/** Whether the stored status differs from the computed one. Source: stateful_set_utils.go inconsistentStatus */
export function isOutdated({ status }: StatefulSet, desired: CountedStatus): boolean {
  const { observedGeneration, ...counts } = desired;
  if (observedGeneration > (status?.observedGeneration ?? 0)) return true;
  return keysOf(counts).some((name) => (status?.[name] ?? (name.endsWith("Revision") ? "" : 0)) !== counts[name]);
}
