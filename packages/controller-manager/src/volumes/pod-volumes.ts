import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isFinished } from "../pods/pod-state.ts";

/**
 * Whether the Pod's containers no longer use its volumes: it is finished, or being deleted with no container running.
 * Source: pkg/volume/util IsPodTerminated
 */
export function isTerminated({ metadata, status = {} }: Pod): boolean {
  if (isFinished(status.phase)) return true;
  if (!metadata.deletionTimestamp) return false;
  const all = [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ];
  return all.every(({ state }) => state?.terminated !== undefined || state?.waiting !== undefined);
}
