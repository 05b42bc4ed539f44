import { matchesNode } from "@coxswain/apimachinery/scheduling/node-selector";
import type { NodeInfo, PodInfo } from "./cache/node-info.ts";
import { hasFreePorts } from "./plugins/node-ports.ts";
import { insufficient } from "./plugins/node-resources-fit.ts";

/**
 * Cheap check of resources, affinity, node name, ports and taints. Node events move only pods that pass it back to the queue.
 * Source: pkg/scheduler/eventhandlers.go preCheckForNode
 */
export function fitsAtAll(pod: PodInfo, node: NodeInfo): boolean {
  const { spec } = pod.pod;
  return (
    insufficient(pod, node).length === 0 &&
    matchesNode(pod.pod, node.node) &&
    (!spec.nodeName || spec.nodeName === node.name) &&
    hasFreePorts(pod, node) &&
    pod.tolerations.firstUntolerated(node.taints, ["NoSchedule", "NoExecute"]) === undefined
  );
}
