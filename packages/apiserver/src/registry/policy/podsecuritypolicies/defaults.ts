import type { PodSecurityPolicy } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";

export function defaultPodSecurityPolicy({ spec }: PodSecurityPolicy): void {
  if (spec) spec.allowPrivilegeEscalation ??= true;
}
