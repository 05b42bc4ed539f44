import { seccompContainer, seccompPod } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { Pod, SeccompProfile } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { containerLists } from "./validation/options.ts";

/**
 * Mirrors seccomp annotations and fields of a new pod in both directions, so that older kubelets enforce them, too.
 * Source: pkg/registry/core/pod/strategy.go applySeccompVersionSkew
 */
export function mirrorSeccomp(pod: Pod): void {
  const mirror = (key: string, holder: Holder): void => {
    const profile = holder.securityContext?.seccompProfile ?? undefined;
    const annotations = pod.metadata.annotations ?? {};
    const annotation = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
    if (profile && annotation === undefined) {
      const name = annotationOf(profile);
      if (name !== undefined) pod.metadata.annotations = { ...annotations, [key]: name };
    } else if (!profile && annotation !== undefined) {
      const named = profileOf(annotation);
      if (named) holder.securityContext = { ...holder.securityContext, seccompProfile: named };
    }
  };
  mirror(seccompPod, pod.spec);
  for (const list of containerLists)
    for (const container of pod.spec[list] ?? []) mirror(`${seccompContainer}${container.name}`, container);
}

interface Holder {
  securityContext?: { seccompProfile?: SeccompProfile };
}

const localhost = "localhost/";

function annotationOf({ type, localhostProfile }: SeccompProfile): string | undefined {
  switch (type) {
    case "Unconfined":
      return "unconfined";
    case "RuntimeDefault":
      return "runtime/default";
    case "Localhost":
      return localhostProfile == null ? undefined : `${localhost}${localhostProfile}`;
    default:
      return undefined;
  }
}

function profileOf(annotation: string): SeccompProfile | undefined {
  if (annotation === "unconfined") return { type: "Unconfined" };
  if (annotation === "runtime/default" || annotation === "docker/default") return { type: "RuntimeDefault" };
  const file = annotation.startsWith(localhost) ? annotation.slice(localhost.length) : "";
  return file === "" ? undefined : { type: "Localhost", localhostProfile: file };
}
