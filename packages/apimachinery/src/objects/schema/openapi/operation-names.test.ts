import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiResource } from "./document.ts";
import { actionOf, groupVersionWords, operationId, summaryOf, type Target, tagOf, type Verb } from "./operation-names.ts";

const aResource = (kind: string, namespaced = true): OpenApiResource => ({
  ...{ group: "rbac.authorization.k8s.io", version: "v1", resource: "things", kind, listKind: `${kind}List`, namespaced },
  ...{ verbs: [], subresources: [] },
});
const aTarget = (kind: string, more: Partial<Target> = {}, namespaced = true): Target => ({
  ...{ resource: aResource(kind, namespaced), subresource: "" },
  ...more,
});

for (const [verb, target, id, summary] of [
  ["list", aTarget("Role"), "listRbacAuthorizationV1NamespacedRole", "list or watch objects of kind Role"],
  [
    "list",
    aTarget("Role", { everywhere: true }),
    "listRbacAuthorizationV1RoleForAllNamespaces",
    "list or watch objects of kind Role",
  ],
  [
    "get",
    aTarget("Role", { subresource: "status" }),
    "readRbacAuthorizationV1NamespacedRoleStatus",
    "read status of the specified Role",
  ],
  ["create", aTarget("Role"), "createRbacAuthorizationV1NamespacedRole", "create a Role"],
  ["create", aTarget("IngressClass", {}, false), "createRbacAuthorizationV1IngressClass", "create an IngressClass"],
  ["create", aTarget("Endpoints"), "createRbacAuthorizationV1NamespacedEndpoints", "create Endpoints"],
  ["update", aTarget("Role"), "replaceRbacAuthorizationV1NamespacedRole", "replace the specified Role"],
  ["patch", aTarget("Role"), "patchRbacAuthorizationV1NamespacedRole", "partially update the specified Role"],
  ["delete", aTarget("Role"), "deleteRbacAuthorizationV1NamespacedRole", "delete a Role"],
  ["deletecollection", aTarget("Role"), "deleteRbacAuthorizationV1CollectionNamespacedRole", "delete collection of Role"],
  ["watchlist", aTarget("Role"), "watchRbacAuthorizationV1NamespacedRoleList", /^watch a list of Role; deprecated/],
  ["watch", aTarget("Role"), "watchRbacAuthorizationV1NamespacedRole", /^watch one Role; deprecated/],
  [
    ...(["connect", aTarget("Role", { subresource: "proxy", method: "Get", withPath: true })] as const),
    ...(["connectRbacAuthorizationV1GetNamespacedRoleProxyWithPath", "connect GET requests to proxy of Role"] as const),
  ],
] as readonly (readonly [Verb, Target, string, string | RegExp])[])
  test(`${id} is the ID of: ${summary}`, () => {
    assert.equal(operationId(verb, target), id);
    if (typeof summary === "string") assert.equal(summaryOf(verb, target), summary);
    else assert.match(summaryOf(verb, target), summary);
  });

test("actions are named by the method where there is one", () => {
  const actions: Readonly<Record<Verb, string>> = {
    ...{ list: "list", get: "get", create: "post", update: "put", patch: "patch", delete: "delete" },
    ...{ deletecollection: "deletecollection", watch: "watch", watchlist: "watchlist", connect: "connect" },
  };
  // Cast: the keys of a record of verbs.
  for (const verb of Object.keys(actions) as Verb[]) assert.equal(actionOf(verb), actions[verb]);
});

test("a group is named without k8s.io, the core group is core", () => {
  assert.deepEqual(
    ["", "apps", "rbac.authorization.k8s.io", "some-name.example.com"].map((group) => tagOf({ group, version: "v1" })),
    ["core_v1", "apps_v1", "rbacAuthorization_v1", "someNameExampleCom_v1"],
  );
  assert.equal(groupVersionWords({ group: "", version: "v1" }), "CoreV1");
});
