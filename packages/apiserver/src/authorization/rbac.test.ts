import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { Attributes } from "./authorizer.ts";
import { informedRbacPolicy, rbac } from "./rbac.ts";
import { newRuleResolver, type RbacBinding, type RbacPolicy, type RbacRole } from "./rule-resolver.ts";

function policy(objects: {
  clusterRoles?: Record<string, RbacRole["rules"]>;
  roles?: Record<string, RbacRole["rules"]>;
  clusterRoleBindings?: RbacBinding[];
  roleBindings?: RbacBinding[];
}): RbacPolicy {
  const role = (rules: RbacRole["rules"] | undefined): RbacRole | undefined =>
    rules === undefined ? undefined : { metadata: {}, rules };
  return {
    version: 1,
    role: (namespace, name) => role(objects.roles?.[`${namespace}/${name}`]),
    clusterRole: (name) => role(objects.clusterRoles?.[name]),
    roleBindings: (namespace) => (objects.roleBindings ?? []).filter(({ metadata }) => metadata.namespace === namespace),
    clusterRoleBindings: () => objects.clusterRoleBindings ?? [],
  };
}

const jane = { name: "jane", groups: ["dev", "system:authenticated"] };
const robot = { name: "system:serviceaccount:web:robot", groups: ["system:serviceaccounts"] };

function asks(changes: Partial<Attributes>): Attributes {
  return {
    user: jane,
    verb: "get",
    isResourceRequest: true,
    namespace: "web",
    group: "",
    version: "v1",
    resource: "pods",
    subresource: "",
    name: "p",
    path: "",
    ...changes,
  };
}

