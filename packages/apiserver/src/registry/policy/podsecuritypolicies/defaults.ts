import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSecurityPolicy } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";

export function defaultPodSecurityPolicy(object: KubeObject): void {
  const { spec } = object as PodSecurityPolicy;
  if (spec) spec.allowPrivilegeEscalation ??= true;
}
