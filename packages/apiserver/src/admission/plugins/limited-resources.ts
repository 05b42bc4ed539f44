/**
 * Configuration of the ResourceQuota plugin: resources that may be consumed only when a quota covers them, selected by
 * resource name or, for pods, by scope (priority class).
 * Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/{config,controller}.go
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  Pod,
  ResourceQuotaSpec,
  ScopedResourceSelectorRequirement,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { withoutZeros } from "@coxswain/apimachinery/quota/resource-list";
import { podMatchesScope, scopesOf } from "@coxswain/apimachinery/quota/scopes";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";

export interface LimitedResource {
  readonly apiGroup?: string;
  readonly resource: string;
  /** Limits quota resource names that contain one of these strings: `.storageclass.storage.k8s.io/requests.storage`. */
  readonly matchContains?: readonly string[];
  readonly matchScopes?: readonly ScopedResourceSelectorRequirement[];
}

interface CoveringQuota {
  readonly spec?: ResourceQuotaSpec | undefined;
  readonly status?: { readonly hard?: Readonly<Record<string, string>> } | undefined;
}

/**
 * @param limited entries for the resource of the request
 * @param quotas all quotas of the namespace
 * @returns sorted names of consumed resources that no quota covers
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

/** @returns matching scopes that no quota covers, in Go's formatting: `{PriorityClass In [critical]}` */
export function uncoveredScopes(
  limited: readonly LimitedResource[],
  object: KubeObject,
  quotas: readonly CoveringQuota[],
): string[] {
  const scopes = limited.flatMap(({ resource, matchScopes = [] }) => (resource === "pods" ? matchScopes : []));
  const pod = object as Pod; // cast: read for entries of pods alone, and `limited` has entries for the resource of the object alone
  const matched = scopes.filter((scope) => podMatchesScope(pod, scope));
  if (matched.length === 0) return [];
  const coveredScopes = new Set(
    quotas.flatMap(({ spec }) => scopesOf(spec).filter((scope) => podMatchesScope(pod, scope))).map(({ scopeName }) => scopeName),
  );
  return matched
    .filter(({ scopeName }) => !coveredScopes.has(scopeName))
    .map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(" ")}]}`);
}
