/**
 * Attribute-based access control: a file with one JSON policy per line; a request is allowed when any policy matches. Lines
 * without apiVersion and kind use the legacy format: see `fromLegacy`.
 * Source: pkg/auth/authorizer/abac/abac.go, pkg/apis/abac
 */

import { readFileSync } from "node:fs";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isJsonObject, jsonWord } from "@coxswain/apimachinery/objects/meta/json-value";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { allAuthenticated } from "../request/user-names.ts";
import type { Attributes, Authorizer, RuleResolver } from "./authorizer.ts";

export interface AbacPolicy {
  readonly user: string;
  readonly group: string;
  readonly readonly: boolean;
  readonly apiGroup: string;
  readonly resource: string;
  readonly namespace: string;
  readonly nonResourcePath: string;
}

export interface AbacPolicies {
  readonly policies: readonly AbacPolicy[];
  /** True when some lines use the legacy format. */
  readonly legacy: boolean;
}

/** @throws Error with file name and line number. */
export function loadAbacPolicies(path: string): AbacPolicies {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (err) {
    if (errorCode(err) === "ENOENT") throw new Error(`open ${path}: no such file or directory`);
    throw err;
  }
  return parseAbacPolicies(text, path);
}

/** Longer lines are rejected, like by Go's bufio.Scanner. */
const longestLineBytes = 64 * 1024;

/** @param path used in error texts @throws Error with upstream's text for the first invalid line. */
export function parseAbacPolicies(text: string, path: string): AbacPolicies {
  const policies: AbacPolicy[] = [];
  let legacy = false;
  for (const [index, rawLine] of text.split("\n").entries()) {
    const line = rawLine.endsWith("\r") ? rawLine.slice(0, -1) : rawLine;
    if (Buffer.byteLength(rawLine) >= longestLineBytes) {
      throw new Error(`error reading policy file ${path}: bufio.Scanner: token too long`);
    }
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    try {
      const parsed = parsePolicy(line);
      policies.push(parsed.policy);
      legacy ||= parsed.legacy;
    } catch (err) {
      throw new Error(`error reading policy file ${path}, line ${index + 1}: ${line}: ${messageOf(err)}`);
    }
  }
  return { policies, legacy };
}

const group = "abac.authorization.kubernetes.io";

function parsePolicy(line: string): { policy: AbacPolicy; legacy: boolean } {
  const object = parseLine(line);
  const apiVersion = text(object, "apiVersion");
  const kind = text(object, "kind");
  if (apiVersion === "" || kind === "") {
    // Missing type information defaults to the legacy type; anything present must match it.
    if (apiVersion !== "" && apiVersion !== `${group}/v0`) throw notRegistered("Policy", apiVersion);
    if (kind !== "" && kind !== "Policy") throw notRegistered(kind, `${group}/v0`);
    return { policy: fromLegacy(object), legacy: true };
  }
  if (kind === "Policy" && apiVersion === `${group}/v0`) return { policy: fromLegacy(object), legacy: false };
  if (kind === "Policy" && apiVersion === `${group}/v1beta1`) return { policy: fromSpec(object), legacy: false };
  throw notRegistered(kind, apiVersion);
}

function notRegistered(kind: string, apiVersion: string): Error {
  return new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`);
}

function parseLine(line: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = line.trimStart().startsWith("{") ? JSON.parse(line) : parseYaml(line);
  } catch (err) {
    throw new Error(`couldn't get version/kind; json parse error: ${messageOf(err)}`);
  }
  if (!isJsonObject(value)) {
    const found = Array.isArray(value) ? "array" : typeof value;
    throw new Error(`couldn't get version/kind; json parse error: json: cannot unmarshal ${found} into an object`);
  }
  return value;
}

