import policy from "./rbac-policy.json" with { type: "json" };

/**
 * The default RBAC policy of 1.23, in `rbac-policy.json`; `rbac-policy.ts` applies it. Cluster roles named
 * `system:controller:<x>` are bound to the service account `<x>` in kube-system without a separate row. Two cluster roles
 * are Coxswain's own: `system:explain`, for all authenticated users, since an explanation shows only objects that its reader
 * may read, and `system:coxswain-diagnostics`, with which daemons receive and answer questions about their decisions.
 * Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/{policy,controller_policy,namespace_policy}.go
 */
export interface RuleRow {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}
export interface ClusterRoleRow {
  name: string;
  rules?: RuleRow[];
  /** Additional rules, by feature gate. */
  gated?: Readonly<Record<string, RuleRow[]>>;
  /** The role exists only when all of these feature gates are on. */
  onlyWith?: readonly string[];
  /** The role aggregates the roles with the label `aggregate-to-<this>`. */
  aggregateFrom?: string;
  aggregateTo?: string;
}
export interface SubjectRow {
  /** `User`, `Group` or `ServiceAccount`. */
  kind: string;
  name: string;
  namespace?: string;
}
interface BindingRow {
  name: string;
  role: string;
  subjects: SubjectRow[];
}
interface RoleRow {
  namespace: string;
  name: string;
  rules: RuleRow[];
}
interface NamespacedBindingRow extends BindingRow {
  namespace: string;
}

export const clusterRoles: readonly ClusterRoleRow[] = policy.clusterRoles;
export const clusterRoleBindings: readonly BindingRow[] = policy.clusterRoleBindings;
export const roles: readonly RoleRow[] = policy.roles;
export const roleBindings: readonly NamespacedBindingRow[] = policy.roleBindings;
