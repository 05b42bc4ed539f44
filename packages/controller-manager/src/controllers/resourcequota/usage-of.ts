/** What the objects of a namespace take of one quota. Source: k8s.io/apiserver pkg/quota/v1 CalculateUsage, CalculateUsageStats */
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { addResources, maskResources, type ResourceList } from "@coxswain/apimachinery/quota/resource-list";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import type { ResourceQuotaSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** One resource with its objects in the quota's namespace. */
export interface CountedResource {
  readonly evaluator: QuotaEvaluator;
  readonly objects: readonly KubeObject[];
}

/** @returns what is used of each bounded name that one of the resources can use up; `"0"` where nothing is used. */
export function usageOf(spec: ResourceQuotaSpec | undefined, counted: readonly CountedResource[]): ResourceList {
  const bounded = Object.keys(spec?.hard ?? {});
  let total: ResourceList = {};
  for (const { evaluator, objects } of counted) {
    const names = evaluator.matching(bounded);
    if (names.length === 0) continue;
    total = addResources(total, Object.fromEntries(names.map((name) => [name, "0"])));
    for (const object of objects) {
      if (evaluator.inScope(spec, object)) total = addResources(total, maskResources(evaluator.usage(object), names));
    }
  }
  return total;
}
