import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { newHttp, startTestServer, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

const jane = { authorization: "Bearer user-token" };
const nobody = { authorization: undefined };

test("a request without credentials is anonymous and may read health and version only", async () => {
  assert.equal((await server.request("GET", "/healthz", undefined, nobody)).code, 200);
  assert.equal((await server.request("GET", "/version", undefined, nobody)).code, 200);
  const { code, body } = await server.request("GET", "/api/v1/pods", undefined, nobody);
  assert.equal(code, 403);
  assert.partialDeepStrictEqual(body, {
    kind: "Status",
    reason: "Forbidden",
    message: 'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope',
    details: { kind: "pods" },
  });
});

test("an unknown token is 401, not anonymous", async () => {
  const { code, body } = await server.request("GET", "/healthz", undefined, { authorization: "Bearer wrong" });
  assert.equal(code, 401);
  assert.partialDeepStrictEqual(body, {
    kind: "Status",
    status: "Failure",
    message: "Unauthorized",
    reason: "Unauthorized",
    code: 401,
  });
});

test("a refusal names verb, resource, group and namespace", async () => {
  const path = "/apis/apps/v1/namespaces/default/deployments/x/status";
  const { code, body, headers } = await server.request("GET", path, undefined, jane);
  assert.equal(code, 403);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(
    body.message,
    'deployments.apps "x" is forbidden: User "jane" cannot get resource "deployments/status" in API group "apps" in the namespace "default"',
  );
  assert.deepEqual(body.details, { name: "x", group: "apps", kind: "deployments" });
});

test("every answer has an audit id and must not be cached", async () => {
  for (const path of ["/api/v1/namespaces/default", "/api/v1/namespaces/missing", "/nowhere"]) {
    const { headers } = await server.request("GET", path);
    assert.match(String(headers["audit-id"]), /^[0-9a-f-]{36}$/);
    assert.equal(headers["cache-control"], "no-cache, private");
  }
  const { headers } = await server.request("GET", "/version", undefined, { "audit-id": "mine" });
  assert.equal(headers["audit-id"], "mine");
});

test("each request of a resource is counted in both histograms of its duration", async () => {
  await server.request("GET", "/api/v1/namespaces/default");
  const { text } = await server.request("GET", "/metrics");
  const target = 'group="",version="v1",resource="namespaces",subresource="",scope="resource",component="apiserver"';
  for (const [name, verb] of [
    ["duration", 'verb="GET",dry_run=""'],
    ["slo_duration", 'verb="GET"'],
  ]) {
    const line = text.split("\n").find((one) => one.startsWith(`apiserver_request_${name}_seconds_count{${verb},${target}}`));
    assert.ok(Number(line?.split(" ").at(-1)) >= 1, `${name}: ${line}`);
  }
});

test("requests of the server to itself are counted", async () => {
  const { text } = await server.request("GET", "/metrics");
  assert.match(text, /^apiserver_selfrequest_total\{verb="POST",resource="clusterroles",subresource=""\} [1-9]/m);
  assert.match(text, /^apiserver_selfrequest_total\{verb="LIST",resource="clusterroles",subresource=""\} [1-9]/m);
});

test("the duration of authentication, impersonation and authorization is measured", async () => {
  await server.request("GET", "/api/v1/namespaces/default");
  const { text } = await server.request("GET", "/metrics");
  for (const filter of ["authentication", "impersonation", "authorization"]) {
    const count = text.match(new RegExp(`^apiserver_request_filter_duration_seconds_count\\{filter="${filter}"\\} (\\d+)$`, "m"));
    const sum = text.match(new RegExp(`^apiserver_request_filter_duration_seconds_sum\\{filter="${filter}"\\} (\\S+)$`, "m"));
    assert.ok(Number(count?.[1]) >= 1, filter);
    // The sum in seconds stays below the number of requests only if start and end use the same clock.
    assert.ok(Number(sum?.[1]) > 0 && Number(sum?.[1]) < Number(count?.[1]), filter);
  }
});

test("a client certificate is its CommonName in all its Organizations", async (t) => {
  const http = newHttp(server.url, server.ca, await server.clientCertificate("ann", ["readers", "system:masters"]));
  t.after(() => http.close());
  const { code } = await http.request("GET", "/api/v1/namespaces");
  assert.equal(code, 200);
  const plain = newHttp(server.url, server.ca, await server.clientCertificate("ann", ["readers"]));
  t.after(() => plain.close());
  const refused = await plain.request("GET", "/api/v1/namespaces");
  assert.equal(refused.code, 403);
  assert.match(refused.body.message, /User "ann" cannot list/);
});

test("impersonation needs the right for each part of the identity", async () => {
  const as = (headers: Record<string, string | undefined>) =>
    server.request("GET", "/api/v1/namespaces/default/pods", undefined, headers);
  const admin = await as({ "impersonate-user": "jane" });
  assert.equal(admin.code, 403);
  assert.match(admin.body.message, /User "jane" cannot list resource "pods"/);
  const grouped = await as({ "impersonate-user": "jane", "impersonate-group": "system:masters" });
  assert.equal(grouped.code, 200);
  const forbidden = await as({ ...jane, "impersonate-user": "admin" });
  assert.equal(forbidden.code, 403);
  assert.match(forbidden.body.message, /users "admin" is forbidden: User "jane" cannot impersonate resource "users"/);
  const account = await as({ ...jane, "impersonate-user": "system:serviceaccount:default:robot" });
  assert.match(account.body.message, /cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default"/);
  const partial = await as({ "impersonate-group": "system:masters" });
  assert.equal(partial.code, 500);
});

test("a service account who is impersonated is in its groups", async () => {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { nonResourceAttributes: { path: "/openid/v1/jwks", verb: "get" } },
  };
  const { body } = await server.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, {
    "impersonate-user": "system:serviceaccount:default:robot",
  });
  assert.equal(body.status.allowed, true);
  assert.match(body.status.reason, /system:service-account-issuer-discovery/);
});

test("identity headers of a client that is no front proxy are ignored", async () => {
  const { code, body } = await server.request("GET", "/api/v1/namespaces", undefined, {
    ...nobody,
    "x-remote-user": "admin",
    "x-remote-group": "system:masters",
  });
  assert.equal(code, 403);
  assert.match(body.message, /system:anonymous/);
});

test("a path with a broken escape gets 400, and later requests are served", async () => {
  assert.equal((await server.request("GET", "/api/v1/namespaces/%zz")).code, 400);
  assert.equal((await server.request("GET", "/api/v1/namespaces?timeout=soon")).code, 400);
  assert.equal((await server.request("GET", "/api/v1/namespaces/default")).code, 200);
});

test("counts requests of served resources, and only of those", async () => {
  await server.request("GET", "/api/v1/namespaces/default");
  await server.request("GET", "/apis/made.up/v1/things");
  const { text, headers } = await server.request("GET", "/metrics");
  assert.match(String(headers["content-type"]), /^text\/plain; version=0\.0\.4/);
  assert.match(
    text,
    /apiserver_request_total\{verb="GET",dry_run="",group="",version="v1",resource="namespaces",subresource="",scope="resource",component="apiserver",code="200"\} \d+/,
  );
  assert.doesNotMatch(text, /made\.up/);
});
