import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { claimNameOf, notMadeFor } from "@coxswain/apimachinery/volumes/claims-of-pod";

/**
 * Whether the Pod uses the claim. An unscheduled Pod does not: kubelets reject claims that are being deleted. A Pod
 * that only waits for its own finalizers does not use its ephemeral claim; otherwise both would wait for each other.
 */
export function usesClaim(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if (!pod.spec.nodeName) return false;
  return (pod.spec.volumes ?? []).some((volume) => {
    if (claimNameOf(pod, volume) !== claim.metadata.name) return false;
    return volume.ephemeral === undefined || (!isShutDown(pod) && notMadeFor(pod, claim) === undefined);
  });
}

/** The kubelet has terminated the Pod, or it was force-deleted. */
export function isShutDown({ metadata }: Pod): boolean {
  return Boolean(metadata.deletionTimestamp) && metadata.deletionGracePeriodSeconds === 0;
}
