import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { ordinalOf } from "./identity.ts";

/**
 * Implements `spec.persistentVolumeClaimRetentionPolicy`: a claim that is to be deleted with the StatefulSet or with a
 * scaled-down Pod gets it as owner, and the garbage collector deletes the claim.
 * @returns the new owner references of the claim; undefined when unchanged
 * Source: stateful_set_utils.go claimOwnerMatchesSetAndPod, updateClaimOwnerRefForSetAndPod
 */
export function desiredOwners(set: StatefulSet, pod: Pod, claim: PersistentVolumeClaim): OwnerReference[] | undefined {
  const { whenDeleted, whenScaled } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  const goesWithPod = whenScaled === "Delete" && ordinalOf(pod) >= (set.spec.replicas ?? 1);
  const goesWithSet = whenDeleted === "Delete" && !goesWithPod;
  const owners = claim.metadata.ownerReferences ?? [];
  const owned = ({ metadata }: StatefulSet | Pod): boolean => owners.some(({ uid }) => uid === metadata.uid);
  if (owned(set) === goesWithSet && owned(pod) === goesWithPod) return undefined;
  return [
    ...owners.filter(({ uid }) => uid !== set.metadata.uid && uid !== pod.metadata.uid),
    ...(goesWithSet ? [referenceTo(set, "apps/v1", "StatefulSet")] : []),
    ...(goesWithPod ? [referenceTo(pod, "v1", "Pod")] : []),
  ];
}

function referenceTo({ metadata }: StatefulSet | Pod, apiVersion: string, kind: string): OwnerReference {
  return { apiVersion, kind, name: metadata.name ?? "", uid: metadata.uid ?? "" };
}

/**
 * Whether the claim is owned by a former Pod of this name; it has to be deleted before the Pod is recreated.
 * Source: PodClaimIsStale
 */
export function isStale(set: StatefulSet, podNamed: string, claim: PersistentVolumeClaim): boolean {
  if (set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled !== "Delete") return false;
  return (claim.metadata.ownerReferences ?? []).some(({ kind, name }) => kind === "Pod" && name === podNamed);
}
