import type { Container, EphemeralContainer, Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** All containers of a pod (init, regular, ephemeral) with their field paths. Policies must check all three kinds. */
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
