import { isForbidden } from "@coxswain/apimachinery/objects/errors/predicates";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { withoutStars } from "@coxswain/apimachinery/objects/meta/without-stars";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { PolicyRule } from "../../authorization/authorizer.ts";
import type { UserInfo } from "../../request/context.ts";
import type { CatalogueConfig } from "../config.ts";
import type { StrategyContext } from "../generic/strategy.ts";

/** Group with all permissions; also that of loopback requests of the server itself. */
const masters = "system:masters";
export const rbacGroup = "rbac.authorization.k8s.io";

/** The RBAC object that grants the rules, as named in the error. */
interface Target {
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
  const { rbacRules, turns } = config.services();
  const owned = await rbacRules?.(user, target.namespace);
  if (owned === undefined) return;
  const missing = await turns.run(uncoveredRules(owned.rules, rules));
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
/** Comparisons of two rules between two yields. */
const comparedAtOnce = 1000;

/** An owned rule with its lists as sets; a list may have tens of thousands of members. */
interface Owned {
  readonly verbs: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  readonly resources: ReadonlySet<string>;
  /** Empty: all objects. */
  readonly names: ReadonlySet<string>;
  readonly urls: ReadonlySet<string>;
  /** Prefixes of the URL patterns, by their length: `/logs/` for `/logs/*`. */
  readonly urlPrefixes: ReadonlyMap<number, ReadonlySet<string>>;
}

/**
 * The combinations (one verb and resource each) of `wanted` that `owned` does not cover, limited to the first ones. The number
 * of combinations of a rule is the product of its lists; beyond `mostParts`, a rule that no single owned rule covers is missing.
 * Source: pkg/registry/rbac/validation Covers
 */
export function* uncoveredRules(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): Steps<PolicyRule[]> {
  const held = yield* indexOf(owned);
  const missing: PolicyRule[] = [];
  let parts = 0;
  for (const rule of wanted) {
    if (yield* isCovered(held, rule)) continue;
    parts += partsOf(rule);
    if (parts > mostParts) return [...missing, rule];
    yield* addUncoveredParts(held, rule, missing);
    if (missing.length >= mostMissing) return missing;
  }
  return missing;
}

/** The owned rules, indexed by group and resource: comparing every wanted rule with every owned one takes seconds for 10,000 rules. */
interface OwnedRules {
  readonly all: readonly Owned[];
  /** Key: `<group> <resource>`, wildcards included. */
  readonly byPlace: ReadonlyMap<string, readonly Owned[]>;
  /** Rules for more than `mostPlaces` combinations of group and resource; they are not in `byPlace`. */
  readonly wide: readonly Owned[];
}

const mostPlaces = 16;
const placeOf = (group: string, resource: string): string => `${group} ${resource}`;

function* indexOf(owned: readonly PolicyRule[]): Steps<OwnedRules> {
  const all: Owned[] = [];
  const wide: Owned[] = [];
  const byPlace = new Map<string, Owned[]>();
  for (const rule of owned) {
    const one = ownedOf(rule);
    all.push(one);
    if (one.groups.size * one.resources.size > mostPlaces) wide.push(one);
    else {
      for (const group of one.groups) {
        for (const resource of one.resources) byPlace.getOrInsertComputed(placeOf(group, resource), () => []).push(one);
      }
    }
    yield;
  }
  return { all, wide, byPlace };
}

/** A superset of the rules that cover the resource. */
function rulesFor({ byPlace, wide }: OwnedRules, group: string, resource: string): readonly (readonly Owned[])[] {
  const slash = resource.indexOf("/");
  const resources = [resource, "*", ...(slash < 0 ? [] : [`*/${resource.slice(slash + 1)}`])];
  const places = [group, "*"].flatMap((one) => resources.map((other) => placeOf(one, other)));
  return [...[...new Set(places)].map((place) => byPlace.get(place) ?? []), wide];
}

function ownedOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs = [] }: PolicyRule): Owned {
  const prefixes = nonResourceURLs.filter((url) => url.endsWith("*")).map(withoutStars);
  const urlPrefixes = new Map<number, Set<string>>();
  for (const prefix of prefixes) urlPrefixes.getOrInsertComputed(prefix.length, () => new Set()).add(prefix);
  return {
    verbs: new Set(verbs),
    groups: new Set(apiGroups),
    resources: new Set(resources),
    names: new Set(resourceNames),
    urls: new Set(nonResourceURLs),
    urlPrefixes,
  };
}

