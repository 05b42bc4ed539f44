import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AdmissionPlugin } from "../plugin.ts";

const notReady = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" } as const;

/** Taints new nodes as not-ready until they first report Ready. Source: plugin/pkg/admission/nodetaint/admission.go */
export const taintNodesByCondition = (): AdmissionPlugin<Node> => ({
  name: "TaintNodesByCondition",
  handles: (operation) => operation === "CREATE",
  resources: ["nodes"],
  async admit({ resource, subresource, object }) {
    if (resource.group !== "" || resource.resource !== "nodes" || subresource !== "" || object === undefined) return;
    const taints = object.spec?.taints ?? [];
    if (taints.some(({ key, effect }) => key === notReady.key && effect === notReady.effect)) return;
    object.spec = { ...object.spec, taints: [...taints, { ...notReady }] };
  },
});
