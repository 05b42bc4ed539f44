import type { Quantity } from "../objects/meta/quantity.ts";
import type { PodSpec } from "../objects/schema/kinds/core/v1.ts";
import { quantityIn, type ResourceList } from "./resource-list.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

const counted = ["cpu", "memory"] as const;

/**
 * BestEffort: no requests and limits of cpu and memory. Guaranteed: all containers have limits for both, equal to the
 * requests. Burstable: all others. Source: pkg/apis/core/v1/helper/qos/qos.go
 */
export function qosClass({ spec }: { readonly spec?: PodSpec }): QosClass {
  const requests = new Map<string, Quantity>();
  const limits = new Map<string, Quantity>();
  let guaranteed = true;
  for (const { resources } of [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]) {
    addPositive(requests, resources?.requests);
    const limited = addPositive(limits, resources?.limits);
    if (!counted.every((name) => limited.has(name))) guaranteed = false;
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  if (!guaranteed || requests.size !== limits.size) return "Burstable";
  for (const [name, request] of requests) {
    const limit = limits.get(name);
    if (limit === undefined || limit.cmp(request) !== 0) return "Burstable";
  }
  return "Guaranteed";
}

function addPositive(sums: Map<string, Quantity>, list: ResourceList = {}): Set<string> {
  const found = new Set<string>();
  for (const name of counted) {
    const quantity = quantityIn(list, name);
    if (quantity === undefined || quantity.sign <= 0) continue;
    found.add(name);
    sums.set(name, sums.get(name)?.add(quantity) ?? quantity);
  }
  return found;
}