const set = policy({
  clusterRoles: {
    "pod-reader": [{ verbs: ["get", "list"], apiGroups: [""], resources: ["pods", "pods/log"] }],
    named: [{ verbs: ["*"], apiGroups: ["*"], resources: ["configmaps"], resourceNames: ["one"] }],
    scaler: [{ verbs: ["update"], apiGroups: ["*"], resources: ["*/scale"] }],
    health: [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/openapi/*"] }],
  },
  roles: { "web/secrets": [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"] }] },
  clusterRoleBindings: [
    {
      metadata: { name: "readers" },
      subjects: [{ kind: "Group", name: "dev" }],
      roleRef: { kind: "ClusterRole", name: "pod-reader" },
    },
    {
      metadata: { name: "health" },
      subjects: [{ kind: "User", name: "jane" }],
      roleRef: { kind: "ClusterRole", name: "health" },
    },
    {
      metadata: { name: "scalers" },
      subjects: [{ kind: "User", name: "jane" }],
      roleRef: { kind: "ClusterRole", name: "scaler" },
    },
  ],
  roleBindings: [
    {
      metadata: { namespace: "web", name: "robots" },
      subjects: [{ kind: "ServiceAccount", name: "robot" }],
      roleRef: { kind: "Role", name: "secrets" },
    },
    {
      metadata: { namespace: "web", name: "named" },
      subjects: [{ kind: "User", name: "jane" }],
      roleRef: { kind: "ClusterRole", name: "named" },
    },
  ],
});

for (const { name, changes, allowed } of [
  { name: "a group's cluster role in any namespace", changes: { namespace: "other" }, allowed: true },
  { name: "the same at the cluster scope", changes: { namespace: "", verb: "list", name: "" }, allowed: true },
  { name: "a verb that is not in the rule", changes: { verb: "delete" }, allowed: false },
  { name: "a subresource in the rule", changes: { subresource: "log" }, allowed: true },
  { name: "a subresource that is not in the rule", changes: { subresource: "exec" }, allowed: false },
  {
    name: "any resource's scale",
    changes: { verb: "update", group: "apps", resource: "deployments", subresource: "scale" },
    allowed: true,
  },
  { name: "an object by name", changes: { verb: "update", resource: "configmaps", name: "one" }, allowed: true },
  { name: "another name", changes: { verb: "update", resource: "configmaps", name: "two" }, allowed: false },
  {
    name: "all objects where a name is in the rule",
    changes: { verb: "update", resource: "configmaps", name: "" },
    allowed: false,
  },
  {
    name: "a named object in another namespace",
    changes: { namespace: "x", verb: "update", resource: "configmaps", name: "one" },
    allowed: false,
  },
  { name: "a service account of the binding's namespace", changes: { user: robot, resource: "secrets" }, allowed: true },
  { name: "a user who only looks like it", changes: { user: { ...robot, name: "robot" }, resource: "secrets" }, allowed: false },
  { name: "a path in the rule", changes: { isResourceRequest: false, path: "/healthz" }, allowed: true },
  { name: "a path below a star", changes: { isResourceRequest: false, path: "/openapi/v2" }, allowed: true },
  { name: "a path beside it", changes: { isResourceRequest: false, path: "/metrics" }, allowed: false },
  { name: "another group's resource", changes: { group: "apps" }, allowed: false },
] as { name: string; changes: Partial<Attributes>; allowed: boolean }[]) {
  test(`${allowed ? "allows" : "does not allow"} ${name}`, async () => {
    const decision = await rbac(newRuleResolver(set))(asks(changes));
    assert.equal(decision.decision, allowed ? "allow" : "no-opinion");
  });
}

test("says which binding allowed it, in upstream's words", async () => {
  const authorize = rbac(newRuleResolver(set));
  assert.equal(
    (await authorize(asks({}))).reason,
    'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "pod-reader" to Group "dev"',
  );
  assert.equal(
    (await authorize(asks({ user: robot, resource: "secrets" }))).reason,
    'RBAC: allowed by RoleBinding "robots/web" of Role "secrets" to ServiceAccount "robot/web"',
  );
});

test("names a role that is missing", async () => {
  const missing = policy({
    clusterRoleBindings: [
      { metadata: { name: "b" }, subjects: [{ kind: "User", name: "jane" }], roleRef: { kind: "ClusterRole", name: "gone" } },
    ],
  });
  const resolver = newRuleResolver(missing);
  const decision = await rbac(resolver)(asks({}));
  assert.deepEqual(decision, { decision: "no-opinion", reason: 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found' });
  const { rules, incomplete, errors } = await resolver.resolve(jane, "web");
  assert.deepEqual([rules, incomplete, errors.length], [[], true, 1], "the rules that are known may not be all");
});

test("a role without rules grants nothing, and is not missing", async () => {
  const empty = policy({
    clusterRoles: { none: null },
    roles: { "web/none": null },
    clusterRoleBindings: [
      { metadata: { name: "a" }, subjects: [{ kind: "User", name: "jane" }], roleRef: { kind: "ClusterRole", name: "none" } },
    ],
    roleBindings: ["Role", "ClusterRole"].map((kind) => ({
      metadata: { name: kind, namespace: "web" },
      subjects: [{ kind: "User", name: "jane" }],
      roleRef: { kind, name: "none" },
    })),
  });
  const resolver = newRuleResolver(empty);
  assert.deepEqual(await rbac(resolver)(asks({})), { decision: "no-opinion" });
  assert.deepEqual(await resolver.resolve(jane, "web"), { rules: [], incomplete: false, errors: [] });
});

test("names each role that is missing, and takes no account without a namespace for one of the cluster", async () => {
  const bound = (name: string, subject: { kind: string; name: string }): RbacBinding => ({
    metadata: { name },
    subjects: [subject],
    roleRef: { kind: "ClusterRole", name },
  });
  const user = { kind: "User", name: "jane" };
  const two = policy({ clusterRoleBindings: [bound("gone", user), bound("lost", user)] });
  const { reason = "" } = await rbac(newRuleResolver(two))(asks({}));
  assert.match(reason, /^RBAC: \[.*"gone" not found, .*"lost" not found\]$/);
  const rules = { all: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }] };
  const stray = policy({ clusterRoles: rules, clusterRoleBindings: [bound("all", { kind: "ServiceAccount", name: "robot" })] });
  const nobody = { name: "system:serviceaccount::robot", groups: [] };
  assert.equal((await rbac(newRuleResolver(stray))(asks({ user: nobody }))).decision, "no-opinion");
});

test("a policy is known when all kinds of it are, not before the last", async (t) => {
  const client = newFakeClient();
  client.react("list", "clusterrolebindings", () => new Promise(() => {}));
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const stored = informedRbacPolicy(informers);
  const stop = new AbortController();
  t.after(() => stop.abort());
  informers.start(stop.signal);
  const others = [roles, roleBindings, clusterRoles].map((ref) => informers.for(ref));
  await waitFor(() => others.every(({ synced }) => synced), { what: "the others" });
  assert.equal(stored.synced, false);
});

test("the policy of informers has another version after each change of a role or a binding", async (t) => {
  const client = newFakeClient();
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const stored = informedRbacPolicy(informers);
  const stop = new AbortController();
  t.after(() => stop.abort());
  informers.start(stop.signal);
  await informers.waitForSync(stop.signal);
  assert.ok(stored.synced);
  for (const ref of [roles, roleBindings, clusterRoles, clusterRoleBindings]) {
    const object = { metadata: { name: "a", ...(ref.namespaced && { namespace: "web" }) } };
    for (const change of [
      () => client.put(ref, object),
      () => client.put(ref, { ...object, rules: [] }),
      () => client.remove(ref, ref.namespaced ? "web/a" : "a"),
    ]) {
      const before = stored.version;
      change();
      await waitFor(() => stored.version > before, { what: `another version after a change of ${ref.resource}` });
    }
  }
});

test("a changed policy applies to the next request", async () => {
  let version = 1;
  let bindings: RbacBinding[] = [];
  const changing: RbacPolicy = {
    ...set,
    get version() {
      return version;
    },
    clusterRoleBindings: () => bindings,
  };
  const authorize = rbac(newRuleResolver(changing));
  assert.equal((await authorize(asks({}))).decision, "no-opinion");
  bindings = [...set.clusterRoleBindings()];
  version++;
  assert.equal((await authorize(asks({}))).decision, "allow");
});

test("a name that looks like a name and a group is neither", async () => {
  const decide = rbac(newRuleResolver(set));
  const pending = asks({ verb: "get", resource: "pods" });
  assert.equal((await decide({ ...pending, user: { name: "ann", groups: ["dev"] } })).decision, "allow");
  for (const user of [
    { name: "ann\ndev", groups: [] },
    { name: "ann3:dev", groups: [] },
    { name: "ann", groups: ["x\ndev"] },
  ]) {
    assert.equal((await decide({ ...pending, user })).decision, "no-opinion", JSON.stringify(user));
  }
});

const binding = (role: string, subjects: RbacBinding["subjects"], kind = "ClusterRole", namespace?: string): RbacBinding => ({
  metadata: { name: role, ...(namespace !== undefined && { namespace }) },
  ...(subjects !== undefined && { subjects }),
  roleRef: { kind, name: role },
});
const user = (name: string) => ({ kind: "User", name });
const group = (name: string) => ({ kind: "Group", name });
const reads = (resource: string) => ({ verbs: ["get"], apiGroups: [""], resources: [resource] });
const second = policy({
  clusterRoles: {
    two: [
      reads("nodes"),
      { verbs: ["list", "get"], apiGroups: ["apps", ""], resources: ["secrets", "pods"], resourceNames: ["x", "p"] },
    ],
    empty: null,
    plain: [reads("pods")],
    urls: [{ verbs: ["get"], nonResourceURLs: ["/a", "/b/*"] }],
  },
  roles: { "other/here": [reads("pods")] },
  clusterRoleBindings: [
    binding("gone", [user("jane"), user("after-gone")]),
    binding("empty", [user("jane")]),
    binding("two", [user("joe"), user("jane")]),
    binding("plain", [user("after-gone"), group("nobody"), group("second-group"), { kind: "ServiceAccount", name: "robot" }]),
    binding("urls", [group("second-group")]),
    binding("plain", [{ kind: "ServiceAccount", name: "robot", namespace: "db" }]),
    binding("here", [user("roleless")], "Role"),
  ],
  roleBindings: [binding("here", [user("elsewhere")], "Role", "web"), binding("plain", [user("bound")], "ClusterRole", "other")],
});
const as = (name: string, ...groups: string[]): Partial<Attributes> => ({ user: { name, groups } });
for (const { name, changes, allowed } of [
  { name: "the second subject, rule, verb, group, resource and name", changes: as("jane"), allowed: true },
  { name: "the second rule under a name that it does not have", changes: { ...as("jane"), name: "y" }, allowed: false },
  { name: "a binding behind one whose role is missing", changes: as("after-gone"), allowed: true },
  { name: "the second of a user's groups, the third subject", changes: as("x", "first", "second-group"), allowed: true },
  { name: "a user with the name of a group", changes: as("second-group"), allowed: false },
  { name: "a group with the name of a user", changes: as("x", "after-gone"), allowed: false },
  {
    name: "the second URL of a rule",
    changes: { ...as("x", "second-group"), isResourceRequest: false, path: "/b/c" },
    allowed: true,
  },
  {
    name: "a URL that begins as the first one",
    changes: { ...as("x", "second-group"), isResourceRequest: false, path: "/ab" },
    allowed: false,
  },
  { name: "an account of the named namespace", changes: as("system:serviceaccount:db:robot"), allowed: true },
  {
    name: "an account of no namespace in a binding of the cluster",
    changes: as("system:serviceaccount:web:robot"),
    allowed: false,
  },
  { name: "a role of another namespace by its name", changes: as("elsewhere"), allowed: false },
  { name: "a role of a namespace for the whole cluster", changes: { ...as("roleless"), namespace: "other" }, allowed: false },
  { name: "a cluster role in the namespace of its binding", changes: { ...as("bound"), namespace: "other" }, allowed: true },
  { name: "a cluster role outside the namespace of its binding", changes: as("bound"), allowed: false },
  {
    name: "a cluster role of a binding in a namespace for the cluster",
    changes: { ...as("bound"), namespace: "" },
    allowed: false,
  },
]) {
  test(`${allowed ? "allows" : "does not allow"} ${name}`, async () => {
    assert.equal((await rbac(newRuleResolver(second))(asks(changes))).decision, allowed ? "allow" : "no-opinion");
  });
}

test("a removed permission ends with the next version of the policy, and groups of the same name are kept apart", async () => {
  let version = 1;
  let bindings = [binding("plain", [group("dev")])];
  const changing: RbacPolicy = {
    ...second,
    clusterRoleBindings: () => bindings,
    get version() {
      return version;
    },
  };
  const authorize = rbac(newRuleResolver(changing));
  const decide = async (...groups: string[]) => (await authorize(asks(as("ann", ...groups)))).decision;
  assert.deepEqual([await decide("dev"), await decide(), await decide("ops")], ["allow", "no-opinion", "no-opinion"]);
  bindings = [binding("plain", [group("ops")])];
  version++;
  assert.deepEqual([await decide("dev"), await decide(), await decide("ops")], ["no-opinion", "no-opinion", "allow"]);
});

test("the rules of a user are collected once for each version of the policy, and for each namespace and group anew", () => {
  let version = 1;
  let collected = 0;
  const counting: RbacPolicy = {
    ...set,
    get version() {
      return version;
    },
    clusterRoleBindings() {
      collected++;
      return set.clusterRoleBindings();
    },
  };
  const { appliedRules } = newRuleResolver(counting);
  for (version of [1, 2]) {
    collected = 0;
    for (let i = 0; i < 3; i++) appliedRules(jane, "web");
    assert.equal(collected, 1);
    appliedRules(jane, "db");
    appliedRules({ ...jane, groups: ["dev"] }, "web");
    appliedRules({ ...jane, groups: ["devs", "ystem:authenticated"] }, "web");
    appliedRules({ ...jane, groups: ["devs:ystem:authenticated"] }, "web");
    assert.equal(collected, 5);
  }
});

test("names an account by its own namespace, and a kind of role that is none", async () => {
  const rules = { web: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }] };
  const subjects = [{ kind: "ServiceAccount", name: "robot", namespace: "db" }];
  const elsewhere = policy({
    clusterRoles: rules,
    roleBindings: [{ metadata: { name: "b", namespace: "web" }, subjects, roleRef: { kind: "ClusterRole", name: "web" } }],
  });
  const asked = asks({ user: { name: "system:serviceaccount:db:robot", groups: [] } });
  assert.equal(
    (await rbac(newRuleResolver(elsewhere))(asked)).reason,
    'RBAC: allowed by RoleBinding "b/web" of ClusterRole "web" to ServiceAccount "robot/db"',
  );
  const odd = policy({
    clusterRoleBindings: [{ metadata: { name: "b" }, subjects: [user("jane")], roleRef: { kind: "Group", name: "x" } }],
  });
  const { reason } = await rbac(newRuleResolver(odd))(asks({}));
  assert.equal(reason, 'RBAC: unsupported role reference kind: "Group"');
});

test("a role that several bindings miss is named once", async () => {
  const gone = policy({ clusterRoleBindings: [binding("gone", [user("jane")]), binding("gone", [group("dev")])] });
  const { reason } = await rbac(newRuleResolver(gone))(asks({}));
  assert.equal(reason, 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found');
});

for (const { length, isKept } of [
  { length: 4096, isKept: true },
  { length: 4097, isKept: false },
]) {
  test(`the rules of a user whose names take ${length} characters are ${isKept ? "" : "not "}kept`, () => {
    let collected = 0;
    const clusterRoleBindings = () => {
      collected++;
      return [];
    };
    const { appliedRules } = newRuleResolver({ ...set, clusterRoleBindings });
    const name = "x".repeat(length - "3:web4092:".length);
    for (let i = 0; i < 2; i++) appliedRules({ name, groups: [] }, "web");
    assert.equal(collected, isKept ? 1 : 2);
  });
}

test("a star counts anywhere in a list, and in a path at its end alone", async () => {
  const starred = policy({
    clusterRoles: {
      last: [{ verbs: ["get", "*"], apiGroups: ["apps", "*"], resources: ["nodes", "*"] }],
      amid: [{ verbs: ["get"], nonResourceURLs: ["/a*b"] }],
    },
    clusterRoleBindings: [binding("last", [user("jane")]), binding("amid", [user("jane")])],
  });
  const decide = rbac(newRuleResolver(starred));
  assert.equal((await decide(asks({ verb: "delete" }))).decision, "allow");
  for (const [path, decision] of [
    ["/ac", "no-opinion"],
    ["/a*b", "allow"],
  ] as const)
    assert.equal((await decide(asks({ isResourceRequest: false, path }))).decision, decision, path);
});
