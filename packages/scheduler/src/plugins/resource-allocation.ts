import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ResourceWeight, ScoringStrategy, ShapePoint } from "../config/plugin-args.ts";
import { maxNodeScore } from "../framework/extension-points.ts";

/**
 * The node's allocatable amount of a resource for scoring; 0 when the resource takes no part in it: the node has none, or the pod does
 * not request the extended resource.
 * Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go
 */
export function capacityOf(resource: string, { requests }: PodInfo, { allocatable }: NodeInfo): number {
  if (resource === "cpu") return allocatable.milliCpu;
  if (resource === "memory") return allocatable.memory;
  if (resource === "ephemeral-storage") return allocatable.ephemeralStorage;
  return (requests.scalars.get(resource) ?? 0) > 0 ? (allocatable.scalars.get(resource) ?? 0) : 0;
}

/** The amount that the pods of the node request with the incoming one. @param nonZero assumes default requests for containers without cpu or memory requests */
export function requestedWith(
  pod: PodInfo,
  { requested, nonZeroRequested }: NodeInfo,
  resource: string,
  nonZero: boolean,
): number {
  const { requests } = pod;
  if (resource === "cpu")
    return nonZero ? nonZeroRequested.milliCpu + pod.nonZero.milliCpu : requested.milliCpu + requests.milliCpu;
  if (resource === "memory") return nonZero ? nonZeroRequested.memory + pod.nonZero.memory : requested.memory + requests.memory;
  if (resource === "ephemeral-storage") return requested.ephemeralStorage + requests.ephemeralStorage;
  return (requested.scalars.get(resource) ?? 0) + (requests.scalars.get(resource) ?? 0);
}

/** Scoring function of a strategy, 0 to 100. @returns undefined for an unknown strategy */
export function scorerOf({
  type,
  resources,
  requestedToCapacityRatio,
}: ScoringStrategy): ((pod: PodInfo, node: NodeInfo) => number) | undefined {
  if (type === "LeastAllocated") return (pod, node) => Math.trunc(weightedMean(resources, pod, node, leastAllocated));
  if (type === "MostAllocated") return (pod, node) => Math.trunc(weightedMean(resources, pod, node, mostAllocated));
  if (type !== "RequestedToCapacityRatio") return undefined;
  const shape = requestedToCapacityRatio?.shape ?? [];
  // Resources with score 0 are left out of the mean. Source: requested_to_capacity_ratio.go
  const ratio = (requested: number, capacity: number): number | undefined => shapeScore(shape, requested, capacity) || undefined;
  return (pod, node) => Math.round(weightedMean(resources, pod, node, ratio));
}

/** @param scoreOf undefined for a resource that is left out */
function weightedMean(
  resources: readonly ResourceWeight[],
  pod: PodInfo,
  node: NodeInfo,
  scoreOf: (requested: number, capacity: number) => number | undefined,
): number {
  let sum = 0;
  let weights = 0;
  for (const { name, weight } of resources) {
    const capacity = capacityOf(name, pod, node);
    const score = capacity === 0 ? undefined : scoreOf(requestedWith(pod, node, name, true), capacity);
    if (score === undefined) continue;
    sum += score * weight;
    weights += weight;
  }
  return weights === 0 ? 0 : sum / weights;
}

const leastAllocated = (requested: number, capacity: number): number =>
  requested > capacity ? 0 : Math.trunc(((capacity - requested) * maxNodeScore) / capacity);

const mostAllocated = (requested: number, capacity: number): number =>
  Math.trunc((Math.min(requested, capacity) * maxNodeScore) / capacity);

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
