import { isForbidden } from "@coxswain/apimachinery/errors/predicates";
import { forbidden } from "@coxswain/apimachinery/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import { withoutStars } from "@coxswain/apimachinery/meta/without-stars";
import type { PolicyRule } from "../../authorization/authorizer.ts";
import type { UserInfo } from "../../request/context.ts";
import type { CatalogueConfig } from "../config.ts";
import type { StrategyContext } from "../generic/strategy.ts";

/** The group whose members may do everything; loopback requests of the server itself have it. */
const masters = "system:masters";
export const rbacGroup = "rbac.authorization.k8s.io";

export interface Target {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

interface RoleTarget extends Target {
  /** The name in the request's path, `""` for a POST: what the right to escalate is asked for. */
  readonly urlName: string;
}

/**
 * Nobody gives away rights that they do not have, unless they may `escalate` the role.
 * @throws 403 with the rules that are missing.
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

/** Who sets or changes what a role gathers must already have everything: it could gather anything. */
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

/** Rules for one resource that differ by their verbs alone become one. Source: pkg/registry/rbac/validation/policy_compact.go */
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

/** The parts of `wanted` that `owned` does not cover, one verb and resource each. Source: pkg/registry/rbac/validation Covers */
export function uncoveredRules(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap(breakdown).filter((part) => !owned.some((rule) => covers(rule, part)));
}

function breakdown(rule: PolicyRule): PolicyRule[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const names = resourceNames.length === 0 ? [{}] : resourceNames.map((name) => ({ resourceNames: [name] }));
  return [
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => names.map((name) => ({ verbs: [verb], apiGroups: [group], resources: [resource], ...name }))),
      ),
    ),
    ...nonResourceURLs.flatMap((url) => verbs.map((verb) => ({ verbs: [verb], nonResourceURLs: [url] }))),
  ];
}

function covers(rule: PolicyRule, part: PolicyRule): boolean {
  const has = (list: readonly string[] | undefined, value: string | undefined): boolean =>
    value === undefined || (list ?? []).includes("*") || (list ?? []).includes(value);
  if (!has(rule.verbs, part.verbs[0])) return false;
  const url = part.nonResourceURLs?.[0];
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some((pattern) => urlCovers(pattern, url));
  if (!has(rule.apiGroups, part.apiGroups?.[0])) return false;
  if (!resourceCovered(rule.resources ?? [], part.resources?.[0] ?? "")) return false;
  const names = rule.resourceNames ?? [];
  const name = part.resourceNames?.[0];
  if (names.length === 0) return true;
  return name !== undefined && names.includes(name);
}

function resourceCovered(owned: readonly string[], resource: string): boolean {
  if (owned.includes("*") || owned.includes(resource)) return true;
  const slash = resource.indexOf("/");
  return slash >= 0 && owned.includes(`*/${resource.slice(slash + 1)}`);
}

function urlCovers(pattern: string, url: string): boolean {
  return pattern === url || (pattern.endsWith("*") && url.startsWith(withoutStars(pattern)));
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

/** Go's %q of a list. */
function quoteList(values: readonly string[]): string {
  return `[${values.map(goQuote).join(" ")}]`;
}
