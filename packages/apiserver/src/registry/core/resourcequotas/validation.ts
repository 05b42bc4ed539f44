import { addErrors, child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { type GoText, goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  ResourceList,
  ResourceQuota,
  ResourceQuotaSpec,
  ScopedResourceSelectorRequirement,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { fieldImmutableText } from "../../field-checks.ts";
import { eachKeyInSteps } from "../../rules.ts";
import { checkQuantity, checkResourceName, isHugePage } from "../pods/validation/resources.ts";

/** Source: pkg/apis/core/validation ValidateResourceQuota */
export function* validateQuota(quota: ResourceQuota): Steps<FieldError[]> {
  const spec = quota.spec ?? {};
  const errors = yield* validateAmounts(spec.hard, "spec.hard");
  yield;
  addErrors(errors, validateScopes(spec, "spec.scopes"));
  addErrors(errors, validateSelector(spec, "spec.scopeSelector.matchExpressions"));
  return errors;
}

/**
 * Scopes are immutable; their order and duplicates do not matter.
 * Source: pkg/apis/core/validation ValidateResourceQuotaUpdate
 */
export function* validateQuotaUpdate(next: ResourceQuota, current: ResourceQuota): Steps<FieldError[]> {
  const sorted = (scopes: readonly string[] | undefined) => [...new Set(scopes ?? [])].sort();
  const same = semanticEqual(sorted(next.spec?.scopes), sorted(current.spec?.scopes));
  return [
    ...(yield* validateQuota(next)),
    ...(same ? [] : [invalidValue("spec.scopes", goStrings("core.ResourceQuotaScope", next.spec?.scopes), fieldImmutableText)]),
  ];
}

export function validateQuotaStatus(next: ResourceQuota): FieldError[] {
  return (["hard", "used"] as const).flatMap((field) => atOnce(validateAmounts(next.status?.[field], child("status", field))));
}

const podCounts = ["pods"];
const podAmounts = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
const otherQuotas = [
  "ephemeral-storage",
  "requests.storage",
  "requests.ephemeral-storage",
  "limits.ephemeral-storage",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "persistentvolumeclaims",
  "configmaps",
  "services.nodeports",
  "services.loadbalancers",
];
const standardQuotas = new Set([...podCounts, ...podAmounts, ...otherQuotas]);

function isStandardQuota(name: string): boolean {
  return standardQuotas.has(name) || isHugePage(name) || isHugePage(name.replace(/^requests\./, ""));
}

function* validateAmounts(amounts: ResourceList | undefined, path: string): Steps<FieldError[]> {
  return yield* eachKeyInSteps(amounts, path, (name, value, at) => {
    const errors = checkResourceName(name, at);
    if (!name.includes("/") && !isStandardQuota(name))
      errors.push(invalidValue(at, name, "must be a standard resource for quota"));
    addErrors(errors, checkQuantity(name, value, at));
    return errors;
  });
}

const limitedScopes = ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
const standardScopes = [...limitedScopes, "PriorityClass"];
const conflicts = [
  ["BestEffort", "NotBestEffort"],
  ["Terminating", "NotTerminating"],
] as const;

/** Whether a scope can limit a resource: the number of pods and, except for BestEffort, their compute resources. */
function scopeFits(scope: string, resource: string): boolean {
  if (!standardScopes.includes(scope) || podCounts.includes(resource)) return true;
  return scope !== "BestEffort" && podAmounts.includes(resource);
}

const unfit = (spec: ResourceQuotaSpec, scope: string): string[] =>
  Object.keys(spec.hard ?? {}).filter((name) => isStandardQuota(name) && !scopeFits(scope, name));

function validateScopes(spec: ResourceQuotaSpec, path: string): FieldError[] {
  const scopes: readonly string[] = spec.scopes ?? [];
  const shown = goStrings("core.ResourceQuotaScope", scopes);
  return [
    ...scopes.flatMap((scope) => [
      ...(standardScopes.includes(scope) ? [] : [invalidValue(path, shown, "unsupported scope")]),
      ...unfit(spec, scope).map(() => invalidValue(path, shown, "unsupported scope applied to resource")),
    ]),
    ...conflicting(scopes, shown, path),
  ];
}

function conflicting(scopes: readonly string[], shown: GoText, path: string): FieldError[] {
  return conflicts
    .filter((pair) => pair.every((scope) => scopes.includes(scope)))
    .map(() => invalidValue(path, shown, "conflicting scopes"));
}

/** Error paths lack the index, like upstream's. */
function validateSelector(spec: ResourceQuotaSpec, path: string): FieldError[] {
  const terms = spec.scopeSelector?.matchExpressions ?? [];
  const names = terms.map((term) => term.scopeName);
  return [
    ...terms.flatMap((term) => validateTerm(term, spec, path)),
    ...conflicting(names, goStrings("core.ResourceQuotaScope", spec.scopes), path),
  ];
}

const existText =
  "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

function validateTerm(term: ScopedResourceSelectorRequirement, spec: ResourceQuotaSpec, path: string): FieldError[] {
  const { scopeName = "", operator = "", values = [] }: { scopeName?: string; operator?: string; values?: string[] } = term;
  const errors: FieldError[] = [];
  if (!standardScopes.includes(scopeName)) errors.push(invalidValue(child(path, "scopeName"), scopeName, "unsupported scope"));
  for (const _name of unfit(spec, scopeName))
    errors.push(
      invalidValue(path, goStruct("core/v1.ScopeSelector", spec.scopeSelector), "unsupported scope applied to resource"),
    );
  const at = child(path, "operator");
  if (limitedScopes.includes(scopeName) && operator !== "Exists") errors.push(invalidValue(at, operator, existText));
  if (operator === "In" || operator === "NotIn") {
    const text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
    if (values.length === 0) errors.push(required(child(path, "values"), text));
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    const text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
    if (values.length > 0) errors.push(invalidValue(child(path, "values"), values, text));
  } else errors.push(invalidValue(at, operator, "not a valid selector operator"));
  return errors;
}
