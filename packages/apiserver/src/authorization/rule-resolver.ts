/**
 * Resolves the rules that apply to a user: those of roles bound to the user or one of their groups. Cluster role bindings
 * apply everywhere, role bindings in their namespace.
 * Source: pkg/registry/rbac/validation/rule.go
 */
import { LRUCache } from "lru-cache";
import type { UserInfo } from "../request/context.ts";
import { serviceAccountUsername } from "../request/user-names.ts";
import type { PolicyRule, RuleResolver } from "./authorizer.ts";

interface RbacSubject {
  kind: string;
  name: string;
  namespace?: string;
}
export interface RbacRole {
  metadata: { name?: string; namespace?: string };
  rules?: PolicyRule[] | null;
}
export interface RbacBinding {
  metadata: { name?: string; namespace?: string };
  subjects?: RbacSubject[];
  roleRef: { kind: string; name: string };
}

/** The stored policy. `version` changes with every change of it. */
export interface RbacPolicy {
  readonly version: number;
  role(namespace: string, name: string): RbacRole | undefined;
  clusterRole(name: string): RbacRole | undefined;
  roleBindings(namespace: string): readonly RbacBinding[];
  clusterRoleBindings(): readonly RbacBinding[];
}

interface AppliedRules {
  readonly rules: readonly { readonly rule: PolicyRule; readonly source: () => string }[];
  readonly errors: readonly string[];
}

export interface RbacRuleResolver {
  appliedRules(user: UserInfo, namespace: string): AppliedRules;
  readonly resolve: RuleResolver;
}

/** Longer keys are not cached: an access review may name a hundred thousand groups, and no cached key may hold a megabyte. */
const longestCachedKey = 4096;

/** Caches the rules per user and namespace until the policy's version changes. */
export function newRuleResolver(policy: RbacPolicy): RbacRuleResolver {
  // Few users send most requests, and policies change rarely.
  // It allocates memory for all entries at once, and not every server authorizes by RBAC.
  let cache: LRUCache<string, AppliedRules> | undefined;
  let version = -1;
  const appliedRules = (user: UserInfo, namespace: string): AppliedRules => {
    cache ??= new LRUCache({ max: 2048 });
    if (version !== policy.version) {
      cache.clear();
      version = policy.version;
    }
    const key = keyOf(user, namespace);
    let applied = cache.get(key);
    if (applied === undefined) {
      applied = collect(policy, user, namespace);
      if (key.length <= longestCachedKey) cache.set(key, applied);
    }
    return applied;
  };
  return {
    appliedRules,
    resolve: async (user, namespace) => {
      const { rules, errors } = appliedRules(user, namespace);
      return {
        rules: rules.map(({ rule }) => rule),
        incomplete: errors.length > 0,
        errors: errors.map((text) => new Error(text)),
      };
    },
  };
}

/** Length prefixes keep the key unambiguous, because names are arbitrary strings. */
function keyOf({ name, groups }: UserInfo, namespace: string): string {
  let key = `${namespace.length}:${namespace}${name.length}:${name}`;
  for (const group of groups) key += `${group.length}:${group}`;
  return key;
}

function collect(policy: RbacPolicy, user: UserInfo, namespace: string): AppliedRules {
  const rules: { rule: PolicyRule; source: () => string }[] = [];
  const errors = new Set<string>();
  const groups = new Set(user.groups);
  const add = (binding: RbacBinding): void => {
    const bindingNamespace = binding.metadata.namespace ?? "";
    const subject = binding.subjects?.find((candidate) => appliesTo(candidate, user, groups, bindingNamespace));
    if (subject === undefined) return;
    const found = rulesOf(policy, binding.roleRef, bindingNamespace);
    if (typeof found === "string") {
      errors.add(found);
      return;
    }
    const source = (): string => describe(binding, subject, bindingNamespace);
    for (const rule of found) rules.push({ rule, source });
  };
  for (const binding of policy.clusterRoleBindings()) add(binding);
  if (namespace !== "") for (const binding of policy.roleBindings(namespace)) add(binding);
  return { rules, errors: [...errors] };
}

function rulesOf(policy: RbacPolicy, ref: { kind: string; name: string }, namespace: string): readonly PolicyRule[] | string {
  switch (ref.kind) {
    case "Role":
      return policy.role(namespace, ref.name)?.rules ?? (policy.role(namespace, ref.name) ? [] : notFound("role", ref.name));
    case "ClusterRole":
      return policy.clusterRole(ref.name)?.rules ?? (policy.clusterRole(ref.name) ? [] : notFound("clusterrole", ref.name));
    default:
      return `unsupported role reference kind: ${JSON.stringify(ref.kind)}`;
  }
}

function notFound(kind: string, name: string): string {
  return `${kind}.rbac.authorization.k8s.io ${JSON.stringify(name)} not found`;
}

function appliesTo(subject: RbacSubject, user: UserInfo, groups: ReadonlySet<string>, bindingNamespace: string): boolean {
  switch (subject.kind) {
    case "User":
      return user.name === subject.name;
    case "Group":
      return groups.has(subject.name);
    case "ServiceAccount": {
      const namespace = subject.namespace || bindingNamespace;
      return namespace !== "" && user.name === serviceAccountUsername(namespace, subject.name);
    }
    default:
      return false;
  }
}

function describe(binding: RbacBinding, subject: RbacSubject, namespace: string): string {
  const [kind, name] =
    namespace === "" ? ["ClusterRoleBinding", binding.metadata.name] : ["RoleBinding", `${binding.metadata.name}/${namespace}`];
  const who = subject.kind === "ServiceAccount" ? `${subject.name}/${subject.namespace || namespace}` : subject.name;
  const { roleRef } = binding;
  return `${kind} ${JSON.stringify(name)} of ${roleRef.kind} ${JSON.stringify(roleRef.name)} to ${subject.kind} ${JSON.stringify(who)}`;
}
