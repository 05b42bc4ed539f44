/** Authentication and authorization webhooks against the complete server, with flags and real TLS. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { CompactSign } from "jose";
import { configFromFlags } from "../config.ts";
import { kubeApiserver } from "../flags.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { startTlsPeer } from "../testing/tls-peer.ts";

const as = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

test("a token webhook names the user, once for its time; when it fails the caller is not anonymous", async (t) => {
  const peer = await startTlsPeer(t, ({ body }) => {
    const { apiVersion, spec } = JSON.parse(body);
    if (spec.token === "broken") return { status: 403, body: "no" };
    const user = { username: "remote", groups: ["system:masters"] };
    return { body: { apiVersion, kind: "TokenReview", status: spec.token === "good" ? { authenticated: true, user } : {} } };
  });
  const server = await startTestServer(t, [`--authentication-token-webhook-config-file=${peer.kubeconfig()}`]);
  const get = (token: string) => server.request("GET", "/api/v1/namespaces/default", undefined, as(token));
  assert.deepEqual([(await get("good")).code, (await get("bad")).code, (await get("broken")).code], [200, 401, 401]);
  const requested = (token: string): number => peer.requests.filter(({ body }) => JSON.parse(body).spec.token === token).length;
  assert.equal(JSON.parse(peer.requests[0]?.body ?? "").apiVersion, "authentication.k8s.io/v1beta1");
  await Promise.all([get("good"), get("bad"), get("broken")]);
  assert.deepEqual([requested("good"), requested("bad"), requested("broken")], [1, 1, 2]);
  assert.equal(requested(server.adminToken), 0, "tokens that are known here are not sent to the webhook");
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: "good" } };
  const { body } = await server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review);
  assert.partialDeepStrictEqual(body.status, { authenticated: true, user: { username: "remote" } });
});

test("an OIDC provider's users come in with their prefix and groups, once it is up", async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  let up = false;
  const peer = await startTlsPeer(t, ({ url }, base) => {
    if (!up) return { status: 503, body: "down" };
    if (url === "/keys") return { body: { keys: [publicKey.export({ format: "jwk" })] } };
    return { body: { issuer: base, jwks_uri: `${base}/keys` } };
  });
  const flags = [`--oidc-issuer-url=${peer.url}`, "--oidc-client-id=kubernetes", `--oidc-ca-file=${peer.caFile}`];
  const claims = ["--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:", "--oidc-required-claim=hd=x.y"];
  const server = await startTestServer(t, [...flags, ...claims, "--oidc-signing-algs=ES256"]);
  const sign = (more: object): Promise<string> => {
    const payload = { iss: peer.url, aud: "kubernetes", sub: "jane", hd: "x.y", exp: Date.now() / 1000 + 3600, ...more };
    return new CompactSign(Buffer.from(JSON.stringify(payload))).setProtectedHeader({ alg: "ES256" }).sign(privateKey);
  };
  const token = await sign({ groups: ["readers"] });
  const get = (bearer: string) => server.request("GET", "/api/v1/namespaces/default", undefined, as(bearer));
  assert.equal((await get(token)).code, 401, "while the provider is away its users are not accepted");
  up = true;
  await waitFor(async () => (await get(token)).code === 403, { what: "the provider" });
  assert.match((await get(token)).body.message, new RegExp(`User "${peer.url}#jane" cannot get resource "namespaces"`));
  await server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: "readers" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "oidc:readers" }],
  });
  await waitFor(async () => (await get(token)).code === 200, { what: "the binding" });
  assert.equal((await get(await sign({ hd: "other" }))).code, 401);
});

test("an authorization webhook allows, denies and, when it fails, does not allow", async (t) => {
  let away = false;
  const peer = await startTlsPeer(t, ({ body }) => {
    if (away) return { status: 400, body: "no" };
    const { apiVersion, spec } = JSON.parse(body);
    const status = { allowed: spec.resourceAttributes?.resource === "pods", reason: "the oracle" };
    return { body: { apiVersion, kind: "SubjectAccessReview", status } };
  });
  const flags = ["--authorization-mode=RBAC,Webhook", `--authorization-webhook-config-file=${peer.kubeconfig("/authorize")}`];
  const server = await startTestServer(t, [...flags, "--authorization-webhook-version=v1"]);
  const get = (resource: string) => server.request("GET", `/api/v1/namespaces/default/${resource}`, undefined, as("user-token"));
  assert.equal((await get("pods")).code, 200);
  const refused = await get("secrets");
  assert.equal(refused.code, 403);
  assert.match(refused.body.message, /User "jane" cannot list resource "secrets" .*: the oracle$/);
  const requested = peer.requests.length;
  assert.deepEqual([(await get("pods")).code, (await get("secrets")).code], [200, 403]);
  assert.equal(peer.requests.length, requested, "answers are remembered");
  assert.deepEqual(JSON.parse(peer.requests.find(({ body }) => body.includes('"pods"'))?.body ?? "").spec, {
    resourceAttributes: { namespace: "default", verb: "list", version: "v1", resource: "pods" },
    user: "jane",
    groups: ["developers", "system:authenticated"],
    uid: "jane-uid",
  });
  away = true;
  assert.equal((await get("configmaps")).code, 500);
});

test("ABAC allows what a line of its file says", async (t) => {
  const peer = await startTlsPeer(t, () => ({ body: {} }));
  const policy = { user: "jane", namespace: "default", resource: "pods", readonly: true };
  const file = peer.file("policy.jsonl", `# jane\n${JSON.stringify(policy)}\n`);
  const server = await startTestServer(t, ["--authorization-mode=ABAC", `--authorization-policy-file=${file}`]);
  const send = (method: string, path: string, body?: unknown) => server.request(method, path, body, as("user-token"));
  assert.equal((await send("GET", "/api/v1/namespaces/default/pods")).code, 200);
  const refused = await send("GET", "/api/v1/namespaces/default/secrets");
  assert.equal(refused.code, 403);
  assert.match(refused.body.message, /: No policy matched\.$/);
  assert.equal((await send("DELETE", "/api/v1/namespaces/default/pods/x")).code, 403);
});

const problemsOf = (...argv: string[]): string => {
  try {
    configFromFlags(parseFlags(kubeApiserver.flags, ["--etcd-servers=http://127.0.0.1:1", ...argv]).values);
    return "";
  } catch (err) {
    return (err as Error).message;
  }
};

for (const { argv, want } of [
  { argv: ["--oidc-issuer-url=https://idp"], want: "oidc-issuer-url and oidc-client-id should be specified together" },
  { argv: ["--oidc-client-id=x"], want: "oidc-issuer-url and oidc-client-id should be specified together" },
  {
    argv: ["--oidc-issuer-url=http://idp", "--oidc-client-id=x"],
    want: `'oidc-issuer-url' ("http://idp") has invalid scheme ("http"), require 'https'`,
  },
  {
    argv: ["--oidc-issuer-url=https://idp", "--oidc-client-id=x", "--oidc-signing-algs=none"],
    want: 'oidc: unsupported signing alg: "none"',
  },
  { argv: ["--authorization-mode=Nobody"], want: 'authorization-mode "Nobody" is not a valid mode' },
  { argv: ["--authorization-mode=RBAC,RBAC"], want: 'authorization-mode ["RBAC" "RBAC"] has mode specified more than once' },
  { argv: ["--authorization-mode=ABAC"], want: "authorization-mode ABAC's authorization policy file not passed" },
  { argv: ["--authorization-mode=Webhook"], want: "authorization-mode Webhook's authorization config file not passed" },
  { argv: ["--authorization-policy-file=/x"], want: "cannot specify --authorization-policy-file without mode ABAC" },
  {
    argv: ["--authorization-webhook-config-file=/x"],
    want: "cannot specify --authorization-webhook-config-file without mode Webhook",
  },
  {
    argv: ["--authorization-mode=ABAC", "--authorization-policy-file=/nonexistent"],
    want: "open /nonexistent: no such file or directory",
  },
  { argv: ["--authentication-token-webhook-config-file=/nonexistent"], want: "stat /nonexistent: no such file or directory" },
  {
    argv: ["--authentication-token-webhook-config-file=/x", "--authentication-token-webhook-version=v2"],
    want: 'unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"',
  },
  {
    argv: ["--authorization-mode=Webhook", "--authorization-webhook-config-file=/x", "--authorization-webhook-version=v2"],
    want: 'unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"',
  },
]) {
  test(`the start ends with ${argv.join(" ")}`, () => assert.ok(problemsOf(...argv).includes(want), problemsOf(...argv)));
}
