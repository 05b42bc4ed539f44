import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { NodePod } from "../pod/pod.ts";
import type { SetUpVolume } from "./volume.ts";

const gidAnnotation = "pv.beta.kubernetes.io/gid";

/** Pure: the group in the volume's annotation; undefined without one, and when it is not a number. */
export function annotatedGroup({ metadata }: PersistentVolume): number | undefined {
  const text = metadata.annotations?.[gidAnnotation] ?? "";
  return /^[+-]?\d+$/.test(text) ? Number(text) : undefined;
}

/**
 * Pure: the groups of the Pod's volumes, each once, without those that its specification lists.
 * Source: pkg/kubelet/volumemanager/volume_manager.go GetExtraSupplementalGroupsForPod
 */
export function groupsOfVolumes({ spec }: NodePod, volumes: ReadonlyMap<string, SetUpVolume>): number[] {
  const listed = spec.securityContext?.supplementalGroups ?? [];
  const groups = [...volumes.values()].flatMap(({ gid }) => (gid === undefined || listed.includes(gid) ? [] : [gid]));
  return [...new Set(groups)];
}
