import { defaultPluginArgs } from "../config/argument-rows.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";
import { capacityOf, requestedWith } from "./resource-allocation.ts";

/** Prefers nodes where the utilization of the resources is balanced once the pod is placed. */
export const newNodeResourcesBalancedAllocation = (
  { resources }: PluginArgs["NodeResourcesBalancedAllocation"] = defaultPluginArgs.NodeResourcesBalancedAllocation,
): Plugin => ({
  name: "NodeResourcesBalancedAllocation",
  score(_, pod, node) {
    const shares: number[] = [];
    for (const { name } of resources) {
      const capacity = capacityOf(name, pod, node);
      if (capacity !== 0) shares.push(Math.min(requestedWith(pod, node, name, false) / capacity, 1));
    }
    return Math.trunc((1 - standardDeviation(shares)) * maxNodeScore);
  },
});

function standardDeviation(values: readonly number[]): number {
  if (values.length < 2) return 0;
  if (values.length === 2) return Math.abs((values[0]! - values[1]!) / 2);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
}
