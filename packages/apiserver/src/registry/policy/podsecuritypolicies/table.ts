import type { PodSecurityPolicy } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import { nameColumn, tableOf, text } from "../../cells.ts";

export const podSecurityPolicyTable = tableOf<PodSecurityPolicy>(
  [
    nameColumn,
    text("Priv", "privileged determines if a pod can request to be run as privileged."),
    text(
      "Caps",
      "allowedCapabilities is a list of capabilities that can be requested to add to the container. Capabilities in this field may be added at the pod author's discretion. You must not list a capability in both allowedCapabilities and requiredDropCapabilities.",
    ),
    text("SELinux", "seLinux is the strategy that will dictate the allowable labels that may be set."),
    text("RunAsUser", "runAsUser is the strategy that will dictate the allowable RunAsUser values that may be set."),
    text("FsGroup", "fsGroup is the strategy that will dictate what fs group is used by the SecurityContext."),
    text(
      "SupGroup",
      "supplementalGroups is the strategy that will dictate what supplemental groups are used by the SecurityContext.",
    ),
    text(
      "ReadOnlyRootFs",
      "readOnlyRootFilesystem when set to true will force containers to run with a read only root file system.  If the container specifically requests to run with a non-read only root file system the PSP should deny the pod. If set to false the container may run with a read only root file system if it wishes but it will not be forced to.",
    ),
    text(
      "Volumes",
      "volumes is an allowlist of volume plugins. Empty indicates that no volumes may be used. To allow all volumes you may use '*'.",
    ),
  ],
  (policy) => {
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
  },
);
