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
    for (const key of [...requested].sort()) {
      const tolerations = pod.spec.tolerations ?? [];
      const isSame = (had: Toleration): boolean =>
        had.key === key && had.operator === "Exists" && had.effect === "NoSchedule" && !had.value;
      const wanted: Toleration = { key, operator: "Exists", effect: "NoSchedule" };
      const at = tolerations.findIndex(isSame);
      pod.spec.tolerations = at < 0 ? [...tolerations, wanted] : tolerations.with(at, wanted);
    }
  },
});
