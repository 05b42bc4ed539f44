import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";
import { unschedulable } from "../framework/status.ts";

/** Only pods that fit into what is left; prefers nodes with more left (LeastAllocated). */
export const newNodeResourcesFit = (): Plugin => ({
  name: "NodeResourcesFit",
  wakeUpOn: ["Pod/Delete", "Node/Add", "Node/UpdateAllocatable"],
  filter(_, pod, node) {
    const reasons = insufficient(pod, node);
    return reasons.length === 0 ? undefined : unschedulable(...reasons);
  },
  score(_, pod, node) {
    const cpu = leastRequested(node.nonZeroRequested.milliCpu + pod.nonZero.milliCpu, node.allocatable.milliCpu);
    const memory = leastRequested(node.nonZeroRequested.memory + pod.nonZero.memory, node.allocatable.memory);
    const scores = [cpu, memory].filter((score) => score !== undefined);
    return scores.length === 0 ? 0 : Math.trunc(scores.reduce((sum, score) => sum + score, 0) / scores.length);
  },
});

/** Pure: what the node has too little of, in upstream's words. */
export function insufficient({ requests }: PodInfo, { pods, allocatable, requested }: NodeInfo): string[] {
  const reasons: string[] = [];
  if (pods.size + 1 > allocatable.pods) reasons.push("Too many pods");
  const asks = requests.milliCpu > 0 || requests.memory > 0 || requests.ephemeralStorage > 0 || requests.scalars.size > 0;
  if (!asks) return reasons;
  if (requests.milliCpu > allocatable.milliCpu - requested.milliCpu) reasons.push("Insufficient cpu");
  if (requests.memory > allocatable.memory - requested.memory) reasons.push("Insufficient memory");
  if (requests.ephemeralStorage > allocatable.ephemeralStorage - requested.ephemeralStorage)
    reasons.push("Insufficient ephemeral-storage");
  for (const [name, amount] of requests.scalars) {
    if (amount > (allocatable.scalars.get(name) ?? 0) - (requested.scalars.get(name) ?? 0)) reasons.push(`Insufficient ${name}`);
  }
  return reasons;
}

/** From 0 (full) to 100 (empty); undefined when the node does not say how much it has. */
function leastRequested(requested: number, capacity: number): number | undefined {
  if (capacity === 0) return undefined;
  return requested > capacity ? 0 : Math.trunc(((capacity - requested) * maxNodeScore) / capacity);
}
