import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import type { StatefulSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** What makes a pod one of a set and no other's: name, label, volumes. Source: pkg/controller/statefulset/stateful_set_utils.go */

const nameLabel = "statefulset.kubernetes.io/pod-name";

export function podName({ metadata }: StatefulSet, ordinal: number): string {
  return `${metadata.name}-${ordinal}`;
}

/** @returns `ordinal` -1 for a number that is none of a pod's; nothing for a name of another form */
export function parsePodName(name: string): { readonly parent: string; readonly ordinal: number } | undefined {
  const dash = name.lastIndexOf("-");
  const digits = name.slice(dash + 1);
  if (dash < 0 || !/^[0-9]+$/.test(digits)) return undefined;
  const ordinal = Number(digits);
  return { parent: name.slice(0, dash), ordinal: ordinal <= 2147483647 ? ordinal : -1 };
}

/** @returns -1 for a pod that has none */
export function ordinalOf({ metadata }: Pod): number {
  return parsePodName(metadata.name ?? "")?.ordinal ?? -1;
}

/** By its name alone; whether it is the set's is for its owner reference to say. */
export function isMember(set: StatefulSet, { metadata }: Pod): boolean {
  return parsePodName(metadata.name ?? "")?.parent === set.metadata.name;
}

export function hasIdentity(set: StatefulSet, pod: Pod): boolean {
  const ordinal = ordinalOf(pod);
  const { name, namespace, labels } = pod.metadata;
  return ordinal >= 0 && name === podName(set, ordinal) && namespace === set.metadata.namespace && labels?.[nameLabel] === name;
}

/** @returns a pod with the name and label of its ordinal */
export function withIdentity(set: StatefulSet, pod: Pod): Pod {
  const name = podName(set, ordinalOf(pod));
  const { namespace } = set.metadata;
  const labels = { ...pod.metadata.labels, [nameLabel]: name };
  return { ...pod, metadata: { ...pod.metadata, name, ...(namespace === undefined ? {} : { namespace }), labels } };
}

/** The claims of one pod, by the names of their templates, which are those of its volumes. */
export function claimsOf(set: StatefulSet, ordinal: number): Map<string, PersistentVolumeClaim> {
  const { name, namespace } = set.metadata;
  return new Map(
    (set.spec.volumeClaimTemplates ?? []).map((template) => {
      const volume = template.metadata.name ?? "";
      const claim = deepClone(template);
      const labels = { ...claim.metadata.labels, ...set.spec.selector?.matchLabels };
      claim.metadata = {
        ...claim.metadata,
        name: `${volume}-${name}-${ordinal}`,
        ...(namespace === undefined ? {} : { namespace }),
        labels,
      };
      return [volume, claim];
    }),
  );
}

export function hasStorage(set: StatefulSet, pod: Pod): boolean {
  const claimed = new Map((pod.spec.volumes ?? []).map((volume) => [volume.name, volume.persistentVolumeClaim?.claimName]));
  return [...claimsOf(set, ordinalOf(pod))].every(([volume, { metadata }]) => claimed.get(volume) === metadata.name);
}

/** @returns a pod whose volumes are its claims; they win over volumes of the template with their names */
export function withStorage(set: StatefulSet, pod: Pod): Pod {
  const claims = claimsOf(set, ordinalOf(pod));
  const own = [...claims].map(
    ([name, { metadata }]): Volume => ({ name, persistentVolumeClaim: { claimName: metadata.name ?? "" } }),
  );
  const others = (pod.spec.volumes ?? []).filter(({ name }) => !claims.has(name));
  if (own.length === 0) return pod;
  return { ...pod, spec: { ...pod.spec, volumes: [...own, ...others] } };
}
