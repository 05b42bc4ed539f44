/**
 * Matches a policy rule against a request.
 * Source: pkg/apis/rbac/v1/evaluation_helpers.go, plugin/pkg/auth/authorizer/rbac/rbac.go
 */
import { withoutStars } from "@coxswain/apimachinery/objects/meta/without-stars";
import type { Attributes, PolicyRule } from "./authorizer.ts";

/**
 * Whether the rule allows the request. `*` stands for every verb, group or resource; without resourceNames every name matches.
 */
export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!has(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest) return nonResourceUrlMatches(rule.nonResourceURLs, attributes.path);
  return (
    has(rule.apiGroups, attributes.group) &&
    resourceMatches(rule.resources, attributes.resource, attributes.subresource) &&
    (rule.resourceNames === undefined || rule.resourceNames.length === 0 || rule.resourceNames.includes(attributes.name))
  );
}

function has(list: readonly string[] | undefined, wanted: string): boolean {
  return list !== undefined && (list.includes(wanted) || list.includes("*"));
}

function resourceMatches(resources: readonly string[] | undefined, resource: string, subresource: string): boolean {
  if (resources === undefined) return false;
  if (resources.includes("*")) return true;
  if (subresource === "") return resources.includes(resource);
  return resources.includes(`${resource}/${subresource}`) || resources.includes(`*/${subresource}`);
}

function nonResourceUrlMatches(urls: readonly string[] | undefined, path: string): boolean {
  if (urls === undefined) return false;
  return urls.some((url) => url === "*" || url === path || (url.endsWith("*") && path.startsWith(withoutStars(url))));
}
