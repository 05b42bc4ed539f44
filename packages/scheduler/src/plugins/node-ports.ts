import type { HostPort, NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { Plugin } from "../framework/extension-points.ts";
import { unschedulable } from "../framework/status.ts";

/** Rejects nodes where a requested host port is in use for the same protocol and address. */
export const newNodePorts = (): Plugin => ({
  name: "NodePorts",
  idleAt: ["preFilter"],
  wakeUpOn: ["Pod/Delete", "Node/Add"],
  filter: (_, pod, node) =>
    hasFreePorts(pod, node) ? undefined : unschedulable("node(s) didn't have free ports for the requested pod ports"),
});

/** True when none of the pod's host ports conflicts with a pod on the node. `0.0.0.0` conflicts with every address. */
export function hasFreePorts({ hostPorts }: PodInfo, node: NodeInfo): boolean {
  return !hostPorts.some((port) => isTaken(port, node));
}

function isTaken({ ip, protocol, port }: HostPort, { usedPorts }: NodeInfo): boolean {
  const addresses = usedPorts.get(`${protocol}/${port}`);
  if (addresses === undefined || addresses.size === 0) return false;
  return ip === "0.0.0.0" || addresses.has("0.0.0.0") || addresses.has(ip);
}
