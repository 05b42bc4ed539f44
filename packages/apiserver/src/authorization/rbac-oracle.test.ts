/**
 * Compares RBAC with an oracle on random policies and requests. The oracle is a direct implementation of the rules, without
 * caches, early exits or indexes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import type { Attributes, PolicyRule } from "./authorizer.ts";
import { rbac } from "./rbac.ts";
import { newRuleResolver, type RbacBinding, type RbacPolicy } from "./rule-resolver.ts";

const questions = process.env["COX_TEST_LONG"] === undefined ? 100_000 : 1_000_000;
const questionsOfPolicy = 500;

interface World {
  readonly roles: Map<string, PolicyRule[]>;
  readonly bindings: RbacBinding[];
}

test("decides random tuples as a plain reading of the rules", async () => {
  const random = newRandom(Number(process.env["COX_TEST_SEED"] ?? 20_211_207));
  const seen = { allow: 0, "no-opinion": 0, deny: 0 };
  for (let tried = 0; tried < questions; tried += questionsOfPolicy) {
    const world = randomWorld(random);
    const decide = rbac(newRuleResolver(policyOf(world)));
    for (let i = 0; i < questionsOfPolicy; i++) {
      const attributes = randomAttributes(random);
      const { decision } = await decide(attributes);
      const want = isAllowed(world, attributes) ? "allow" : "no-opinion";
      if (decision !== want)
        assert.fail(
          `${decision}, not ${want}: ${JSON.stringify({ attributes, bindings: world.bindings, roles: [...world.roles] })}`,
        );
      seen[decision]++;
    }
  }
  assert.ok(seen.allow > questions / 50 && seen["no-opinion"] > questions / 50, `both happen often: ${JSON.stringify(seen)}`);
});

/** The oracle: is there a binding in scope for the user, to a role with a matching rule? */
function isAllowed({ roles, bindings }: World, { user, namespace, ...request }: Attributes): boolean {
  return bindings.some((binding) => {
    const bound = binding.metadata.namespace;
    if (bound !== undefined && bound !== namespace) return false;
    const isHim = (binding.subjects ?? []).some(
      (subject) =>
        (subject.kind === "User" && subject.name === user.name) ||
        (subject.kind === "Group" && user.groups.some((group) => group === subject.name)) ||
        (subject.kind === "ServiceAccount" && user.name === `system:serviceaccount:${subject.namespace}:${subject.name}`),
    );
    if (!isHim) return false;
    const key = binding.roleRef.kind === "Role" ? `${bound}/${binding.roleRef.name}` : binding.roleRef.name;
    return (roles.get(key) ?? []).some((rule) => {
      const oneOf = (list: readonly string[] | undefined, values: readonly string[]): boolean =>
        (list ?? []).some((item) => values.includes(item));
      if (!oneOf(rule.verbs, [request.verb, "*"])) return false;
      if (!request.isResourceRequest) {
        const matching = ["*", request.path];
        for (let end = 0; end <= request.path.length; end++) matching.push(`${request.path.slice(0, end)}*`);
        return oneOf(rule.nonResourceURLs, matching);
      }
      const full =
        request.subresource === ""
          ? [request.resource]
          : [`${request.resource}/${request.subresource}`, `*/${request.subresource}`];
      const named = (rule.resourceNames ?? []).length === 0 || oneOf(rule.resourceNames, [request.name]);
      return oneOf(rule.apiGroups, [request.group, "*"]) && oneOf(rule.resources, [...full, "*"]) && named;
    });
  });
}

const names = {
  users: ["jane", "joe", "system:serviceaccount:a:robot", "system:serviceaccount:b:robot"],
  groups: ["dev", "ops", "system:authenticated"],
  namespaces: ["a", "b"],
  verbs: ["get", "list", "update", "*"],
  apiGroups: ["", "apps", "*"],
  resources: ["pods", "secrets", "pods/log", "*/scale", "pods/*", "deployments/scale", "*"],
  names: ["one", "two"],
  urls: ["/healthz", "/healthz/*", "/logs", "/lo*", "*"],
};

