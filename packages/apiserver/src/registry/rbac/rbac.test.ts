import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../../testing/start-test-server.ts";

test("no user can grant rights that they do not have", async (t) => {
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

test("no user gains rights through labels, aggregated roles, or rights with resource names", async (t) => {
  const server = await startTestServer(t);
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const jane = { authorization: "Bearer user-token" };
  const own = { apiGroups: [""], resources: ["pods"], verbs: ["get"] };
  const all = [
    { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles", "clusterrolebindings"], verbs: ["*"] },
    own,
  ];
  const manages = [
    // Without the verbs `escalate` and `bind`, which `*` would include.
    { ...all[0], verbs: ["create", "get", "update", "patch", "delete"] },
    { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], verbs: ["escalate"], resourceNames: ["mine"] },
    { apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], verbs: ["bind"], resourceNames: ["mine"] },
    own,
  ];
  const role = (name: string, rest: object) => ({ metadata: { name }, ...rest });
  const binding = (name: string, to: string) => ({
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: to },
    subjects: [{ kind: "User", name: "jane" }],
  });
  await server.request("POST", `${rbac}/clusterroles`, role("manager", { rules: manages }));
  await server.request("POST", `${rbac}/clusterroles`, role("plain", { rules: [own] }));
  await server.request("POST", `${rbac}/clusterrolebindings`, binding("jane", "manager"));
  const as = (method: string, path: string, body?: object) =>
    server.request(method, `${rbac}/${path}`, body, {
      ...jane,
      ...(method === "PATCH" ? { "content-type": "application/merge-patch+json" } : {}),
    });
  await waitFor(async () => (await as("GET", "clusterroles/manager")).code === 200, { what: "jane's rights" });

  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { "example.com/gather": "true" } }] };
  const gathering = await as("POST", "clusterroles", role("gathering", { aggregationRule }));
  assert.equal(gathering.code, 403);
  assert.equal(
    gathering.body.message,
    'clusterroles.rbac.authorization.k8s.io "gathering" is forbidden: must have cluster-admin privileges to use the aggregationRule',
  );
  const labels = { "rbac.authorization.k8s.io/aggregate-to-view": "true" };
  const labelled = await as("PATCH", "clusterroles/cluster-admin", { metadata: { labels } });
  assert.equal(labelled.code, 403, "a label makes other roles gather the rules");
  assert.match(labelled.body.message, /is attempting to grant RBAC permissions not currently held:\n\{APIGroups:\["\*"\]/);
  assert.equal((await as("PATCH", "clusterroles/edit", { metadata: { labels } })).code, 403, "nor may a gathering role change");
  assert.equal((await as("PATCH", "clusterroles/plain", { metadata: { labels } })).code, 200);
  assert.equal((await as("PATCH", "clusterroles/cluster-admin", { metadata: { finalizers: ["example.com/x"] } })).code, 200);
  assert.equal((await as("PATCH", "clusterrolebindings/cluster-admin", { metadata: { labels } })).code, 403);

  const more = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list"] }];
  const refused = await as("POST", "clusterroles", role("mine", { rules: more }));
  assert.equal(refused.code, 403, "a POST has no name in its path, so the right for one name does not cover it");
  assert.match(refused.body.message, /\n\{APIGroups:\[""\], Resources:\["secrets"\], Verbs:\["get" "list"\]\}$/);
  assert.equal((await as("POST", "clusterroles", role("mine", { rules: [own] }))).code, 201);
  assert.equal((await as("PATCH", "clusterroles/mine", { rules: more })).code, 200, "jane may escalate this one");
  assert.equal((await as("PATCH", "clusterroles/plain", { rules: more })).code, 403);
  assert.equal((await as("POST", "clusterrolebindings", binding("own", "mine"))).code, 201, "and bind it");
  assert.equal((await as("POST", "clusterrolebindings", binding("admin", "cluster-admin"))).code, 403);
  assert.equal(
    (await as("POST", "clusterrolebindings", binding("none", "missing"))).code,
    404,
    "a missing role could get any rules",
  );
});
