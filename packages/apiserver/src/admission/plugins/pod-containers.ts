import type { Container, EphemeralContainer, Pod, PodSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** Every container of a pod, whatever its kind, with its path for error texts. A policy must never look at some only. */
export function allContainers(pod: { spec?: PodSpec } | Pod): { container: Container | EphemeralContainer; path: string }[] {
  const { spec } = pod;
  const named = (list: readonly (Container | EphemeralContainer)[] | undefined, field: string) =>
    (list ?? []).map((container, i) => ({ container, path: `spec.${field}[${i}]` }));
  return [
    ...named(spec?.initContainers, "initContainers"),
    ...named(spec?.containers, "containers"),
    ...named(spec?.ephemeralContainers, "ephemeralContainers"),
  ];
}
