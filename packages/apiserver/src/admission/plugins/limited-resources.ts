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
 * @returns why the write has no quota to be charged to; undefined when all is covered.
 */
export function uncovered(
  limited: readonly LimitedResource[],
  evaluator: QuotaEvaluator,
  object: KubeObject,
  quotas: readonly CoveringQuota[],
): string | undefined {
  if (limited.length === 0) return undefined;
  const contained = limited.flatMap(({ matchContains = [] }) => matchContains);
  const consumed = Object.keys(withoutZeros(evaluator.usage(object)));
  const names = consumed.filter((name) => contained.some((part) => name.includes(part)));
  const inScope = quotas.filter(({ spec }) => evaluator.inScope(spec, object));
  const covered = new Set(inScope.flatMap(({ status }) => evaluator.matching(Object.keys(status?.hard ?? {}))));
  const missing = names.filter((name) => !covered.has(name));
  if (missing.length > 0) return `insufficient quota to consume: ${missing.sort().join(",")}`;

  const pod = object as Pod;
  const matched = limited
    .flatMap(({ resource, matchScopes = [] }) => (resource === "pods" ? matchScopes : []))
    .filter((scope) => podMatchesScope(pod, scope));
  const coveredScopes = new Set(
    quotas.flatMap(({ spec }) => scopesOf(spec).filter((scope) => podMatchesScope(pod, scope))).map(({ scopeName }) => scopeName),
  );
  const open = matched.filter(({ scopeName }) => !coveredScopes.has(scopeName));
  if (open.length === 0) return undefined;
  const texts = open.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(" ")}]}`);
  return `insufficient quota to match these scopes: [${texts.join(" ")}]`;
}
