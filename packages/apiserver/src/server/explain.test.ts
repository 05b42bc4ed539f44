import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const jane = { authorization: "Bearer user-token" };
const core = "/api/v1/namespaces/a";

const pod = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { serviceAccountName: "default", containers: [{ name: "main", image: "x" }], ...spec },
});

async function make(server: TestServer, path: string, body: object): Promise<void> {
  const { code, text } = await server.request("POST", path, body);
  assert.equal(code, 201, text);
}

async function prepared(t: Parameters<typeof startTestServer>[0]): Promise<TestServer> {
  const server = await startTestServer(t, ["--disable-admission-plugins=ServiceAccount"]);
  for (const name of ["a", "b"]) await make(server, "/api/v1/namespaces", { metadata: { name } });
  return server;
}

const grant = (server: TestServer, namespace: string, resources: string[], verbs = ["get", "list"]): Promise<void> =>
  (async () => {
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const name = resources.join("-");
    await make(server, `${rbac}/roles`, { metadata: { name }, rules: [{ apiGroups: [""], resources, verbs }] });
    await make(server, `${rbac}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
      subjects: [{ kind: "User", name: "jane", apiGroup: "rbac.authorization.k8s.io" }],
    });
  })();

const claim = { persistentVolumeClaim: { claimName: "data" } };
const pending = {
  metadata: { name: "data" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};

test("an explanation follows a pod to its claim, as JSON, Table and text, and names what kubectl names", async (t) => {
  const server = await prepared(t);
  await make(server, `${core}/pods`, pod("web", { volumes: [{ name: "data", ...claim }] }));
  const missing = await server.request("GET", "/debug/explain/namespaces/a/po/web");
  assert.equal(missing.code, 200, missing.text);
  assert.partialDeepStrictEqual(missing.body, {
    kind: "Explanation",
    apiVersion: "diagnostics.coxswain.dev/v1",
    object: { group: "", resource: "pods", kind: "Pod", namespace: "a", name: "web" },
    healthy: false,
    cause: { reason: "ClaimMissing" },
  });
  await make(server, `${core}/persistentvolumeclaims`, pending);
  const { body } = await server.request("GET", "/debug/explain/namespaces/a/Pod/web");
  assert.deepEqual(
    body.chain.map(({ reason }: { reason: string }) => reason),
    ["ClaimNotBound", "NoVolumeMatches"],
  );
  assert.deepEqual(body.cause, body.chain[1]);
  const text = await server.request("GET", "/debug/explain/namespaces/a/pods/web?output=text");
  assert.match(
    text.text,
    /^Cause: persistentvolumeclaim\/data: has no storage class, and no persistent volume matches: there is none\n/,
  );
  assert.match(text.text, /\n {2}pod\/web {21}waits for its persistent volume claim data to be bound {2}\(kube-scheduler, for /);
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  const table = await server.request("GET", "/debug/explain/namespaces/a/pods/web", undefined, { accept });
  assert.deepEqual(
    [table.body.kind, table.body.rows.length, table.body.rows[1].cells[0]],
    ["Table", 2, "persistentvolumeclaim/data"],
  );
  const well = await server.request("GET", "/debug/explain/configmaps/none?output=text");
  assert.match(well.text, /configmaps have a namespace/);
  const namespaced = await server.request("GET", "/debug/explain/namespaces/whatever/namespaces/b?output=text");
  assert.equal(namespaced.text, "Healthy: namespace/b: nothing is wrong with it.\n");
});

test("other paths, resources, methods and names are refused with a Status", async (t) => {
  const server = await prepared(t);
  for (const { path, code, message } of [
    { path: "namespaces/a/nothing/x", code: 400, message: /the server doesn't have a resource type "nothing"/ },
    { path: "pods", code: 400, message: /the form is/ },
    { path: "namespaces/a/pods/web/more", code: 400, message: /the form is/ },
    { path: "namespaces/a/pods/web", code: 404, message: /pods "web" not found/ },
    { path: "namespaces/a/pods/web?output=xml", code: 400, message: /output=xml/ },
    { path: "namespaces/a/services/web?about=node/n1", code: 400, message: /only pods about node/ },
    { path: "namespaces/a/pods/web?about=nothing", code: 400, message: /only pods about node/ },
    { path: "namespaces/a/tokenreviews/x", code: 400, message: /resource type/ },
  ]) {
    const { body } = await server.request("GET", `/debug/explain/${path}`);
    assert.deepEqual([body.kind, body.code], ["Status", code], path);
    assert.match(body.message, message);
  }
  assert.equal((await server.request("POST", "/debug/explain/namespaces/a/pods/web", {})).code, 405);
});

test("an explanation shows only objects that the user may read, and anonymous users get no answer", async (t) => {
  const server = await prepared(t);
  await make(server, `${core}/pods`, pod("web", { nodeName: "secret-node", volumes: [{ name: "data", ...claim }] }));
  await make(server, `${core}/persistentvolumeclaims`, {
    ...pending,
    spec: { ...pending.spec, storageClassName: "secret-class" },
  });
  await make(server, `${core}/secrets`, { metadata: { name: "hidden" } });
  const fetchText = async (path: string, headers: Record<string, string | undefined> = jane) =>
    server.request("GET", `/debug/explain/${path}`, undefined, headers);
  assert.equal((await fetchText("namespaces/a/pods/web", { authorization: undefined })).code, 403, "anonymous");
  const refused = await fetchText("namespaces/a/pods/web");
  assert.deepEqual([refused.code, refused.body.reason], [403, "Forbidden"]);
  assert.match(refused.body.message, /User "jane" cannot get resource "pods" in API group "" in the namespace "a"/);
  assert.equal((await fetchText("namespaces/a/pods/none")).code, 403, "whether it exists is not reported");

  await grant(server, "a", ["pods"]);
  const alone = await fetchText("namespaces/a/pods/web");
  assert.equal(alone.code, 200);
  assert.doesNotMatch(alone.text, /secret-class|persistentvolumeclaims/);
  assert.equal((await fetchText("namespaces/b/pods/web")).code, 403);
  assert.equal((await fetchText("namespaces/a/pods/web?about=node/secret-node")).code, 403, "the node is not hers");

  await make(server, `${core}/pods`, pod("waits", { volumes: [{ name: "data", ...claim }] }));
  const before = await fetchText("namespaces/a/pods/waits");
  assert.doesNotMatch(before.text, /secret-class|persistentvolumeclaims/);
  await grant(server, "a", ["persistentvolumeclaims"]);
  const after = await fetchText("namespaces/a/pods/waits");
  assert.deepEqual(
    after.body.chain.map((finding: { object: { resource: string } }) => finding.object.resource),
    ["pods", "persistentvolumeclaims"],
  );

  assert.equal((await fetchText("namespaces/a/namespaces/a")).code, 403, "namespaces are not hers");
  assert.equal((await fetchText("namespaces/a/secrets/hidden")).code, 403);
});

test("a watch sends one explanation for each change, and ends when the object is well", async (t) => {
  const server = await prepared(t);
  await make(server, `${core}/services`, { metadata: { name: "web" }, spec: { ports: [{ port: 80 }] } });
  const watched = server.request("GET", "/debug/explain/namespaces/a/services/web?watch=1", undefined, { accept: "text/plain" });
  const subsets = [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ port: 80 }] }];
  await make(server, `${core}/endpoints`, { metadata: { name: "web" }, subsets });
  const { text } = await watched;
  assert.match(text, /Healthy: service\/web: nothing is wrong with it\.\n$/);
});
