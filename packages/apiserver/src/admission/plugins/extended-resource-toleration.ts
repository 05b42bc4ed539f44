/**
 * Adds tolerations for the taints of dedicated nodes to pods that request extended resources; the taint key is the
 * resource name.
 * Source: plugin/pkg/admission/extendedresourcetoleration/admission.go, pkg/apis/core/helper/helpers.go
 */
import type { Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isExtendedResource } from "@coxswain/apimachinery/objects/validation/resource-names";
import type { AdmissionPlugin } from "../plugin.ts";
import { podOf } from "./pod-of.ts";

export const extendedResourceToleration = (): AdmissionPlugin => ({
  name: "ExtendedResourceToleration",
  handles: (operation) => operation === "CREATE" || operation === "UPDATE",
  async admit(attributes) {
    const pod = podOf(attributes);
    if (pod === undefined) return;
    const containers = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])];
    const requested = new Set(
      containers.flatMap(({ resources }) => Object.keys(resources?.requests ?? {})).filter(isExtendedResource),
    );
    if (requested.size === 0) return;
    const tolerations = [...(pod.spec.tolerations ?? [])];
    for (const [at, had] of tolerations.entries()) {
      const { key = "" } = had;
      if (had.operator !== "Exists" || had.effect !== "NoSchedule" || had.value || !requested.delete(key)) continue;
      tolerations[at] = tolerationOf(key);
    }
    pod.spec.tolerations = [...tolerations, ...[...requested].sort().map(tolerationOf)];
  },
});

function tolerationOf(key: string): Toleration {
  return { key, operator: "Exists", effect: "NoSchedule" };
}
