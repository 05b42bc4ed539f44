/**
 * Computes the usage of a quota from the objects of its namespace.
 * Source: k8s.io/apiserver pkg/quota/v1 CalculateUsage, CalculateUsageStats
 */
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ResourceQuotaSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { quantityIn, type ResourceList } from "@coxswain/apimachinery/quota/resource-list";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";

/** A resource with its objects in the quota's namespace. */
export interface CountedResource {
  readonly evaluator: QuotaEvaluator;
  readonly objects: readonly KubeObject[];
}

/** Pure: usage of each restricted name that one of the resources matches; `"0"` without usage. */
export function usageOf(spec: ResourceQuotaSpec | undefined, counted: readonly CountedResource[]): ResourceList {
  const bounded = Object.keys(spec?.hard ?? {});
  const totals = new Map<string, Quantity>();
  const read = newReader();
  for (const { evaluator, objects } of counted) {
    const names = evaluator.matching(bounded);
    if (names.length === 0) continue;
    for (const name of names) if (!totals.has(name)) totals.set(name, zero);
    for (const object of objects) {
      if (!evaluator.inScope(spec, object)) continue;
      const usage = evaluator.usage(object);
      for (const name of names) {
        const amount = read(usage, name);
        if (amount !== undefined) totals.set(name, totals.get(name)!.add(amount));
      }
    }
  }
  return Object.fromEntries([...totals].map(([name, total]) => [name, total.toString()]));
}

const zero = Quantity.fromValue(0);

/** Parses each quantity once: many Pods share a few different values. */
function newReader(): (list: ResourceList, name: string) => Quantity | undefined {
  const known = new Map<unknown, Quantity | undefined>();
  return (list, name) => {
    if (!Object.hasOwn(list, name)) return undefined;
    const text = list[name];
    if (!known.has(text)) known.set(text, quantityIn(list, name));
    return known.get(text);
  };
}
