import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { AnyContainer, NodePod } from "./pod.ts";

export type ResourceList = Readonly<Record<string, string | undefined>>;

const zero = Quantity.parse("0");

/** @returns zero when the resource is missing or malformed */
export function quantityOf(list: ResourceList | undefined, name: string): Quantity {
  const text = list !== undefined && Object.hasOwn(list, name) ? list[name] : undefined;
  return text === undefined ? zero : (Quantity.tryParse(String(text)) ?? zero);
}

type Kind = "requests" | "limits";

/**
 * Requests or limits of a Pod: the sum over the containers or the largest init container, whichever is larger, plus the Pod's
 * overhead. Source: pkg/api/v1/resource/helpers.go PodRequestsAndLimits
 */
export function podResources(pod: NodePod, kind: Kind): Map<string, Quantity> {
  const total = new Map<string, Quantity>();
  for (const container of pod.spec.containers) {
    for (const [name, amount] of amounts(container.resources?.[kind])) total.set(name, (total.get(name) ?? zero).add(amount));
  }
  for (const container of pod.spec.initContainers ?? []) {
    for (const [name, amount] of amounts(container.resources?.[kind])) {
      const present = total.get(name);
      if (present === undefined || amount.cmp(present) > 0) total.set(name, amount);
    }
  }
  for (const [name, amount] of amounts(pod.spec.overhead)) {
    const present = total.get(name);
    if (kind === "requests" || (present !== undefined && !present.isZero)) total.set(name, (present ?? zero).add(amount));
  }
  return total;
}

function* amounts(list: ResourceList | undefined): Generator<[string, Quantity]> {
  for (const name of Object.keys(list ?? {})) yield [name, quantityOf(list, name)];
}

/** Pure: per name, the sum over the Pod's containers or the largest init container, whichever is larger. */
export function sumOverPod(pod: NodePod, of: (container: AnyContainer) => ReadonlyMap<string, number>): Map<string, number> {
  const total = new Map<string, number>();
  for (const container of pod.spec.containers)
    for (const [name, amount] of of(container)) total.set(name, (total.get(name) ?? 0) + amount);
  for (const container of pod.spec.initContainers ?? [])
    for (const [name, amount] of of(container)) total.set(name, Math.max(total.get(name) ?? 0, amount));
  return total;
}
