import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text, wide } from "../../cells.ts";

/** kubectl get nodes. Source: pkg/printers/internalversion/printers.go printNode */
export const nodeTable = tableOf<Node>(
  [
    nameColumn,
    text("Status", "The status of the node"),
    text("Roles", "The roles of the node"),
    ageColumn,
    text("Version", "Kubelet Version reported by the node."),
    wide(
      "Internal-IP",
      "List of addresses reachable to the node. Queried from cloud provider, if available. More info: https://kubernetes.io/docs/concepts/nodes/node/#addresses Note: This field is declared as mergeable, but the merge key is not sufficiently unique, which can cause data corruption when it is merged. Callers should instead use a full-replacement patch. See http://pr.k8s.io/79391 for an example.",
    ),
    wide(
      "External-IP",
      "List of addresses reachable to the node. Queried from cloud provider, if available. More info: https://kubernetes.io/docs/concepts/nodes/node/#addresses Note: This field is declared as mergeable, but the merge key is not sufficiently unique, which can cause data corruption when it is merged. Callers should instead use a full-replacement patch. See http://pr.k8s.io/79391 for an example.",
    ),
    wide("OS-Image", "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy))."),
    wide("Kernel-Version", "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64)."),
    wide("Container-Runtime", "ContainerRuntime Version reported by the node through runtime remote API (e.g. docker://1.5.0)."),
  ],
  (node, ages) => {
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
  },
);

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
