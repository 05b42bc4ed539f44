import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PodSecurityPolicy } from "@coxswain/apimachinery/schema/kinds/policy/v1beta1";

export function defaultPodSecurityPolicy(object: KubeObject): void {
  const { spec } = object as PodSecurityPolicy;
  if (spec) spec.allowPrivilegeEscalation ??= true;
}
