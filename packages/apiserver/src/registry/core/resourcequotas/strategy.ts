import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { ResourceQuota } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { checkQuantity, checkResourceName } from "../pods/validation/resources.ts";

/** Source: pkg/registry/core/resourcequota/strategy.go, pkg/apis/core/validation ValidateResourceQuota */
export const resourceQuotaStrategy: Strategy<ResourceQuota> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next) {
    next.status = {};
  },
  prepareForUpdate: (next, current) => keep(next, current, "status"),
  validate: (next) => validateQuota(next),
  validateUpdate(next, current) {
    const errors = validateQuota(next);
    const sorted = (scopes: readonly string[] | undefined) => [...(scopes ?? [])].sort();
    if (!semanticEqual(sorted(next.spec?.scopes), sorted(current.spec?.scopes))) {
      errors.push(invalidValue("spec.scopes", next.spec?.scopes ?? null, "field is immutable"));
    }
    return errors;
  },
};

export const resourceQuotaStatusStrategy: Strategy<ResourceQuota> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["spec"],
  prepareForUpdate: (next, current) => keep(next, current, "spec"),
  validateUpdate(next) {
    const errors: FieldError[] = [];
    for (const field of ["hard", "used"] as const) {
      for (const [name, value] of Object.entries(next.status?.[field] ?? {}))
        errors.push(...checkQuantity(name, value, `status.${field}[${name}]`));
    }
    return errors;
  },
};

const standardScopes = [
  "BestEffort",
  "CrossNamespacePodAffinity",
  "NotBestEffort",
  "NotTerminating",
  "PriorityClass",
  "Terminating",
];
const podResources = new Set(["pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"]);

function validateQuota(quota: ResourceQuota): FieldError[] {
  const errors: FieldError[] = [];
  const hard = Object.entries(quota.spec?.hard ?? {});
  for (const [name, value] of hard) {
    const at = `spec.hard[${name}]`;
    errors.push(...checkQuotaResource(name, at), ...checkQuantity(name, value, at));
  }
  const scopes = quota.spec?.scopes ?? [];
  const seen = new Set<string>();
  for (const scope of scopes) {
    if (!standardScopes.includes(scope)) errors.push(invalidValue("spec.scopes", scope, "unsupported scope"));
    else if (scope === "BestEffort" && hard.some(([name]) => name !== "pods" && name !== "count/pods")) {
      errors.push(invalidValue("spec.scopes", scopes, "unsupported scope applied to resource"));
    } else if (hard.some(([name]) => !podResources.has(name) && !name.includes("hugepages") && name !== "count/pods")) {
      errors.push(invalidValue("spec.scopes", scopes, "unsupported scope applied to resource"));
    }
    seen.add(scope);
  }
  for (const [a, b] of [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
  ] as const) {
    if (seen.has(a) && seen.has(b)) errors.push(invalidValue("spec.scopes", scopes, "conflicting scopes"));
  }
  for (const [i, term] of (quota.spec?.scopeSelector?.matchExpressions ?? []).entries()) {
    const at = index("spec.scopeSelector.matchExpressions", i);
    if (!standardScopes.includes(term.scopeName))
      errors.push(invalidValue(child(at, "scopeName"), term.scopeName ?? "", "unsupported scope"));
    const operator: string = term.operator ?? "";
    if (operator === "In" || operator === "NotIn") {
      if (!term.values?.length)
        errors.push(
          required(child(at, "values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
        );
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (term.values?.length)
        errors.push(
          invalidValue(
            child(at, "values"),
            term.values,
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
          ),
        );
    } else {
      errors.push(notSupported(child(at, "operator"), operator, ["DoesNotExist", "Exists", "In", "NotIn"]));
    }
    if (
      ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"].includes(term.scopeName) &&
      operator !== "Exists"
    ) {
      errors.push(
        invalidValue(
          child(at, "operator"),
          operator,
          "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
        ),
      );
    }
  }
  return errors;
}

const quotaResources = [
  "cpu",
  "memory",
  "ephemeral-storage",
  "requests.cpu",
  "requests.memory",
  "requests.storage",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "persistentvolumeclaims",
  "configmaps",
  "services.nodeports",
  "services.loadbalancers",
];

function checkQuotaResource(name: string, path: string): FieldError[] {
  const errors = checkResourceName(name, path);
  const named = errors.filter((error) => error.detail !== "must be a standard resource type or fully qualified");
  if (name.includes("/") || quotaResources.includes(name) || /^(requests\.)?hugepages-/.test(name)) return named;
  return named.length > 0 ? named : [invalidValue(path, name, "must be a standard resource for quota")];
}
