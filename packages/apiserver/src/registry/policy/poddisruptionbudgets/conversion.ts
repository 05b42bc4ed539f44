/**
 * An empty selector matches no pods in v1beta1 and all pods in v1. The other meaning is expressed by a single requirement on a
 * marker label that no pod has; combined with other requirements, the marker is dropped.
 * Source: pkg/apis/policy/{v1,v1beta1}/conversion.go, pkg/apis/policy/helper.go
 */
import type { LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";

const marker = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
const matchNothing = { matchExpressions: [{ key: marker, operator: "Exists" }] };
const matchAll = { matchExpressions: [{ key: marker, operator: "DoesNotExist" }] };

export function budgetFromV1beta1(object: PodDisruptionBudget): PodDisruptionBudget {
  return withSelector(object, (selector) => {
    if (isEmpty(selector)) return matchNothing;
    return markerIn(selector) === "DoesNotExist" ? {} : withoutMarker(selector);
  });
}

export function budgetToV1beta1(object: PodDisruptionBudget): PodDisruptionBudget {
  return withSelector(object, (selector) => {
    if (isEmpty(selector)) return matchAll;
    return markerIn(selector) === "Exists" ? {} : selector;
  });
}

/** Normalizes a v1 object: drops the marker label unless it is the only requirement and has operator Exists. */
export function budgetOfV1(object: PodDisruptionBudget): PodDisruptionBudget {
  return withSelector(object, (selector) => (markerIn(selector) === "Exists" ? selector : withoutMarker(selector)));
}

function withSelector(object: PodDisruptionBudget, change: (selector: LabelSelector) => LabelSelector): PodDisruptionBudget {
  const { spec } = object;
  if (!spec?.selector) return object;
  return { ...object, spec: { ...spec, selector: structuredClone(change(spec.selector)) } };
}

function isEmpty({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

/** The operator of a selector that consists only of the marker. */
function markerIn({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string | undefined {
  const [only, ...more] = matchExpressions;
  const isMarker = only?.key === marker && (only.values ?? []).length === 0;
  return isMarker && more.length === 0 && Object.keys(matchLabels).length === 0 ? only.operator : undefined;
}

function withoutMarker(selector: LabelSelector): LabelSelector {
  if (!selector.matchExpressions?.some(({ key }) => key === marker)) return selector;
  return { ...selector, matchExpressions: selector.matchExpressions.filter(({ key }) => key !== marker) };
}
