/**
 * --audit-policy-file: selects which requests are audited, and at which level. The first matching rule decides; requests
 * that match no rule are not audited.
 * Source: k8s.io/apiserver pkg/audit/policy, pkg/apis/audit/validation
 */

import { readFileSync } from "node:fs";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import {
  type FieldError,
  formatFieldError,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { dns1123SubdomainProblems } from "@coxswain/apimachinery/objects/validation/dns";
import type { UserInfo } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";

export const levels = ["None", "Metadata", "Request", "RequestResponse"] as const;
export type Level = (typeof levels)[number];
const stages = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"] as const;
export type Stage = (typeof stages)[number];

interface GroupResources {
  readonly group?: string;
  /** `pods`, `pods/log`, `pods/*`, `*\/status`, `*`; empty matches all. */
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
}

export interface PolicyRule {
  readonly level: Level;
  readonly users?: readonly string[];
  readonly userGroups?: readonly string[];
  readonly verbs?: readonly string[];
  readonly resources?: readonly GroupResources[];
  /** `""` matches cluster-scoped resources. */
  readonly namespaces?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly omitStages?: readonly Stage[];
  readonly omitManagedFields?: boolean;
}

interface AuditPolicy {
  readonly rules: readonly PolicyRule[];
  readonly omitStages?: readonly Stage[];
  readonly omitManagedFields?: boolean;
}

/** Result of the policy for one request. */
export interface Verdict {
  readonly level: Level;
  readonly omitStages: ReadonlySet<Stage>;
  readonly omitManagedFields: boolean;
}

/** @param user undefined when authentication failed */
export type PolicyEvaluator = (user: UserInfo | undefined, info: RequestInfo) => Verdict;

export function newPolicyEvaluator(policy: AuditPolicy): PolicyEvaluator {
  const verdictOf = (level: Level, rule?: PolicyRule): Verdict => ({
    level,
    omitStages: new Set([...(policy.omitStages ?? []), ...(rule?.omitStages ?? [])]),
    omitManagedFields: rule?.omitManagedFields ?? policy.omitManagedFields ?? false,
  });
  const rules = policy.rules.map((rule) => ({ rule, verdict: verdictOf(rule.level, rule) }));
  const unmatched = verdictOf("None");
  return (user, info) => rules.find(({ rule }) => matches(rule, user, info))?.verdict ?? unmatched;
}

function matches(rule: PolicyRule, user: UserInfo | undefined, info: RequestInfo): boolean {
  if (filled(rule.users) && !(user !== undefined && rule.users.includes(user.name))) return false;
  if (filled(rule.userGroups)) {
    const wanted = rule.userGroups;
    if (user === undefined || !user.groups.some((group) => wanted.includes(group))) return false;
  }
  if (filled(rule.verbs) && !rule.verbs.includes(info.verb)) return false;
  if (filled(rule.namespaces) || filled(rule.resources)) return matchesResource(rule, info);
  if (filled(rule.nonResourceURLs)) {
    return !info.isResourceRequest && rule.nonResourceURLs.some((spec) => matchesPath(info.path, spec));
  }
  return true;
}

function matchesResource(rule: PolicyRule, info: RequestInfo): boolean {
  if (!info.isResourceRequest) return false;
  if (filled(rule.namespaces) && !rule.namespaces.includes(info.namespace)) return false;
  if (!filled(rule.resources)) return true;
  return rule.resources.some((group) => (group.group ?? "") === info.group && matchesGroup(group, info));
}

function matchesGroup({ resources, resourceNames }: GroupResources, { resource, subresource, name }: RequestInfo): boolean {
  if (!filled(resources)) return true;
  if (filled(resourceNames) && !resourceNames.includes(name)) return false;
  const whole = subresource === "" ? resource : `${resource}/${subresource}`;
  return resources.some(
    (wanted) =>
      wanted === "*" || wanted === whole || wanted === `${resource}/*` || (subresource !== "" && wanted === `*/${subresource}`),
  );
}

function matchesPath(path: string, spec: string): boolean {
  if (spec === "*" || spec === path) return true;
  return spec.endsWith("*") && path.startsWith(spec.replace(/\*+$/, ""));
}

function filled<T>(list: readonly T[] | undefined): list is readonly T[] {
  return list !== undefined && list.length > 0;
}

/** @throws Error naming the file and the problem. */
export function loadPolicy(path: string): AuditPolicy {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (err) {
    throw new Error(`failed to read file path ${JSON.stringify(path)}: ${messageOf(err)}`, { cause: err });
  }
  try {
    return parsePolicy(text);
  } catch (err) {
    throw new Error(`${messageOf(err)}: from file ${path}`, { cause: err });
  }
}

/** The policy is identical in all three versions. */
const versions = new Set(["audit.k8s.io/v1", "audit.k8s.io/v1beta1", "audit.k8s.io/v1alpha1"]);

/** @param text YAML or JSON @throws Error listing all problems. */
export function parsePolicy(text: string): AuditPolicy {
  let written: unknown;
  try {
    written = parseYaml(text);
  } catch (err) {
    throw new Error(`failed decoding: ${messageOf(err)}`, { cause: err });
  }
  if (!isJsonObject(written)) throw new Error("failed decoding: the policy is not an object");
  const { apiVersion = "", kind = "" } = written;
  if (kind !== "Policy" || !versions.has(String(apiVersion))) {
    throw new Error(
      `failed decoding: no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "k8s.io/apiserver/pkg/audit/scheme.go:30"`,
    );
  }
  const rules = objects(written["rules"], "rules").map((rule, i) => readRule(rule, `rules[${i}]`));
  const policy: AuditPolicy = { ...shape(written, policyShape, ""), rules };
  const errors = policy.rules.flatMap((rule, i) => validateRule(rule, `rules[${i}]`)).map(formatFieldError);
  if (errors.length > 0) throw new Error(errors.length === 1 ? errors[0] : `[${errors.join(", ")}]`);
  if (policy.rules.length === 0) throw new Error("loaded illegal policy with 0 rules");
  return policy;
}

function readRule(rule: Record<string, unknown>, path: string): PolicyRule {
  const resources = objects(rule["resources"], `${path}.resources`);
  // Cast: `shape` has checked the types of the fields; `validateRule` checks that there is a level, and the words of a list.
  return {
    ...shape(rule, ruleShape, `${path}.`),
    ...(resources.length === 0
      ? {}
      : { resources: resources.map((group, i) => shape(group, groupShape, `${path}.resources[${i}].`)) }),
  } as PolicyRule;
}

type Shape = Readonly<Record<string, "string" | "boolean" | "strings">>;
const policyShape: Shape = { omitStages: "strings", omitManagedFields: "boolean" };
const groupShape: Shape = { group: "string", resources: "strings", resourceNames: "strings" };
const ruleShape: Shape = {
  level: "string",
  users: "strings",
  userGroups: "strings",
  verbs: "strings",
  namespaces: "strings",
  nonResourceURLs: "strings",
  omitStages: "strings",
  omitManagedFields: "boolean",
};

/** Copies the known fields after checking their types; unknown fields are dropped. */
function shape(from: Record<string, unknown>, known: Shape, path: string): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const [name, type] of Object.entries(known)) {
    const value = from[name];
    if (value === undefined || value === null) continue;
    const right =
      type === "strings" ? Array.isArray(value) && value.every((one) => typeof one === "string") : typeof value === type;
    if (!right)
      throw new Error(`failed decoding: ${path}${name} is not ${type === "strings" ? "a list of strings" : `a ${type}`}`);
    read[name] = value;
  }
  return read;
}

