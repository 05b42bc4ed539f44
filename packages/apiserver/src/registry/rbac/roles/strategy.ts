import { child, type FieldError, index, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type { ClusterRole } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import type { CatalogueConfig } from "../../config.ts";
import { readSelector } from "../../core/pods/validation/pod-template.ts";
import { checkLabelSelector } from "../../field-checks.ts";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { refuseAggregation, refuseEscalation } from "../escalation.ts";
import { changesOnlyGcFields } from "../gc-fields.ts";
import { pathSegmentNameProblems } from "../names.ts";

/** Roles and cluster roles. Source: pkg/registry/rbac/{role,clusterrole}/strategy.go, pkg/apis/rbac/validation */
export function newRoleStrategy(config: Pick<CatalogueConfig, "services">, namespaced: boolean): Strategy<ClusterRole> {
  const resource = namespaced ? "roles" : "clusterroles";
  const refuse = async (role: ClusterRole, gathered: boolean, ctx: StrategyContext, urlName = ""): Promise<void> => {
    const target = { resource, namespace: role.metadata.namespace ?? "", name: role.metadata.name ?? "", urlName };
    await refuseEscalation(config, ctx, target, role.rules ?? []);
    if (gathered || role.aggregationRule !== undefined) await refuseAggregation(config, ctx, target);
  };
  return {
    namespaceScoped: namespaced,
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    validateName: pathSegmentNameProblems,
    validate: (next) => validateRole(next, namespaced),
    validateUpdate: (next) => validateRole(next, namespaced),
    async beginCreate(next, ctx) {
      await refuse(next, false, ctx);
      return undefined;
    },
    async beginUpdate(next, current, ctx) {
      // Label changes are checked too: aggregated roles select this one's rules by label.
      if (!changesOnlyGcFields(next, current)) await refuse(next, current.aggregationRule !== undefined, ctx, next.metadata.name);
      return undefined;
    },
  };
}

function validateRole(role: ClusterRole, namespaced: boolean): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, rule] of (role.rules ?? []).entries()) {
    const at = index("rules", i);
    if (!rule.verbs?.length) errors.push(required(child(at, "verbs"), "verbs must contain at least one value"));
    if (rule.nonResourceURLs?.length) {
      if (namespaced)
        errors.push(
          invalidValue(child(at, "nonResourceURLs"), rule.nonResourceURLs, "namespaced rules cannot apply to non-resource URLs"),
        );
      if (rule.apiGroups?.length || rule.resources?.length || rule.resourceNames?.length) {
        errors.push(
          invalidValue(
            child(at, "nonResourceURLs"),
            rule.nonResourceURLs,
            "rules cannot apply to both regular resources and non-resource URLs",
          ),
        );
      }
      continue;
    }
    if (!rule.apiGroups?.length)
      errors.push(required(child(at, "apiGroups"), "resource rules must supply at least one api group"));
    if (!rule.resources?.length)
      errors.push(required(child(at, "resources"), "resource rules must supply at least one resource"));
  }
  if (!namespaced && role.aggregationRule) {
    const selectors = role.aggregationRule.clusterRoleSelectors ?? [];
    if (selectors.length === 0) {
      errors.push(
        required(
          "aggregationRule.clusterRoleSelectors",
          "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ),
      );
    }
    for (const [i, selector] of selectors.entries()) {
      const at = index("aggregationRule.clusterRoleSelectors", i);
      errors.push(...checkLabelSelector(selector, at));
      // Upstream reports the result of parsing as the bad value, which is nil.
      if (!readSelector(selector)) errors.push(invalidValue(at, null, "invalid label selector."));
    }
  }
  return errors;
}
