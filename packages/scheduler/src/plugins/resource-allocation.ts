import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ResourceWeight, ScoringStrategy, ShapePoint } from "../config/plugin-args.ts";
import { maxNodeScore } from "../framework/extension-points.ts";

/** Requested amount of one resource on the node, incoming pod included, and the allocatable amount. */
interface Allocation {
  readonly requested: number;
  readonly allocatable: number;
  readonly weight: number;
}

/**
 * The resources that take part in scoring: those that the node has; extended resources only when the pod requests them.
 * @param nonZero assumes default requests for containers without cpu or memory requests
 * Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go
 */
export function allocationsOf(
  resources: readonly ResourceWeight[],
  pod: PodInfo,
  { allocatable, requested, nonZeroRequested }: NodeInfo,
  nonZero: boolean,
): Allocation[] {
  const allocations: Allocation[] = [];
  const push = (taken: number, ofPod: number, capacity: number, weight: number): void => {
    if (capacity !== 0) allocations.push({ requested: taken + ofPod, allocatable: capacity, weight });
  };
  const base = nonZero ? nonZeroRequested : requested;
  const podRequests = nonZero ? pod.nonZero : pod.requests;
  for (const { name, weight } of resources) {
    if (name === "cpu") push(base.milliCpu, podRequests.milliCpu, allocatable.milliCpu, weight);
    else if (name === "memory") push(base.memory, podRequests.memory, allocatable.memory, weight);
    else if (name === "ephemeral-storage")
      push(requested.ephemeralStorage, pod.requests.ephemeralStorage, allocatable.ephemeralStorage, weight);
    else {
      const wanted = pod.requests.scalars.get(name) ?? 0;
      if (wanted > 0) push(requested.scalars.get(name) ?? 0, wanted, allocatable.scalars.get(name) ?? 0, weight);
    }
  }
  return allocations;
}

/** Scoring function of a strategy, 0 to 100. @returns undefined for an unknown strategy */
export function scorerOf({
  type,
  requestedToCapacityRatio,
}: ScoringStrategy): ((of: readonly Allocation[]) => number) | undefined {
  if (type === "LeastAllocated") return (of) => weightedMean(of, leastAllocated);
  if (type === "MostAllocated") return (of) => weightedMean(of, mostAllocated);
  if (type !== "RequestedToCapacityRatio") return undefined;
  const shape = requestedToCapacityRatio?.shape ?? [];
  return (of) => ratioScore(of, shape);
}

function weightedMean(allocations: readonly Allocation[], score: (allocation: Allocation) => number): number {
  let sum = 0;
  let weights = 0;
  for (const allocation of allocations) {
    sum += score(allocation) * allocation.weight;
    weights += allocation.weight;
  }
  return weights === 0 ? 0 : Math.trunc(sum / weights);
}

const leastAllocated = ({ requested, allocatable }: Allocation): number =>
  requested > allocatable ? 0 : Math.trunc(((allocatable - requested) * maxNodeScore) / allocatable);

const mostAllocated = ({ requested, allocatable }: Allocation): number =>
  Math.trunc((Math.min(requested, allocatable) * maxNodeScore) / allocatable);

/** Resources with score 0 are left out of the mean. Source: requested_to_capacity_ratio.go */
function ratioScore(allocations: readonly Allocation[], shape: readonly ShapePoint[]): number {
  let sum = 0;
  let weights = 0;
  for (const { requested, allocatable, weight } of allocations) {
    const score = shapeScore(shape, requested, allocatable);
    if (score <= 0) continue;
    sum += score * weight;
    weights += weight;
  }
  return weights === 0 ? 0 : Math.round(sum / weights);
}

/** Score from 0 to 100 for a utilization of `requested / capacity`. */
export function shapeScore(shape: readonly ShapePoint[], requested: number, capacity: number): number {
  return onShape(shape, requested > capacity || capacity === 0 ? 100 : Math.trunc((requested * 100) / capacity));
}

/** Piecewise linear interpolation through the points; constant outside their range. */
function onShape(shape: readonly ShapePoint[], utilization: number): number {
  const scale = (score: number): number => score * (maxNodeScore / 10);
  for (const [i, point] of shape.entries()) {
    if (utilization > point.utilization) continue;
    const before = shape[i - 1];
    if (before === undefined) return scale(point.score);
    const share = Math.trunc(
      ((scale(point.score) - scale(before.score)) * (utilization - before.utilization)) /
        (point.utilization - before.utilization),
    );
    return scale(before.score) + share;
  }
  return scale(shape.at(-1)?.score ?? 0);
}
