import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Identity of a StatefulSet's Pod: name, label and volumes. Source: pkg/controller/statefulset/stateful_set_utils.go */

const nameLabel = "statefulset.kubernetes.io/pod-name";

export function podName({ metadata }: StatefulSet, ordinal: number): string {
  return `${metadata.name}-${ordinal}`;
}

/**
 * Splits a Pod name into parent and ordinal.
 * @returns `ordinal` -1 when the number exceeds int32; undefined for a name of another form
 */
export function parsePodName(name: string): { readonly parent: string; readonly ordinal: number } | undefined {
  const dash = name.lastIndexOf("-");
  const digits = name.slice(dash + 1);
  if (dash < 0 || !/^[0-9]+$/.test(digits)) return undefined;
  const ordinal = Number(digits);
  return { parent: name.slice(0, dash), ordinal: ordinal <= 2147483647 ? ordinal : -1 };
}

/** Ordinal of the Pod; -1 without one. */
export function ordinalOf({ metadata }: Pod): number {
  return parsePodName(metadata.name ?? "")?.ordinal ?? -1;
}

/** Whether the Pod's name matches the StatefulSet; ownership is not checked. */
export function isMember(set: StatefulSet, { metadata }: Pod): boolean {
  return parsePodName(metadata.name ?? "")?.parent === set.metadata.name;
}

/** Whether name, namespace and pod-name label of the Pod are those of its ordinal. */
export function hasIdentity(set: StatefulSet, pod: Pod): boolean {
  const ordinal = ordinalOf(pod);
  const { name, namespace, labels } = pod.metadata;
  return ordinal >= 0 && name === podName(set, ordinal) && namespace === set.metadata.namespace && labels?.[nameLabel] === name;
}

/** Returns a copy of the Pod with the name and label of its ordinal. */
export function withIdentity(set: StatefulSet, pod: Pod): Pod {
  const name = podName(set, ordinalOf(pod));
  const { namespace } = set.metadata;
  const labels = { ...pod.metadata.labels, [nameLabel]: name };
  return { ...pod, metadata: { ...pod.metadata, name, ...(namespace === undefined ? {} : { namespace }), labels } };
}

/** A claim of one Pod: the last template of its name, which is also the name of the volume. */
interface NamedClaim {
  readonly name: string;
  readonly template: PersistentVolumeClaim;
}

/** Claims of one Pod by volume name. */
export function claimsOf(set: StatefulSet, ordinal: number): Map<string, NamedClaim> {
  return new Map(
    (set.spec.volumeClaimTemplates ?? []).map((template) => {
      const volume = template.metadata.name ?? "";
      return [volume, { name: `${volume}-${set.metadata.name}-${ordinal}`, template }];
    }),
  );
}

/** The claim as it is to be created; shares parts of its template. */
export function newClaim({ metadata, spec }: StatefulSet, { name, template }: NamedClaim): PersistentVolumeClaim {
  const { namespace } = metadata;
  const labels = { ...template.metadata.labels, ...spec.selector?.matchLabels };
  return {
    ...template,
    metadata: { ...template.metadata, name, ...(namespace === undefined ? {} : { namespace }), labels },
  };
}

/** Whether the Pod's volumes refer to the claims of its ordinal. */
export function hasStorage(set: StatefulSet, pod: Pod): boolean {
  const claimed = new Map((pod.spec.volumes ?? []).map((volume) => [volume.name, volume.persistentVolumeClaim?.claimName]));
  return [...claimsOf(set, ordinalOf(pod))].every(([volume, { name }]) => claimed.get(volume) === name);
}

/** Returns a copy of the Pod with volumes for its claims; they replace template volumes of the same name. */
export function withStorage(set: StatefulSet, pod: Pod): Pod {
  const claims = claimsOf(set, ordinalOf(pod));
  const own = [...claims].map(([volume, claim]): Volume => ({ name: volume, persistentVolumeClaim: { claimName: claim.name } }));
  const others = (pod.spec.volumes ?? []).filter(({ name }) => !claims.has(name));
  if (own.length === 0) return pod;
  return { ...pod, spec: { ...pod.spec, volumes: [...own, ...others] } };
}