function fromSpec(object: Record<string, unknown>): AbacPolicy {
  const spec = Object.hasOwn(object, "spec") ? (object["spec"] ?? {}) : {};
  if (typeof spec !== "object" || Array.isArray(spec)) throw new Error("json: cannot unmarshal the field spec into an object");
  const fields = spec as Record<string, unknown>; // cast: an object, which was checked above
  const user = text(fields, "user");
  const named = text(fields, "group");
  return {
    user,
    group: user === "*" || named === "*" ? allAuthenticated : named,
    readonly: flag(fields, "readonly"),
    apiGroup: text(fields, "apiGroup"),
    resource: text(fields, "resource"),
    namespace: text(fields, "namespace"),
    nonResourcePath: text(fields, "nonResourcePath"),
  };
}

/** In the legacy format, omitted fields match everything; without user and group, all authenticated users. */
function fromLegacy(object: Record<string, unknown>): AbacPolicy {
  const [user, named] = [text(object, "user"), text(object, "group")];
  const [namespace, resource] = [text(object, "namespace"), text(object, "resource")];
  const everybody = (user === "" && named === "") || user === "*" || named === "*";
  return {
    user,
    group: everybody ? allAuthenticated : named,
    readonly: flag(object, "readonly"),
    apiGroup: "*",
    resource: resource || "*",
    namespace: namespace || "*",
    nonResourcePath: namespace === "" && resource === "" ? "*" : "",
  };
}

function text(object: Record<string, unknown>, name: string): string {
  const value = Object.hasOwn(object, name) ? (object[name] ?? "") : "";
  if (typeof value !== "string")
    throw new Error(`json: cannot unmarshal ${jsonWord(value)} into the field ${name} of type string`);
  return value;
}

function flag(object: Record<string, unknown>, name: string): boolean {
  const value = Object.hasOwn(object, name) ? (object[name] ?? false) : false;
  if (typeof value !== "boolean")
    throw new Error(`json: cannot unmarshal ${jsonWord(value)} into the field ${name} of type bool`);
  return value;
}

export function abac(policies: readonly AbacPolicy[]): Authorizer {
  return (attributes) =>
    policies.some((policy) => matches(policy, attributes))
      ? { decision: "allow" }
      : { decision: "no-opinion", reason: "No policy matched." };
}

/** The ABAC policies that match a user, as rules; policies of other namespaces contribute only their paths. */
export function abacRules(policies: readonly AbacPolicy[]): RuleResolver {
  return async (user, namespace) => ({
    rules: policies
      .filter((policy) => subjectMatches(policy, user))
      .flatMap((policy) => {
        const verbs = policy.readonly ? ["get", "list", "watch"] : ["*"];
        const paths = { verbs, nonResourceURLs: [policy.nonResourcePath] };
        if (policy.namespace !== "*" && policy.namespace !== namespace) return [paths];
        return [{ verbs, apiGroups: [policy.apiGroup], resources: [policy.resource] }, paths];
      }),
    incomplete: false,
    errors: [],
  });
}

function matches(policy: AbacPolicy, attributes: Attributes): boolean {
  if (!subjectMatches(policy, attributes.user)) return false;
  if (policy.readonly && !readVerbs.has(attributes.verb)) return false;
  return attributes.isResourceRequest ? resourceMatches(policy, attributes) : pathMatches(policy, attributes.path);
}

const readVerbs = new Set(["get", "list", "watch"]);

/** User and group must both match where given; a policy with neither matches no one. */
function subjectMatches(policy: AbacPolicy, user: Attributes["user"]): boolean {
  if (policy.user === "" && policy.group === "") return false;
  if (policy.user !== "" && policy.user !== "*" && policy.user !== user.name) return false;
  return policy.group === "" || policy.group === "*" || user.groups.includes(policy.group);
}

function resourceMatches(policy: AbacPolicy, attributes: Attributes): boolean {
  const fits = (wanted: string, value: string): boolean => wanted === "*" || wanted === value;
  return (
    fits(policy.namespace, attributes.namespace) &&
    fits(policy.resource, attributes.resource) &&
    fits(policy.apiGroup, attributes.group)
  );
}

function pathMatches({ nonResourcePath }: AbacPolicy, path: string): boolean {
  if (nonResourcePath === "*" || nonResourcePath === path) return true;
  return nonResourcePath.endsWith("*") && path.startsWith(nonResourcePath.replace(/\*+$/, ""));
}
