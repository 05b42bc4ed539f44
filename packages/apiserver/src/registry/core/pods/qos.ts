import type { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { PodSpec, ResourceList } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { quantityOf } from "../../field-checks.ts";

const counted = ["cpu", "memory"] as const;

/**
 * BestEffort asks for nothing, Guaranteed limits cpu and memory of every container to what it asks for, the rest is
 * Burstable. Source: pkg/apis/core/v1/helper/qos/qos.go
 */
export function qosClass(spec: PodSpec): "Guaranteed" | "Burstable" | "BestEffort" {
  const requests = new Map<string, Quantity>();
  const limits = new Map<string, Quantity>();
  let guaranteed = true;
  for (const container of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    addPositive(requests, container.resources?.requests);
    const limited = addPositive(limits, container.resources?.limits);
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

function addPositive(sums: Map<string, Quantity>, list: ResourceList | undefined): Set<string> {
  const found = new Set<string>();
  for (const name of counted) {
    const value = list?.[name];
    if (value === undefined) continue;
    const quantity = quantityOf(value);
    if (quantity.sign <= 0) continue;
    found.add(name);
    sums.set(name, sums.get(name)?.add(quantity) ?? quantity);
  }
  return found;
}
