import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../../testing/start-test-server.ts";

test("nobody gives away rights that they do not have", async (t) => {
  const server = await startTestServer(t, ["--advertise-address=192.0.2.1"]);
  const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
  const role = (name: string, rules: object[]) => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: { name },
    rules,
  });
  const binding = (name: string, kind: string, roleName: string) => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: roleName },
    subjects: [{ kind: "User", name: "jane" }],
  });
  const manages = [
    { apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles", "rolebindings"], verbs: ["create", "get"] },
    { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] },
  ];
  assert.equal((await server.request("POST", `${rbac}/roles`, role("manager", manages))).code, 201);
  assert.equal((await server.request("POST", `${rbac}/rolebindings`, binding("jane", "Role", "manager"))).code, 201);

  const jane = { authorization: "Bearer user-token" };
  await waitFor(async () => (await server.request("GET", `${rbac}/roles/manager`, undefined, jane)).code === 200, {
    timeoutMs: 5000,
    what: "jane's rights",
  });
  const more = role("more", [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }]);
  for (const path of [`${rbac}/roles`, `${rbac}/roles?dryRun=All`]) {
    const refused = await server.request("POST", path, more, jane);
    assert.equal(refused.code, 403);
    assert.match(
      refused.body.message,
      /user "jane" \(groups=\["developers" "system:authenticated"\]\) is attempting to grant RBAC permissions not currently held:\n\{APIGroups:\[""\], Resources:\["secrets"\], Verbs:\["get"\]\}$/,
    );
  }
  assert.equal(
    (await server.request("POST", `${rbac}/rolebindings`, binding("all", "ClusterRole", "cluster-admin"), jane)).code,
    403,
  );
  const some = role("some", [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }]);
  assert.equal((await server.request("POST", `${rbac}/roles`, some, jane)).code, 201);
  assert.equal((await server.request("POST", `${rbac}/rolebindings`, binding("some", "Role", "some"), jane)).code, 201);
});
