import { forbidden } from "@coxswain/apimachinery/errors/status-error";
import type { PolicyRule } from "../../authorization/authorizer.ts";
import type { UserInfo } from "../../request/context.ts";
import type { CatalogueConfig } from "../config.ts";
import type { StrategyContext } from "../generic/strategy.ts";

/** The group whose members may do everything; loopback requests of the server itself have it. */
const masters = "system:masters";
export const rbacGroup = "rbac.authorization.k8s.io";

interface Target {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Nobody gives away rights that they do not have, unless they may `escalate` the role.
 * @throws 403 with the rules that are missing.
 * Source: pkg/registry/rbac/role/policybased/storage.go, pkg/registry/rbac/validation/rule.go
 */
export async function refuseEscalation(
  config: Pick<CatalogueConfig, "services">,
  ctx: StrategyContext,
  target: Target,
  rules: readonly PolicyRule[],
): Promise<void> {
  const user = ctx.user;
  if (!user || user.groups.includes(masters)) return;
  const services = config.services();
  if (services.authorize === undefined || services.resolveRules === undefined) return;
  const may = await services.authorize({
    user,
    verb: "escalate",
    isResourceRequest: true,
    namespace: target.namespace,
    group: rbacGroup,
    version: "*",
    resource: target.resource,
    subresource: "",
    name: target.name,
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
  const owned = await config.services().resolveRules?.(user, target.namespace);
  if (owned === undefined) return;
  const missing = uncoveredRules(owned.rules, rules);
  if (missing.length === 0) return;
  const groups = user.groups.map((group) => JSON.stringify(group)).join(" ");
  const message = `user ${JSON.stringify(user.name)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${missing.map(ruleText).sort().join("\n")}`;
  throw forbidden({ group: rbacGroup, resource: target.resource }, target.name, message);
}

/** The parts of `wanted` that `owned` does not cover, one verb and resource each. Source: pkg/registry/rbac/validation Covers */
export function uncoveredRules(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap(breakdown).filter((part) => !owned.some((rule) => covers(rule, part)));
}

function breakdown(rule: PolicyRule): PolicyRule[] {
  const parts: PolicyRule[] = [];
  for (const verb of rule.verbs ?? []) {
    for (const group of rule.apiGroups ?? []) {
      for (const resource of rule.resources ?? []) {
        if (rule.resourceNames?.length) {
          for (const name of rule.resourceNames)
            parts.push({ verbs: [verb], apiGroups: [group], resources: [resource], resourceNames: [name] });
        } else parts.push({ verbs: [verb], apiGroups: [group], resources: [resource] });
      }
    }
    for (const url of rule.nonResourceURLs ?? []) parts.push({ verbs: [verb], nonResourceURLs: [url] });
  }
  return parts;
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
  if (pattern === "*" || pattern === url) return true;
  return pattern.endsWith("*") && url.startsWith(pattern.slice(0, -1));
}

/** Source: pkg/apis/rbac/helpers.go CompactString */
function ruleText(rule: PolicyRule): string {
  const list = (values: readonly string[]): string => `[${values.map((value) => JSON.stringify(value)).join(" ")}]`;
  const parts: string[] = [];
  if (rule.apiGroups?.length) parts.push(`APIGroups:${list(rule.apiGroups)}`);
  if (rule.resources?.length) parts.push(`Resources:${list(rule.resources)}`);
  if (rule.nonResourceURLs?.length) parts.push(`NonResourceURLs:${list(rule.nonResourceURLs)}`);
  if (rule.resourceNames?.length) parts.push(`ResourceNames:${list(rule.resourceNames)}`);
  if (rule.verbs?.length) parts.push(`Verbs:${list(rule.verbs)}`);
  return `{${parts.join(", ")}}`;
}
