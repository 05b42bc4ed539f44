import { isForbidden } from "@coxswain/apimachinery/errors/predicates";
import { forbidden } from "@coxswain/apimachinery/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import { withoutStars } from "@coxswain/apimachinery/meta/without-stars";
import type { PolicyRule } from "../../authorization/authorizer.ts";
import type { UserInfo } from "../../request/context.ts";
import type { CatalogueConfig } from "../config.ts";
import type { StrategyContext } from "../generic/strategy.ts";

/** Group with all permissions; also that of loopback requests of the server itself. */
const masters = "system:masters";
export const rbacGroup = "rbac.authorization.k8s.io";

/** The RBAC object that grants the rules, as named in the error. */
export interface Target {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

interface RoleTarget extends Target {
  /** Name in the request path (`""` for a POST), used in the authorization check of the verb `escalate`. */
  readonly urlName: string;
}

/**
 * Users may only grant permissions that they have themselves, unless they have the verb `escalate` on the role.
 * @throws 403 with the missing rules
 * Source: pkg/registry/rbac/role/policybased/storage.go, pkg/registry/rbac/validation/rule.go
 */
export async function refuseEscalation(
  config: Pick<CatalogueConfig, "services">,
  ctx: StrategyContext,
  target: RoleTarget,
  rules: readonly PolicyRule[],
): Promise<void> {
  const user = ctx.user;
  if (!user || user.groups.includes(masters)) return;
  const services = config.services();
  if (services.authorize === undefined || services.rbacRules === undefined) return;
  const may = await services.authorize({
    user,
    verb: "escalate",
    isResourceRequest: true,
    namespace: target.namespace,
    group: rbacGroup,
    version: "*",
    resource: target.resource,
    subresource: "",
    name: target.urlName,
    path: "",
  });
  if (may.decision === "allow") return;
  await refuseUncovered(config, user, target, rules);
}

/** Compares rules with those that RBAC grants the user in the target's namespace. @throws 403 with the missing rules */
export async function refuseUncovered(
  config: Pick<CatalogueConfig, "services">,
  user: UserInfo,
  target: Target,
  rules: readonly PolicyRule[],
): Promise<void> {
  const owned = await config.services().rbacRules?.(user, target.namespace);
  if (owned === undefined) return;
  const missing = uncoveredRules(owned.rules, rules);
  if (missing.length === 0) return;
  const held = `user ${goQuote(user.name)} (groups=${quoteList(user.groups)})`;
  const texts = new Set(compactRules(missing).map(ruleText).sort());
  const failures = owned.errors.length === 0 ? "" : `; resolution errors: [${owned.errors.map((err) => err.message).join(", ")}]`;
  const message = `${held} is attempting to grant RBAC permissions not currently held:\n${[...texts].join("\n")}${failures}`;
  throw forbidden({ group: rbacGroup, resource: target.resource }, target.name, message);
}

/** Roles with an aggregationRule require full permissions, because it may select any role. @throws 403 */
export async function refuseAggregation(
  config: Pick<CatalogueConfig, "services">,
  ctx: StrategyContext,
  target: RoleTarget,
): Promise<void> {
  try {
    await refuseEscalation(config, ctx, target, fullAuthority);
  } catch (err) {
    if (!isForbidden(err)) throw err;
    const gr = { group: rbacGroup, resource: target.resource };
    throw forbidden(gr, target.name, "must have cluster-admin privileges to use the aggregationRule");
  }
}

const fullAuthority: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

/** Merges rules for one resource that differ only in verbs. Source: pkg/registry/rbac/validation/policy_compact.go */
export function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const compact: PolicyRule[] = [];
  const simple = new Map<string, PolicyRule>();
  for (const rule of rules) {
    const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
    if (apiGroups.length !== 1 || resources.length !== 1 || resourceNames.length > 1 || nonResourceURLs.length > 0) {
      compact.push(rule);
      continue;
    }
    const key = JSON.stringify([apiGroups, resources, resourceNames]);
    const before = simple.get(key);
    simple.set(key, before === undefined ? rule : { ...before, verbs: [...before.verbs, ...rule.verbs] });
  }
  return [...compact, ...simple.values()];
}

/** Limits of the breakdown of rules (verb × resource × …): combinations examined per role, and missing ones reported. */
const mostParts = 50_000;
const mostMissing = 5000;

