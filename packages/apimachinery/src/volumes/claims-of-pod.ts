import { isControlledBy } from "../objects/meta/owner-references.ts";
import type { PersistentVolumeClaim, Pod, Volume } from "../objects/schema/kinds/core/v1.ts";

/**
 * Name of the claim behind a Pod's volume: the referenced one, or the one created for an ephemeral volume.
 * @returns undefined for volumes of other kinds
 */
export function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName;
  return volume.ephemeral === undefined ? undefined : `${pod.metadata.name}-${volume.name}`;
}

/** Names of all claims of a Pod, in the order of its volumes. */
export function claimNamesOf(pod: Pod): string[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => claimNameOf(pod, volume) ?? []);
}

/**
 * Checks that the claim of an ephemeral volume is owned by the Pod: another claim of that name may hold unrelated data.
 * @returns upstream's error text; undefined when the Pod owns the claim
 * Source: k8s.io/component-helpers storage/ephemeral
 */
export function notMadeFor(pod: Pod, claim: PersistentVolumeClaim): string | undefined {
  const { namespace, name } = claim.metadata;
  if (namespace === pod.metadata.namespace && isControlledBy(claim, pod)) return undefined;
  return `PVC ${namespace}/${name} was not created for pod ${pod.metadata.namespace}/${pod.metadata.name} (pod is not owner)`;
}