function objects(value: unknown, path: string): Record<string, unknown>[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every(isJsonObject)) throw new Error(`failed decoding: ${path} is not a list of objects`);
  return value;
}

function validateRule(rule: PolicyRule, path: string): FieldError[] {
  const errors: FieldError[] = [];
  // Cast: `readRule` has checked that it is a string, if it is there, not which.
  if (rule.level === undefined || (rule.level as string) === "") errors.push(required(`${path}.level`, ""));
  else if (!levels.includes(rule.level)) errors.push(notSupported(`${path}.level`, rule.level, [...levels]));
  for (const [i, url] of (rule.nonResourceURLs ?? []).entries()) {
    if (url === "*") continue;
    const at = `${path}.nonResourceURLs[${i}]`;
    if (!url.startsWith("/")) errors.push(invalidValue(at, url, "non-resource URL rules must begin with a '/' character"));
    if (url.slice(0, -1).includes("*")) {
      errors.push(invalidValue(at, url, "non-resource URL wildcards '*' must be the final character of the rule"));
    }
  }
  for (const { group = "", resources, resourceNames } of rule.resources ?? []) {
    const wrong = group === "" ? [] : dns1123SubdomainProblems(group);
    if (wrong.length > 0) errors.push(invalidValue(`${path}.resources.group`, group, wrong.join(",")));
    if (filled(resourceNames) && !filled(resources)) {
      errors.push(
        invalidValue(`${path}.resources.resourceNames`, resourceNames, "using resourceNames requires at least one resource"),
      );
    }
  }
  for (const [i, stage] of (rule.omitStages ?? []).entries()) {
    if (!stages.includes(stage)) {
      errors.push(invalidValue(`${path}.omitStages[${i}]`, stage, `allowed stages are ${stages.join(",")}`));
    }
  }
  if (filled(rule.nonResourceURLs) && (filled(rule.resources) || filled(rule.namespaces))) {
    errors.push(
      invalidValue(
        `${path}.nonResourceURLs`,
        rule.nonResourceURLs,
        "rules cannot apply to both regular resources and non-resource URLs",
      ),
    );
  }
  return errors;
}
