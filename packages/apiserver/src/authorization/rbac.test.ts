import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attributes, Decision } from "./authorizer.ts";
import { rbac } from "./rbac.ts";
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
    const decision = (await rbac(newRuleResolver(set))(asks(changes))) as Decision;
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
  const decision = await rbac(newRuleResolver(missing))(asks({}));
  assert.deepEqual(decision, { decision: "no-opinion", reason: 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found' });
});

test("a change of the policy counts at once", async () => {
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
  const asked = asks({ verb: "get", resource: "pods" });
  assert.equal((await decide({ ...asked, user: { name: "ann", groups: ["dev"] } })).decision, "allow");
  for (const user of [
    { name: "ann\ndev", groups: [] },
    { name: "ann3:dev", groups: [] },
    { name: "ann", groups: ["x\ndev"] },
  ]) {
    assert.equal((await decide({ ...asked, user })).decision, "no-opinion", JSON.stringify(user));
  }
});
