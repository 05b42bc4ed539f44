import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { claimNameOf, notMadeFor } from "@coxswain/apimachinery/volumes/claims-of-pod";

/**
 * Does the Pod hold the claim? One that is not on a node does not: no node starts it with a claim that is being deleted.
 * One that is only waiting for its own finalizers holds no claim that was made for it, or both would wait for each other.
 */
export function usesClaim(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if (!pod.spec.nodeName) return false;
  return (pod.spec.volumes ?? []).some((volume) => {
    if (claimNameOf(pod, volume) !== claim.metadata.name) return false;
    return volume.ephemeral === undefined || (!isShutDown(pod) && notMadeFor(pod, claim) === undefined);
  });
}

/** The node is done with it, or it was deleted by force. */
export function isShutDown({ metadata }: Pod): boolean {
  return Boolean(metadata.deletionTimestamp) && metadata.deletionGracePeriodSeconds === 0;
}