function policyOf({ roles, bindings }: World): RbacPolicy {
  const role = (key: string) => {
    const rules = roles.get(key);
    return rules === undefined ? undefined : { metadata: {}, rules };
  };
  return {
    version: 1,
    role: (namespace, name) => role(`${namespace}/${name}`),
    clusterRole: role,
    roleBindings: (namespace) => bindings.filter(({ metadata }) => metadata.namespace === namespace),
    clusterRoleBindings: () => bindings.filter(({ metadata }) => metadata.namespace === undefined),
  };
}

function randomWorld(random: Random): World {
  const roles = new Map<string, PolicyRule[]>();
  const roleNames = ["r1", "r2", "r3"];
  for (const key of [...roleNames, ...names.namespaces.flatMap((namespace) => roleNames.map((name) => `${namespace}/${name}`))]) {
    if (random.chance(0.9))
      roles.set(
        key,
        random.list(3, () => randomRule(random)),
      );
  }
  const bindings = random.list(6, (index): RbacBinding => {
    const namespace = random.chance(0.6) ? random.one(names.namespaces) : undefined;
    const kind = namespace !== undefined && random.chance(0.5) ? "Role" : "ClusterRole";
    return {
      metadata: { name: `b${index}`, ...(namespace === undefined ? {} : { namespace }) },
      subjects: random.list(2, () => randomSubject(random)),
      roleRef: { kind, name: random.one(roleNames) },
    };
  });
  return { roles, bindings };
}

function randomSubject(random: Random) {
  switch (random.one(["User", "Group", "ServiceAccount", "Other"])) {
    case "User":
      return { kind: "User", name: random.one(names.users) };
    case "Group":
      return { kind: "Group", name: random.one(names.groups) };
    case "ServiceAccount":
      return { kind: "ServiceAccount", name: "robot", namespace: random.one(names.namespaces) };
    default:
      return { kind: "Other", name: random.one(names.users) };
  }
}

function randomRule(random: Random): PolicyRule {
  const verbs = random.some(names.verbs);
  if (random.chance(0.2)) return { verbs, nonResourceURLs: random.some(names.urls) };
  const rule = { verbs, apiGroups: random.some(names.apiGroups), resources: random.some(names.resources) };
  return random.chance(0.3) ? { ...rule, resourceNames: random.some(names.names) } : rule;
}

function randomAttributes(random: Random): Attributes {
  const user = { name: random.one(names.users), groups: random.some(names.groups) };
  const nothing = { namespace: "", group: "", version: "", resource: "", subresource: "", name: "", path: "" };
  const verb = random.one(["get", "list", "update", "delete"]);
  if (random.chance(0.2)) {
    const path = random.one(["/healthz", "/healthz/", "/healthz/etcd", "/logs", "/logsx", "/metrics"]);
    return { ...nothing, user, verb, isResourceRequest: false, path };
  }
  return {
    ...nothing,
    user,
    verb,
    isResourceRequest: true,
    namespace: random.one(["", ...names.namespaces]),
    group: random.one(["", "apps", "batch"]),
    version: "v1",
    resource: random.one(["pods", "secrets", "deployments"]),
    subresource: random.one(["", "", "log", "scale"]),
    name: random.one(["", "one", "two", "three"]),
  };
}

type Random = ReturnType<typeof newRandom>;

/** Deterministic for a seed. */
function newRandom(seed: number) {
  const next = randomOf(seed);
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    chance: (share: number): boolean => next() < share,
    one: <T>(items: readonly T[]): T => items[below(items.length)] as T,
    /** Random subset. */
    some: <T>(items: readonly T[]): T[] => items.filter(() => next() < 0.4),
    /** A list of up to `most` items. */
    list: <T>(most: number, make: (index: number) => T): T[] =>
      Array.from({ length: below(most + 1) }, (_, index) => make(index)),
  };
}
