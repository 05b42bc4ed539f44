import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";

/** Prefers nodes where cpu and memory would be used to the same share. */
export const newNodeResourcesBalancedAllocation = (): Plugin => ({
  name: "NodeResourcesBalancedAllocation",
  score(_, { requests }, { requested, allocatable }) {
    const shares = [
      [requested.milliCpu + requests.milliCpu, allocatable.milliCpu],
      [requested.memory + requests.memory, allocatable.memory],
    ].flatMap(([used = 0, capacity = 0]) => (capacity === 0 ? [] : [Math.min(used / capacity, 1)]));
    return Math.trunc((1 - standardDeviation(shares)) * maxNodeScore);
  },
});

function standardDeviation(values: readonly number[]): number {
  if (values.length === 2) return Math.abs(((values[0] as number) - (values[1] as number)) / 2);
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(values.length, 1));
}
