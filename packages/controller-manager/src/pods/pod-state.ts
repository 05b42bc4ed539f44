import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod, PodCondition } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Whether the Pod is neither finished nor terminating. Source: controller.IsPodActive */
export function isActive({ metadata, status }: Pod): boolean {
  return !isFinished(status?.phase) && !metadata.deletionTimestamp;
}

/** Whether the Pod is being deleted. */
export function isTerminating({ metadata }: Pod): boolean {
  return Boolean(metadata.deletionTimestamp);
}

/** Whether the phase is final: none of the pod's containers will run again. */
export function isFinished(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

export function readyCondition(pod: Pod): PodCondition | undefined {
  // No call for each condition: this runs for all Pods of an owner whenever one changes.
  for (const condition of pod.status?.conditions ?? []) if (condition.type === "Ready") return condition;
  return undefined;
}

export function isReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

/** Last transition of the Ready condition, in ms since the epoch; undefined when unknown. */
export function readySince(pod: Pod): number | undefined {
  const since = readyCondition(pod)?.lastTransitionTime;
  return since ? parseTime(since) : undefined;
}

/** Whether the Pod has been ready for at least minReadySeconds. Source: pkg/api/v1/pod IsPodAvailable */
export function isAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  if (!isReady(pod)) return false;
  if (minReadySeconds === 0) return true;
  const since = readySince(pod);
  return since !== undefined && since + minReadySeconds * 1000 <= now;
}
