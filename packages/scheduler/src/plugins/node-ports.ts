import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { Plugin } from "../framework/extension-points.ts";
import { unschedulable } from "../framework/status.ts";

/** Rejects nodes where a requested host port is in use for the same protocol and address. */
export const newNodePorts = (): Plugin => ({
  name: "NodePorts",
  idleAt: ["preFilter"],
  wakeUpOn: ["Pod/Delete", "Node/Add"],
  mayRefuse: (_, { hostPorts }) => hostPorts.size > 0,
  filter: (_, pod, node) =>
    hasFreePorts(pod, node) ? undefined : unschedulable("node(s) didn't have free ports for the requested pod ports"),
});

/** True when none of the pod's host ports conflicts with a pod on the node. `0.0.0.0` conflicts with every address. */
export function hasFreePorts({ hostPorts }: PodInfo, { usedPorts }: NodeInfo): boolean {
  if (hostPorts.size === 0 || usedPorts.size === 0) return true;
  // The smaller of both is walked through: a pod may request thousands of ports, of each of thousands of nodes.
  const ports = hostPorts.size < usedPorts.size ? hostPorts.keys() : usedPorts.keys();
  for (const port of ports) if (clash(hostPorts.get(port), usedPorts.get(port))) return false;
  return true;
}

function clash(wanted: ReadonlySet<string> | undefined, used: ReadonlySet<string> | undefined): boolean {
  if (wanted === undefined || used === undefined || wanted.size === 0 || used.size === 0) return false;
  return wanted.has("0.0.0.0") || used.has("0.0.0.0") || !wanted.isDisjointFrom(used);
}
