import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Selectable fields of pods. Source: pkg/registry/core/pod/strategy.go ToSelectableFields */
export function podFields({ spec, status }: Pod): Record<string, string> {
  return {
    "spec.nodeName": spec?.nodeName ?? "",
    "spec.restartPolicy": spec?.restartPolicy ?? "",
    "spec.schedulerName": spec?.schedulerName ?? "",
    "spec.serviceAccountName": spec?.serviceAccountName ?? "",
    "status.phase": status?.phase ?? "",
    // Accepted in selectors, but never set, like upstream.
    "status.podIPs": "",
    "status.podIP": status?.podIPs?.[0]?.ip ?? status?.podIP ?? "",
    "status.nominatedNodeName": status?.nominatedNodeName ?? "",
  };
}
