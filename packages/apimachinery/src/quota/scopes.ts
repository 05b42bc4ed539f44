/** Scopes of resource quotas. Source: pkg/quota/v1/evaluator/core/pods.go podMatchesScopeFunc */
import type { Pod, ResourceQuotaSpec } from "../objects/schema/kinds/core/v1.ts";
import { qosClass } from "./qos.ts";

interface Requirement {
  scopeName: string;
  operator: string;
  values?: readonly string[];
}

/** All scope requirements of a quota; those in `spec.scopes` have the operator Exists. */
export function scopesOf(spec: ResourceQuotaSpec | undefined): Requirement[] {
  const plain = (spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: "Exists" }));
  return [...plain, ...(spec?.scopeSelector?.matchExpressions ?? [])];
}

/** A pure cache: each pod of a namespace is compared with a quota, which may have 100,000 requirements. */
const filters = new WeakMap<ResourceQuotaSpec, (pod: Pod) => boolean>();

/** True when the pod satisfies all scope requirements. @param spec never changed afterwards */
export function podMatchesScopes(pod: Pod, spec: ResourceQuotaSpec | undefined): boolean {
  return spec === undefined || filters.getOrInsertComputed(spec, newFilter)(pod);
}

function newFilter(spec: ResourceQuotaSpec): (pod: Pod) => boolean {
  const byScope = Map.groupBy(scopesOf(spec), ({ scopeName }) => scopeName);
  const ofPriority = byScope.get("PriorityClass") ?? [];
  byScope.delete("PriorityClass");
  // Other scopes have neither operators nor values.
  const others = [...byScope.values()].map(([first]) => first!);
  const byPriority = new Map<string, boolean>();
  return (pod) =>
    others.every((requirement) => podMatchesScope(pod, requirement)) &&
    byPriority.getOrInsertComputed(pod.spec?.priorityClassName ?? "", () =>
      ofPriority.every((requirement) => podMatchesScope(pod, requirement)),
    );
}

/** True when the pod satisfies the scope requirement. */
export function podMatchesScope(pod: Pod, { scopeName, operator, values = [] }: Requirement): boolean {
  switch (scopeName) {
    case "Terminating":
      return isTerminating(pod);
    case "NotTerminating":
      return !isTerminating(pod);
    case "BestEffort":
      return qosClass(pod) === "BestEffort";
    case "NotBestEffort":
      return qosClass(pod) !== "BestEffort";
    case "PriorityClass":
      return matchesPriority(pod.spec?.priorityClassName ?? "", operator, values);
    case "CrossNamespacePodAffinity":
      return usesCrossNamespaceAffinity(pod);
    default:
      return false;
  }
}

function isTerminating({ spec }: Pod): boolean {
  return spec?.activeDeadlineSeconds !== undefined && spec.activeDeadlineSeconds !== null && spec.activeDeadlineSeconds >= 0;
}

function matchesPriority(name: string, operator: string, values: readonly string[]): boolean {
  switch (operator) {
    case "In":
      return name !== "" && values.includes(name);
    case "NotIn":
      return name === "" || !values.includes(name);
    case "Exists":
      return name !== "";
    case "DoesNotExist":
      return name === "";
    default:
      return false;
  }
}

function usesCrossNamespaceAffinity({ spec }: Pod): boolean {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {};
  const terms = [podAffinity, podAntiAffinity].flatMap((affinity) => [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ]);
  return terms.some((term) => (term?.namespaces?.length ?? 0) > 0 || term?.namespaceSelector !== undefined);
}
