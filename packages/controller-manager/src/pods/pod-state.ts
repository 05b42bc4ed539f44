import { parseTime } from "@coxswain/apimachinery/meta/time";
import type { Pod, PodCondition } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** Counts for its owner: neither finished nor on its way out. Source: controller.IsPodActive */
export function isActive({ metadata, status }: Pod): boolean {
  return !isFinished(status?.phase) && !metadata.deletionTimestamp;
}

/** On its way out. */
export function isTerminating({ metadata }: Pod): boolean {
  return Boolean(metadata.deletionTimestamp);
}

export function isFinished(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

export function readyCondition(pod: Pod): PodCondition | undefined {
  return pod.status?.conditions?.find(({ type }) => type === "Ready");
}

export function isReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

/** When the pod became ready or ceased to be, in ms; undefined when nobody said. */
export function readySince(pod: Pod): number | undefined {
  const since = readyCondition(pod)?.lastTransitionTime;
  return since ? parseTime(since) : undefined;
}

/** Ready for at least so long. Source: pkg/api/v1/pod IsPodAvailable */
export function isAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  if (!isReady(pod)) return false;
  if (minReadySeconds === 0) return true;
  const since = readySince(pod);
  return since !== undefined && since + minReadySeconds * 1000 <= now;
}
