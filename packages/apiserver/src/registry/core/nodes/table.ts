import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

/** kubectl get nodes. Source: pkg/printers/internalversion/printers.go printNode */
export const nodeTable = tableOf<Node>("nodes", (node, ages) => {
  const info = node.status?.nodeInfo;
  return [
    node.metadata.name ?? "",
    statusText(node),
    rolesText(node),
    age(node, ages),
    info?.kubeletVersion ?? "",
    addressText(node, "InternalIP"),
    addressText(node, "ExternalIP"),
    info?.osImage || "<unknown>",
    info?.kernelVersion || "<unknown>",
    info?.containerRuntimeVersion || "<unknown>",
  ];
});

function statusText(node: Node): string {
  const ready = (node.status?.conditions ?? []).find((condition) => condition.type === "Ready");
  const texts = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
  if (node.spec?.unschedulable) texts.push("SchedulingDisabled");
  return texts.join(",");
}

const rolePrefix = "node-role.kubernetes.io/";

function rolesText(node: Node): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata.labels ?? {})) {
    if (key.startsWith(rolePrefix) && key.length > rolePrefix.length) roles.add(key.slice(rolePrefix.length));
    else if (key === "kubernetes.io/role" && value !== "") roles.add(value);
  }
  return roles.size === 0 ? "<none>" : [...roles].sort().join(",");
}

function addressText(node: Node, type: string): string {
  return (node.status?.addresses ?? []).find((address) => address.type === type)?.address ?? "<none>";
}
