import { isControlledBy } from "../meta/owner-references.ts";
import type { PersistentVolumeClaim, Pod, Volume } from "../schema/kinds/core/v1.ts";

/**
 * The claim that a Pod's volume stands for: the named one, or that made for an ephemeral volume.
 * @returns undefined for volumes of other kinds
 */
export function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName;
  return volume.ephemeral === undefined ? undefined : `${pod.metadata.name}-${volume.name}`;
}

export function claimNamesOf(pod: Pod): string[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => claimNameOf(pod, volume) ?? []);
}

/**
 * An ephemeral volume's claim must be the Pod's own: one that only happens to have the name is somebody's data.
 * @returns what is wrong, in upstream's words
 * Source: k8s.io/component-helpers storage/ephemeral
 */
export function notMadeFor(pod: Pod, claim: PersistentVolumeClaim): string | undefined {
  const { namespace, name } = claim.metadata;
  if (namespace === pod.metadata.namespace && isControlledBy(claim, pod)) return undefined;
  return `PVC ${namespace}/${name} was not created for pod ${pod.metadata.namespace}/${pod.metadata.name} (pod is not owner)`;
}