/**
 * The combinations (one verb and resource each) of `wanted` that `owned` does not cover, limited to the first ones. The number
 * of combinations of a rule is the product of its lists; beyond `mostParts`, a rule that no single owned rule covers is missing.
 * Source: pkg/registry/rbac/validation Covers
 */
export function uncoveredRules(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  const missing: PolicyRule[] = [];
  let parts = 0;
  for (const rule of wanted) {
    if (owned.some((one) => coversAll(one, rule))) continue;
    parts += partsOf(rule);
    if (parts > mostParts) return [...missing, rule];
    for (const part of uncoveredParts(owned, rule)) {
      missing.push(part);
      if (missing.length >= mostMissing) return missing;
    }
  }
  return missing;
}

const orOne = (list: readonly string[] | undefined): number => list?.length || 1;

function partsOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): number {
  return verbs.length * ((nonResourceURLs?.length ?? 0) + orOne(apiGroups) * orOne(resources) * orOne(resourceNames));
}

/** Whether a single owned rule covers the other one completely; avoids breaking it down. */
function coversAll(
  owned: PolicyRule,
  { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule,
) {
  return (
    verbs.every((verb) => has(owned.verbs, verb)) &&
    apiGroups.every((group) => has(owned.apiGroups, group)) &&
    resources.every((resource) => resourceCovered(owned.resources ?? [], resource)) &&
    (resourceNames.length === 0 ? nameCovered(owned, undefined) : resourceNames.every((name) => nameCovered(owned, name))) &&
    nonResourceURLs.every((url) => urlCovered(owned, url))
  );
}

/** Filters the owned rules by group, resource and verb in turn, so that few are left to check for each name. */
function* uncoveredParts(owned: readonly PolicyRule[], rule: PolicyRule): Generator<PolicyRule> {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const names = resourceNames.length === 0 ? [undefined] : resourceNames;
  for (const group of apiGroups) {
    const ofGroup = owned.filter((one) => has(one.apiGroups, group));
    for (const resource of resources) {
      const ofResource = ofGroup.filter((one) => resourceCovered(one.resources ?? [], resource));
      for (const verb of verbs) {
        const ofVerb = ofResource.filter((one) => has(one.verbs, verb));
        for (const name of names) {
          if (ofVerb.some((one) => nameCovered(one, name))) continue;
          const named = name === undefined ? {} : { resourceNames: [name] };
          yield { verbs: [verb], apiGroups: [group], resources: [resource], ...named };
        }
      }
    }
  }
  for (const url of nonResourceURLs) {
    const ofUrl = owned.filter((one) => urlCovered(one, url));
    for (const verb of verbs) if (!ofUrl.some((one) => has(one.verbs, verb))) yield { verbs: [verb], nonResourceURLs: [url] };
  }
}

function has(list: readonly string[] | undefined, value: string): boolean {
  return list !== undefined && (list.includes("*") || list.includes(value));
}

/** @param name undefined: all objects */
function nameCovered({ resourceNames = [] }: PolicyRule, name: string | undefined): boolean {
  return resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name));
}

function resourceCovered(owned: readonly string[], resource: string): boolean {
  if (owned.includes("*") || owned.includes(resource)) return true;
  const slash = resource.indexOf("/");
  return slash >= 0 && owned.includes(`*/${resource.slice(slash + 1)}`);
}

function urlCovered({ nonResourceURLs = [] }: PolicyRule, url: string): boolean {
  return nonResourceURLs.some((pattern) => pattern === url || (pattern.endsWith("*") && url.startsWith(withoutStars(pattern))));
}

/** Source: pkg/apis/rbac/helpers.go CompactString */
function ruleText(rule: PolicyRule): string {
  const parts: string[] = [];
  if (rule.apiGroups?.length) parts.push(`APIGroups:${quoteList(rule.apiGroups)}`);
  if (rule.resources?.length) parts.push(`Resources:${quoteList(rule.resources)}`);
  if (rule.nonResourceURLs?.length) parts.push(`NonResourceURLs:${quoteList(rule.nonResourceURLs)}`);
  if (rule.resourceNames?.length) parts.push(`ResourceNames:${quoteList(rule.resourceNames)}`);
  if (rule.verbs?.length) parts.push(`Verbs:${quoteList(rule.verbs)}`);
  return `{${parts.join(", ")}}`;
}

/** Formats like Go's %q of a list. */
function quoteList(values: readonly string[]): string {
  return `[${values.map(goQuote).join(" ")}]`;
}
