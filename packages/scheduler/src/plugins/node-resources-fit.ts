import { isExtendedResource } from "@coxswain/apimachinery/objects/validation/resource-names";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import { defaultPluginArgs } from "../config/argument-rows.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import type { Plugin } from "../framework/extension-points.ts";
import { unschedulable } from "../framework/status.ts";
import { scorerOf } from "./resource-allocation.ts";

/**
 * Rejects nodes without enough free resources; scores by the configured strategy, LeastAllocated by default.
 * @throws Error for an unknown strategy
 */
export function newNodeResourcesFit(args: PluginArgs["NodeResourcesFit"] = defaultPluginArgs.NodeResourcesFit): Plugin {
  const { scoringStrategy, ignoredResources = [], ignoredResourceGroups = [] } = args;
  const scorer = scorerOf(scoringStrategy);
  if (scorer === undefined) throw new Error(`scoring strategy ${scoringStrategy.type} is not supported`);
  const names = new Set(ignoredResources);
  const groups = new Set(ignoredResourceGroups);
  const isIgnored = (name: string): boolean =>
    (names.has(name) || groups.has(name.slice(0, name.indexOf("/")))) && isExtendedResource(name);
  return {
    name: "NodeResourcesFit",
    idleAt: ["preFilter"],
    wakeUpOn: ["Pod/Delete", "Node/Add", "Node/UpdateAllocatable"],
    filter(_, pod, node) {
      const reasons = insufficient(pod, node, isIgnored);
      return reasons.length === 0 ? undefined : unschedulable(...reasons);
    },
    score: (_, pod, node) => scorer(pod, node),
  };
}

/** Pure: a reason with upstream's text for each resource that the node lacks; empty when the pod fits. */
export function insufficient(
  { requests }: PodInfo,
  { pods, allocatable, requested }: NodeInfo,
  isIgnored: (resource: string) => boolean = () => false,
): string[] {
  const reasons: string[] = [];
  if (pods.size + 1 > allocatable.pods) reasons.push("Too many pods");
  const requestsResources =
    requests.milliCpu > 0 || requests.memory > 0 || requests.ephemeralStorage > 0 || requests.scalars.size > 0;
  if (!requestsResources) return reasons;
  if (requests.milliCpu > allocatable.milliCpu - requested.milliCpu) reasons.push("Insufficient cpu");
  if (requests.memory > allocatable.memory - requested.memory) reasons.push("Insufficient memory");
  if (requests.ephemeralStorage > allocatable.ephemeralStorage - requested.ephemeralStorage)
    reasons.push("Insufficient ephemeral-storage");
  for (const [name, amount] of requests.scalars) {
    if (isIgnored(name)) continue;
    if (amount > (allocatable.scalars.get(name) ?? 0) - (requested.scalars.get(name) ?? 0)) reasons.push(`Insufficient ${name}`);
  }
  return reasons;
}
