import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AdmissionPlugin } from "../plugin.ts";

const notReady = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" } as const;

/** Taints new nodes as not-ready until they first report Ready. Source: plugin/pkg/admission/nodetaint/admission.go */
export const taintNodesByCondition = (): AdmissionPlugin => ({
  name: "TaintNodesByCondition",
  handles: (operation) => operation === "CREATE",
  resources: ["nodes"],
  async admit({ resource, subresource, object }) {
    if (resource.group !== "" || resource.resource !== "nodes" || subresource !== "" || object === undefined) return;
    const node = object as Node;
    const taints = node.spec?.taints ?? [];
    if (taints.some(({ key, effect }) => key === notReady.key && effect === notReady.effect)) return;
    node.spec = { ...node.spec, taints: [...taints, { ...notReady }] };
  },
});
