import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** A claim that a pod references, or that is created for one of its ephemeral volumes. */
interface ClaimUse {
  readonly name: string;
  readonly ephemeral: boolean;
}

/** In the order of the pod's volumes. Source: component-helpers storage/ephemeral VolumeClaimName */
export function claimsOf({ metadata, spec }: Pod): ClaimUse[] {
  return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }): ClaimUse[] => {
    if (persistentVolumeClaim !== undefined) return [{ name: persistentVolumeClaim.claimName, ephemeral: false }];
    return ephemeral === undefined ? [] : [{ name: `${metadata.name}-${name}`, ephemeral: true }];
  });
}

/**
 * @returns undefined when the claim does not exist
 * @throws Error when the claim of an ephemeral volume has another owner than the pod
 */
export function findClaim(
  claims: Pick<Lister<PersistentVolumeClaim>, "get">,
  pod: Pod,
  { name, ephemeral }: ClaimUse,
): PersistentVolumeClaim | undefined {
  const { namespace = "" } = pod.metadata;
  const claim = claims.get(`${namespace}/${name}`);
  if (claim !== undefined && ephemeral && controllerOf(claim)?.uid !== pod.metadata.uid) {
    throw new Error(`PVC ${namespace}/${name} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`);
  }
  return claim;
}
