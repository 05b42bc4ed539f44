/**
 * Role-based access control: allows a request when an applicable rule allows it. Never denies, so that later authorizers are
 * consulted.
 * Source: plugin/pkg/auth/authorizer/rbac/rbac.go
 */
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Authorizer } from "./authorizer.ts";
import { ruleAllows } from "./policy-rule.ts";
import type { RbacBinding, RbacPolicy, RbacRole, RbacRuleResolver } from "./rule-resolver.ts";

export function rbac(resolver: RbacRuleResolver): Authorizer {
  return (attributes) => {
    const { rules, errors } = resolver.appliedRules(attributes.user, attributes.namespace);
    for (const { rule, source } of rules) {
      if (ruleAllows(rule, attributes)) return { decision: "allow", reason: `RBAC: allowed by ${source()}` };
    }
    if (errors.length === 0) return { decision: "no-opinion" };
    return { decision: "no-opinion", reason: `RBAC: ${errors.length === 1 ? errors[0] : `[${errors.join(", ")}]`}` };
  };
}

/** RBAC policy backed by informers. */
export function informedRbacPolicy(informers: InformerFactory): RbacPolicy & { readonly synced: boolean } {
  const sources = {
    roles: informers.for<RbacRole & { metadata: object }>(roles),
    roleBindings: informers.for<RbacBinding & { metadata: object }>(roleBindings),
    clusterRoles: informers.for<RbacRole & { metadata: object }>(clusterRoles),
    clusterRoleBindings: informers.for<RbacBinding & { metadata: object }>(clusterRoleBindings),
  };
  let version = 0;
  const changed = (): void => {
    version++;
  };
  for (const informer of Object.values(sources)) informer.addHandler({ added: changed, updated: changed, deleted: changed });
  return {
    get version() {
      return version;
    },
    get synced() {
      return Object.values(sources).every((informer) => informer.synced);
    },
    role: (namespace, name) => sources.roles.lister.get(`${namespace}/${name}`),
    clusterRole: (name) => sources.clusterRoles.lister.get(name),
    roleBindings: (namespace) => sources.roleBindings.lister.inNamespace(namespace),
    clusterRoleBindings: () => sources.clusterRoleBindings.lister.list(),
  };
}
