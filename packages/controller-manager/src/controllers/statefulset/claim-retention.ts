import type { OwnerReference } from "@coxswain/apimachinery/meta/types";
import type { StatefulSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { ordinalOf } from "./identity.ts";

/**
 * `spec.persistentVolumeClaimRetentionPolicy`: claims go with the set, or with a pod that is scaled away, by being owned
 * by it; the garbage collector does the rest. @returns the claim's owners as they should be; undefined when they are so
 * Source: stateful_set_utils.go claimOwnerMatchesSetAndPod, updateClaimOwnerRefForSetAndPod
 */
export function wantedOwners(set: StatefulSet, pod: Pod, claim: PersistentVolumeClaim): OwnerReference[] | undefined {
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

/** A claim that goes with a former pod of this name: it must be gone before there is a new one. Source: PodClaimIsStale */
export function isStale(set: StatefulSet, podNamed: string, claim: PersistentVolumeClaim): boolean {
  if (set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled !== "Delete") return false;
  return (claim.metadata.ownerReferences ?? []).some(({ kind, name }) => kind === "Pod" && name === podNamed);
}