const orOne = (list: readonly string[] | undefined): number => list?.length || 1;

function partsOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): number {
  return verbs.length * ((nonResourceURLs?.length ?? 0) + orOne(apiGroups) * orOne(resources) * orOne(resourceNames));
}

/** Whether a single owned rule covers the other one completely; avoids breaking it down. */
function* isCovered(owned: OwnedRules, rule: PolicyRule): Steps<boolean> {
  const [group] = rule.apiGroups ?? [];
  const [resource] = rule.resources ?? [];
  const candidates = group === undefined || resource === undefined ? [owned.all] : rulesFor(owned, group, resource);
  for (const list of candidates) {
    for (const [index, one] of list.entries()) {
      if (coversResources(one, rule) && (yield* coversUrls(one, rule.nonResourceURLs ?? []))) return true;
      if (index % comparedAtOnce === 0) yield;
    }
  }
  return false;
}

function coversResources(owned: Owned, { verbs, apiGroups = [], resources = [], resourceNames = [] }: PolicyRule): boolean {
  return (
    verbs.every((verb) => has(owned.verbs, verb)) &&
    apiGroups.every((group) => has(owned.groups, group)) &&
    resources.every((resource) => resourceCovered(owned.resources, resource)) &&
    (resourceNames.length === 0 ? nameCovered(owned, undefined) : resourceNames.every((name) => nameCovered(owned, name)))
  );
}

function* coversUrls(owned: Owned, urls: readonly string[]): Steps<boolean> {
  for (const [index, url] of urls.entries()) {
    if (!urlCovered(owned, url)) return false;
    if (index % 100 === 99) yield;
  }
  return true;
}

/** Filters the owned rules by resource and verb in turn, so that few are left to check for each name. */
function* addUncoveredParts(owned: OwnedRules, rule: PolicyRule, missing: PolicyRule[]): Steps<void> {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const names = resourceNames.length === 0 ? [undefined] : resourceNames;
  for (const group of apiGroups) {
    for (const resource of resources) {
      const candidates = rulesFor(owned, group, resource).flat();
      const ofResource = yield* those(candidates, (one) => has(one.groups, group) && resourceCovered(one.resources, resource));
      for (const verb of verbs) {
        const ofVerb = yield* those(ofResource, (one) => has(one.verbs, verb));
        for (const name of names) {
          if (ofVerb.length > comparedAtOnce) yield;
          if (ofVerb.some((one) => nameCovered(one, name))) continue;
          const named = name === undefined ? {} : { resourceNames: [name] };
          missing.push({ verbs: [verb], apiGroups: [group], resources: [resource], ...named });
          if (missing.length >= mostMissing) return;
        }
      }
    }
  }
  for (const url of nonResourceURLs) {
    const ofUrl = yield* those(owned.all, (one) => urlCovered(one, url));
    for (const verb of verbs) {
      if (!ofUrl.some((one) => has(one.verbs, verb))) missing.push({ verbs: [verb], nonResourceURLs: [url] });
      if (missing.length >= mostMissing) return;
    }
    yield;
  }
}

function* those(rules: readonly Owned[], wanted: (one: Owned) => boolean): Steps<Owned[]> {
  const found: Owned[] = [];
  for (const [index, one] of rules.entries()) {
    if (wanted(one)) found.push(one);
    if (index % comparedAtOnce === 0) yield;
  }
  return found;
}

function has(list: ReadonlySet<string>, value: string): boolean {
  return list.has("*") || list.has(value);
}

/** @param name undefined: all objects */
function nameCovered({ names }: Owned, name: string | undefined): boolean {
  return names.size === 0 || (name !== undefined && names.has(name));
}

function resourceCovered(owned: ReadonlySet<string>, resource: string): boolean {
  if (has(owned, resource)) return true;
  const slash = resource.indexOf("/");
  return slash >= 0 && owned.has(`*/${resource.slice(slash + 1)}`);
}

function urlCovered({ urls, urlPrefixes }: Owned, url: string): boolean {
  if (urls.has(url)) return true;
  for (const [length, prefixes] of urlPrefixes) {
    if (length <= url.length && prefixes.has(url.slice(0, length))) return true;
  }
  return false;
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
