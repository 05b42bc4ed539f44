import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { claimNamesOf } from "@coxswain/apimachinery/volumes/claims-of-pod";

const index = "pod-pvc-index";

/** Keys of the claims used by a Pod's volumes. */
export function claimKeysOf(pod: Pod): ObjectKey[] {
  return claimNamesOf(pod).map((name) => toKey(pod.metadata.namespace, name));
}

/**
 * Adds the index to the informer.
 * @returns function from a claim key to the Pods that use it, scheduled or not, running or not
 */
export function podsByClaim(pods: SharedInformer<Pod>): (claim: ObjectKey) => Pod[] {
  pods.addIndex(index, claimKeysOf);
  return (claim) => pods.lister.byIndex(index, claim);
}
