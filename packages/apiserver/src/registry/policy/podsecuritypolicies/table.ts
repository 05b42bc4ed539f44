import type { PodSecurityPolicy } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import { tableOf } from "../../cells.ts";

export const podSecurityPolicyTable = tableOf<PodSecurityPolicy>("podsecuritypolicies", (policy) => {
  const { spec } = policy;
  const list = (values: readonly string[] | undefined): string => (values ?? []).join(",");
  return [
    policy.metadata.name ?? "",
    String(spec?.privileged ?? false),
    list(spec?.allowedCapabilities),
    spec?.seLinux?.rule ?? "",
    spec?.runAsUser?.rule ?? "",
    spec?.fsGroup?.rule ?? "",
    spec?.supplementalGroups?.rule ?? "",
    spec?.readOnlyRootFilesystem ?? false,
    list(spec?.volumes),
  ];
});
