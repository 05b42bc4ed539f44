/** What the objects of a namespace take of one quota. Source: k8s.io/apiserver pkg/quota/v1 CalculateUsage, CalculateUsageStats */
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { quantityIn, type ResourceList } from "@coxswain/apimachinery/quota/resource-list";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import type { ResourceQuotaSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** One resource with its objects in the quota's namespace. */
export interface CountedResource {
  readonly evaluator: QuotaEvaluator;
  readonly objects: readonly KubeObject[];
}

/** Pure: what is used of each bounded name that one of the resources can use up; `"0"` where nothing is used. */
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
        if (amount !== undefined) totals.set(name, (totals.get(name) as Quantity).add(amount));
      }
    }
  }
  return Object.fromEntries([...totals].map(([name, total]) => [name, total.toString()]));
}

const zero = Quantity.fromValue(0);

/** Reads each text once: a hundred thousand pods ask for a handful of different amounts. */
function newReader(): (list: ResourceList, name: string) => Quantity | undefined {
  const known = new Map<unknown, Quantity | undefined>();
  return (list, name) => {
    if (!Object.hasOwn(list, name)) return undefined;
    const text = list[name];
    if (!known.has(text)) known.set(text, quantityIn(list, name));
    return known.get(text);
  };
}
