/**
 * ResourceQuota's configuration: what may be consumed only where a quota covers it, by resource name or, for pods, by
 * scope (a priority class).
 * Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/{config,controller}.go
 */
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { withoutZeros } from "@coxswain/apimachinery/quota/resource-list";
import { podMatchesScope, scopesOf } from "@coxswain/apimachinery/quota/scopes";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import type { Pod, ResourceQuotaSpec, ScopedResourceSelectorRequirement } from "@coxswain/apimachinery/schema/kinds/core/v1";

export interface LimitedResource {
  readonly apiGroup?: string;
  readonly resource: string;
  /** A resource name of a quota that contains one of these is limited: `.storageclass.storage.k8s.io/requests.storage`. */
  readonly matchContains?: readonly string[];
  readonly matchScopes?: readonly ScopedResourceSelectorRequirement[];
}

interface CoveringQuota {
  readonly spec?: ResourceQuotaSpec | undefined;
  readonly status?: { readonly hard?: Readonly<Record<string, string>> } | undefined;
}

/**
 * @param limited those of the written resource
 * @param quotas of the namespace
 * @returns names of what is consumed and no quota bounds, in order
 */
export function uncoveredNames(
  limited: readonly LimitedResource[],
  evaluator: QuotaEvaluator,
  object: KubeObject,
  quotas: readonly CoveringQuota[],
): string[] {
  const contained = limited.flatMap(({ matchContains = [] }) => matchContains);
  if (contained.length === 0) return [];
  const consumed = Object.keys(withoutZeros(evaluator.usage(object)));
  const names = consumed.filter((name) => contained.some((part) => name.includes(part)));
  const inScope = quotas.filter(({ spec }) => evaluator.inScope(spec, object));
  const covered = new Set(inScope.flatMap(({ status }) => evaluator.matching(Object.keys(status?.hard ?? {}))));
  return names.filter((name) => !covered.has(name)).sort();
}

/** @returns scopes that the pod is in and no quota has, as Go prints them: `{PriorityClass In [critical]}` */
export function uncoveredScopes(
  limited: readonly LimitedResource[],
  object: KubeObject,
  quotas: readonly CoveringQuota[],
): string[] {
  const pod = object as Pod;
  const matched = limited
    .flatMap(({ resource, matchScopes = [] }) => (resource === "pods" ? matchScopes : []))
    .filter((scope) => podMatchesScope(pod, scope));
  if (matched.length === 0) return [];
  const coveredScopes = new Set(
    quotas.flatMap(({ spec }) => scopesOf(spec).filter((scope) => podMatchesScope(pod, scope))).map(({ scopeName }) => scopeName),
  );
  return matched
    .filter(({ scopeName }) => !coveredScopes.has(scopeName))
    .map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(" ")}]}`);
}
