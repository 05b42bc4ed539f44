import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/schema/kinds/policy/v1";

/** Stands in for "no pod": an empty selector of v1beta1 means that, of v1 it means all. Source: pkg/apis/policy/v1beta1/conversion.go */
const noPods = { key: "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", operator: "DoesNotExist" } as const;

export function budgetToV1(object: KubeObject): KubeObject {
  const budget = object as PodDisruptionBudget;
  budget.apiVersion = "policy/v1";
  const selector = budget.spec?.selector;
  if (!selector || Object.keys(selector.matchLabels ?? {}).length > 0) return budget;
  const expressions = selector.matchExpressions ?? [];
  if (expressions.length === 0) selector.matchExpressions = [{ key: noPods.key, operator: "Exists" }];
  else if (expressions.length === 1 && expressions[0]?.key === noPods.key && expressions[0].operator === noPods.operator) {
    delete selector.matchExpressions;
  }
  return budget;
}

export function budgetFromV1(object: KubeObject): KubeObject {
  const budget = { ...object, apiVersion: "policy/v1beta1" } as PodDisruptionBudget;
  const selector = budget.spec?.selector;
  if (!selector || Object.keys(selector.matchLabels ?? {}).length > 0) return budget;
  const expressions = selector.matchExpressions ?? [];
  if (expressions.length === 0) {
    budget.spec = { ...budget.spec, selector: { ...selector, matchExpressions: [{ ...noPods }] } };
  } else if (expressions.length === 1 && expressions[0]?.key === noPods.key && expressions[0].operator === "Exists") {
    const { matchExpressions: _marker, ...rest } = selector;
    budget.spec = { ...budget.spec, selector: rest };
  }
  return budget;
}
