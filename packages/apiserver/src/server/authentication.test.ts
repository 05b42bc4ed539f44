/** Authentication with all kinds of credentials, valid and invalid, over real TLS. */
import assert from "node:assert/strict";
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type KeyPair, newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { CompactSign, createLocalJWKSet, jwtVerify } from "jose";
import { newHttp, readTestFile, startTestServer, type TestResponse, type TestServer } from "../testing/start-test-server.ts";

const issuer = "https://new.issuer.test";
const oldIssuer = "https://old.issuer.test";
const ec = generateKeyPairSync("ec", { namedCurve: "P-384" });
const pem = { type: "pkcs8", format: "pem" } as const;
const directory = mkdtempSync(join(tmpdir(), "cox-authentication-"));

let server: TestServer;
let proxyCa: KeyPair;
let rsaKey: KeyObject;

before(async () => {
  proxyCa = await newCa({ commonName: "front proxies" });
  rsaKey = createPrivateKey(await readTestFile("sa.key"));
  server = await startTestServer(undefined, [
    `--service-account-issuer=${issuer}`,
    `--service-account-issuer=${oldIssuer}`,
    `--service-account-signing-key-file=${write("ec.key", ec.privateKey.export(pem) as string)}`,
    `--service-account-key-file=${write("ec.pub", ec.publicKey.export({ type: "spki", format: "pem" }) as string)}`,
    `--service-account-key-file=${write("rsa.pub", await readTestFile("sa.pub"))}`,
    "--service-account-max-token-expiration=2h",
    "--service-account-jwks-uri=https://keys.issuer.test/jwks",
    "--enable-bootstrap-token-auth",
    `--requestheader-client-ca-file=${write("proxy.crt", proxyCa.certPem)}`,
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
  ]);
});
after(async () => {
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

function write(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

const nobody = { authorization: undefined };
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** All authenticated users may review their own access; the error of a forbidden list names the user. */
async function whoIs(send: (path: string) => Promise<TestResponse>): Promise<string> {
  const { code, body } = await send("/api/v1/nodes");
  return code === 401 ? "401" : (/User "([^"]*)"/.exec(body.message)?.[1] ?? String(code));
}

const whoHas = (token: string): Promise<string> => whoIs((path) => server.request("GET", path, undefined, bearer(token)));

async function review(token: string, audiences?: string[]) {
  const { body } = await server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    spec: { token, ...(audiences === undefined ? {} : { audiences }) },
  });
  return body.status;
}

async function newAccount(name: string): Promise<{ uid: string }> {
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name } });
  return (await server.request("GET", `/api/v1/namespaces/default/serviceaccounts/${name}`)).body.metadata;
}

async function requestToken(name: string, spec: object = {}): Promise<{ token: string; seconds: number; code: number }> {
  const { code, body } = await server.request("POST", `/api/v1/namespaces/default/serviceaccounts/${name}/token`, { spec });
  return { token: body.status?.token ?? "", seconds: body.spec?.expirationSeconds ?? 0, code };
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] as string, "base64url").toString("utf8"));

function sign(claims: object, header: Record<string, string>, key: KeyObject): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims))).setProtectedHeader(header as never).sign(key);
}

test("service accounts: the first issuer signs, tokens of all issuers and all keys are accepted", async () => {
  const { uid } = await newAccount("robot");
  const { token } = await requestToken("robot");
  const claims = claimsOf(token);
  assert.equal(claims.iss, issuer);
  assert.deepEqual(claims.aud, [issuer]);
  assert.equal(await whoHas(token), "system:serviceaccount:default:robot");
  const old = { ...claims, iss: oldIssuer, "kubernetes.io": { namespace: "default", serviceaccount: { name: "robot", uid } } };
  assert.equal(await whoHas(await sign(old, { alg: "RS256" }, rsaKey)), "system:serviceaccount:default:robot");
  assert.equal(await whoHas(await sign({ ...old, iss: "https://other.test" }, { alg: "RS256" }, rsaKey)), "401");
});

for (const { name, path, body, code, message } of [
  {
    name: "too short a life, though the account is missing",
    path: "default/serviceaccounts/nobody",
    body: { spec: { expirationSeconds: 1 } },
    code: 422,
    message:
      'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes',
  },
  {
    name: "a missing account, whatever it is bound to",
    path: "default/serviceaccounts/nobody",
    body: { spec: { boundObjectRef: { kind: "Node", name: "x" } } },
    code: 404,
    message: 'serviceaccounts "nobody" not found',
  },
  {
    name: "a missing namespace",
    path: "nowhere/serviceaccounts/nobody",
    body: { spec: { expirationSeconds: 1 } },
    code: 404,
    message: 'namespaces "nowhere" not found',
  },
]) {
  test(`service accounts: a token is refused for ${name}`, async () => {
    const answer = await server.request("POST", `/api/v1/namespaces/${path}/token`, body);
    assert.equal(answer.code, code);
    assert.equal(answer.body.message, message);
  });
}

test("service accounts: a request for a token keeps the name it has", async () => {
  await newAccount("named");
  const path = "/api/v1/namespaces/default/serviceaccounts/named/token";
  const { body } = await server.request("POST", path, { metadata: { name: "mine" }, spec: {} });
  assert.partialDeepStrictEqual(body, { kind: "TokenRequest", metadata: { name: "mine", namespace: "default" } });
  assert.equal(await whoHas(body.status.token), "system:serviceaccount:default:named");
});

test("service accounts: tokens that must not work", async () => {
  await newAccount("target");
  const { token } = await requestToken("target");
  const claims = claimsOf(token);
  const now = Math.floor(Date.now() / 1000);
  const foreign = generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey;
  const header = { alg: "ES384" };
  const publicPem = ec.publicKey.export({ type: "spki", format: "pem" });
  const withSecret = `${part({ alg: "HS256" })}.${part(claims)}`;
  const [head, body, signature] = token.split(".") as [string, string, string];
  const forged: Record<string, string> = {
    "expired longer ago than clocks differ": await sign({ ...claims, exp: now - 120 }, header, ec.privateKey),
    "not valid yet": await sign({ ...claims, nbf: now + 600 }, header, ec.privateKey),
    "of another issuer": await sign({ ...claims, iss: "https://elsewhere.test" }, header, ec.privateKey),
    "of no issuer": await sign({ ...claims, iss: undefined }, header, ec.privateKey),
    "for another audience": await sign({ ...claims, aud: ["vault"] }, header, ec.privateKey),
    "of another key": await sign(claims, header, foreign),
    "of another key, which its header brings": await sign(
      claims,
      { ...header, jwk: createPublicKey(foreign).export({ format: "jwk" }) } as never,
      foreign,
    ),
    "whose key id is a path": await sign(claims, { ...header, kid: "../../../../dev/null" }, foreign),
    "of another account's uid": await sign(
      { ...claims, "kubernetes.io": { namespace: "default", serviceaccount: { name: "target", uid: "other" } } },
      header,
      ec.privateKey,
    ),
    "alg none": `${part({ alg: "none" })}.${body}.`,
    "alg none with a signature": `${part({ alg: "none" })}.${body}.${signature}`,
    "the public key as a shared secret": `${withSecret}.${createHmac("sha256", publicPem).update(withSecret).digest("base64url")}`,
    "changed claims": `${head}.${part({ ...claims, sub: "system:serviceaccount:kube-system:admin" })}.${signature}`,
    "no signature": `${head}.${body}.`,
    "another algorithm of the same key": await sign(
      claims,
      { alg: "ES256" },
      generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
    ),
  };
  for (const [what, wrong] of Object.entries(forged)) {
    assert.equal(await whoHas(wrong), "401", what);
    const status = await review(wrong);
    assert.equal(status.authenticated ?? false, false, what);
    assert.ok(status.error, what);
    assert.ok(!status.error.includes(signature), "an error does not repeat the token");
  }
  assert.equal(await whoHas(token), "system:serviceaccount:default:target");
});

test("service accounts: a token dies with its account and with its secret", async () => {
  await newAccount("mortal");
  await server.request("POST", "/api/v1/namespaces/default/secrets", { metadata: { name: "bound" } });
  const bound = await requestToken("mortal", { boundObjectRef: { kind: "Secret", apiVersion: "v1", name: "bound" } });
  const plain = await requestToken("mortal");
  // The first use of the tokens: verification results are cached for ten seconds.
  const secret = "/api/v1/namespaces/default/secrets/bound";
  await deleted(secret);
  assert.equal(await whoHas(bound.token), "401", "the secret is gone");
  assert.equal(await whoHas(plain.token), "system:serviceaccount:default:mortal");
  const late = await requestToken("mortal");
  await deleted("/api/v1/namespaces/default/serviceaccounts/mortal");
  assert.equal(await whoHas(late.token), "401", "the account is gone");
  await newAccount("mortal");
  assert.equal(await whoHas(late.token), "401", "another one has its name");
});

/** Deletes an object and waits until the caches have observed it. */
async function deleted(path: string): Promise<void> {
  assert.equal((await server.request("DELETE", path)).code, 200);
  await waitFor(async () => (await server.request("GET", `${path}?resourceVersion=0`)).code === 404, { what: "the end" });
}

test("service accounts: --service-account-max-token-expiration is the longest, and only this server's pods get more", async () => {
  await newAccount("long");
  assert.equal((await requestToken("long", { expirationSeconds: 3600 })).seconds, 3600);
  const capped = await requestToken("long", { expirationSeconds: 86_400 });
  assert.equal(capped.seconds, 7200);
  const { exp, iat } = claimsOf(capped.token);
  assert.equal(exp - iat, 7200);

  const { code } = await server.request("POST", "/api/v1/namespaces/default/pods", {
    metadata: { name: "web" },
    spec: { serviceAccountName: "long", containers: [{ name: "main", image: "registry.test/web:1" }] },
  });
  assert.equal(code, 201);
  const inPod = { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "web" }, expirationSeconds: 3607 };
  const injected = await requestToken("long", inPod);
  assert.equal(injected.seconds, 3607, "the client hears when to renew");
  const claims = claimsOf(injected.token);
  assert.equal(claims.exp - claims.iat, 365 * 24 * 3600, "and old clients that do not renew live on");
  assert.equal(claims["kubernetes.io"].warnafter - claims.iat, 3607);
  const elsewhere = claimsOf((await requestToken("long", { ...inPod, audiences: ["vault"] })).token);
  assert.equal(elsewhere.exp - elsewhere.iat, 3607, "others' audiences get what was requested");
  const unbound = claimsOf((await requestToken("long", { expirationSeconds: 3607 })).token);
  assert.equal(unbound.exp - unbound.iat, 3607);
});

test("a token review grants the audiences that both sides name", async () => {
  await newAccount("audience");
  const { token } = await requestToken("audience", { audiences: ["vault", issuer] });
  assert.deepEqual((await review(token)).audiences, [issuer]);
  assert.deepEqual((await review(token, ["vault", "other"])).audiences, ["vault"]);
  const refused = await review(token, ["other"]);
  assert.equal(refused.authenticated ?? false, false);
  assert.match(
    refused.error,
    /token audiences \["vault" "https:\/\/new.issuer.test"\] is invalid for the target audiences \["other"\]/,
  );
  const { user } = await review(token);
  assert.equal(user.username, "system:serviceaccount:default:audience");
  assert.deepEqual(user.groups, ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
  assert.equal((await review("nonsense")).error, "invalid bearer token");
});

test("the discovery document leads to the keys that verify tokens, for service accounts", async () => {
  await newAccount("reader");
  const { token } = await requestToken("reader");
  for (const path of ["/.well-known/openid-configuration", "/openid/v1/jwks"]) {
    assert.equal((await server.request("GET", path, undefined, nobody)).code, 403, path);
    assert.equal((await server.request("GET", path, undefined, { authorization: "Bearer user-token" })).code, 403, path);
    assert.equal((await server.request("GET", path, undefined, bearer(token))).code, 200, path);
    assert.equal((await server.request("POST", path, {}, bearer(token))).code, 403, path);
  }
  const { body, headers } = await server.request("GET", "/.well-known/openid-configuration");
  assert.equal(headers["content-type"], "application/json");
  assert.deepEqual(body, {
    issuer,
    jwks_uri: "https://keys.issuer.test/jwks",
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES384", "RS256"],
  });
  const keys = await server.request("GET", "/openid/v1/jwks");
  assert.equal(keys.headers["content-type"], "application/jwk-set+json");
  const { payload } = await jwtVerify(token, createLocalJWKSet(JSON.parse(keys.text)), { issuer, audience: issuer });
  assert.equal(payload.sub, "system:serviceaccount:default:reader");
});

// Bootstrap tokens

const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
const bootstrapData = { "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true" };
for (const [index, { name, data = {}, type = "bootstrap.kubernetes.io/token", suffix = "", want }] of (
  [
    { name: "that is whole", data: { expiration: inAnHour }, want: true },
    { name: "without an end", want: true },
    { name: "after its end", data: { expiration: new Date(Date.now() - 1000).toISOString() }, want: false },
    { name: "whose end cannot be read", data: { expiration: "2999-01-01" }, want: false },
    { name: "for signing only", data: { "usage-bootstrap-authentication": "false" }, want: false },
    { name: "of another type", type: "Opaque", want: false },
    { name: "with the id of another", data: { "token-id": "zzzzzz" }, want: false },
    { name: "with groups that are not for bootstrapping", data: { "auth-extra-groups": "system:masters" }, want: false },
    { name: "with groups", data: { "auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a" }, want: true },
    { name: "with another secret", data: { "token-secret": "0123456789abcdee" }, want: false },
  ] as { name: string; data?: Record<string, string>; type?: string; suffix?: string; want: boolean }[]
).entries()) {
  test(`a bootstrap token ${name} is ${want ? "accepted" : "not accepted"}`, async () => {
    const id = `aaaaa${index}`;
    const all: Record<string, string> = { "token-id": id, ...bootstrapData, ...data };
    const { code } = await server.request("POST", "/api/v1/namespaces/kube-system/secrets", {
      metadata: { name: `bootstrap-token-${id}${suffix}` },
      type,
      data: Object.fromEntries(Object.entries(all).map(([key, value]) => [key, Buffer.from(value).toString("base64")])),
    });
    assert.equal(code, 201);
    const token = `${id}.0123456789abcdef`;
    if (!want) return assert.equal(await whoHas(token), "401");
    // The secret is read from the cache, which receives it with a delay.
    await waitFor(async () => (await whoHas(token)) === `system:bootstrap:${id}`, { what: "the secret" });
    const extra = data["auth-extra-groups"] === undefined ? [] : ["system:bootstrappers:a", "system:bootstrappers:b"];
    assert.deepEqual((await review(token)).user.groups, ["system:bootstrappers", ...extra, "system:authenticated"]);
  });
}

// Front proxies

/** Creates a review of the client's own access, the only response that contains the user's groups and extras. */
async function withCertificate(
  pair: { cert: string; key: string } | undefined,
  headers: Record<string, string>,
): Promise<string> {
  const http = newHttp(server.url, server.ca, pair);
  try {
    return await whoIs((path) => http.request("GET", path, undefined, headers));
  } finally {
    http.close();
  }
}

async function certificate(commonName: string, ca: KeyPair, usages: ("client" | "server")[] = ["client"], validDays = 1) {
  const { certPem, keyPem } = await newCertificate({ commonName, usages, ca, validDays });
  return { cert: certPem, key: keyPem };
}

const asJane = { "x-remote-user": "ann", "x-remote-group": "readers" };

test("a front proxy speaks for its users: groups, and extras with encoded keys", async () => {
  const pair = await certificate("front-proxy-client", proxyCa);
  assert.equal(await withCertificate(pair, asJane), "ann");
  const masters = newHttp(server.url, server.ca, pair);
  const headers = { ...asJane, "x-remote-group": "system:masters", "x-remote-extra-example.com%2Fid": "a" };
  assert.equal((await masters.request("GET", "/api/v1/nodes", undefined, headers)).code, 200);
  masters.close();
});

test("headers of a front proxy are ignored from other clients", async () => {
  const stranger = await newCa({ commonName: "front proxies" });
  const masters = { "x-remote-user": "root", "x-remote-group": "system:masters" };
  for (const [what, pair, want] of [
    ["no certificate", undefined, "system:anonymous"],
    ["a name that is not allowed", await certificate("front-proxy", proxyCa), "401"],
    ["a user's certificate", await server.clientCertificate("joe"), "joe"],
    ["a user who is called as the proxy", await server.clientCertificate("front-proxy-client"), "front-proxy-client"],
    ["another authority of the same name", await certificate("front-proxy-client", stranger), "401"],
    ["a certificate for serving", await certificate("front-proxy-client", proxyCa, ["server"]), "401"],
  ] as const) {
    assert.equal(await withCertificate(pair, masters), want, what);
    assert.equal(await withCertificate(pair, { "X-REMOTE-USER": "root", X_Remote_Group: "system:masters" }), want, what);
  }
  const pair = await certificate("front-proxy-client", proxyCa);
  assert.equal(await withCertificate(pair, { x_remote_user: "root" }), "401", "an underscore is another header");
  assert.equal(await withCertificate(pair, { "x-remote-group": "system:masters" }), "401", "groups without a user");
});

test("a front proxy's user is not a user's own certificate, nor its token", async () => {
  const pair = await certificate("front-proxy-client", proxyCa);
  assert.equal(await withCertificate(pair, { ...asJane, ...bearer("user-token") }), "ann", "the proxy comes first");
  assert.equal(await withCertificate(pair, bearer("user-token")), "jane");
});

// Client certificates

test("client certificates that must not work", async () => {
  const stranger = await newCa({ commonName: "test-ca" });
  assert.equal(await withCertificate(await certificate("jane", stranger), {}), "401");
  assert.equal(
    await withCertificate(await certificate("jane", stranger), bearer("user-token")),
    "jane",
    "a good token beside it counts",
  );
  assert.equal(
    await withCertificate(await server.clientCertificate("joe"), bearer("wrong")),
    "joe",
    "the certificate comes first",
  );
});

test("authorities are read again when their file changes, and published for others", async () => {
  const next = await newCa({ commonName: "next front proxies" });
  const pair = await certificate("front-proxy-client", next);
  assert.equal(await withCertificate(pair, asJane), "401");
  const path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
  const { data } = (await server.request("GET", path)).body;
  assert.deepEqual(
    { ...data, "client-ca-file": undefined },
    {
      "client-ca-file": undefined,
      "requestheader-client-ca-file": proxyCa.certPem,
      "requestheader-allowed-names": '["front-proxy-client"]',
      "requestheader-username-headers": '["X-Remote-User"]',
      "requestheader-group-headers": '["X-Remote-Group"]',
      "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    },
  );
  assert.equal(data["client-ca-file"], server.ca);
  write("proxy.crt", `${proxyCa.certPem}${next.certPem}`);
  await waitFor(async () => (await withCertificate(pair, asJane)) === "ann", { what: "the new authority" });
  assert.equal(await withCertificate(await certificate("front-proxy-client", proxyCa), asJane), "ann", "and the one before it");
  const published = async (): Promise<string> => (await server.request("GET", path)).body.data["requestheader-client-ca-file"];
  await waitFor(async () => (await published()).includes(next.certPem.trim()), { what: "the config map" });
});

// Impersonation

test("impersonation without a user is an error that lists what was requested", async () => {
  for (const [headers, parts] of [
    [{ "impersonate-group": "readers" }, "[{Group  readers    }]"],
    [{ "impersonate-uid": "7" }, "[{UID  7  authentication.k8s.io/v1  }]"],
    [{ "impersonate-extra-a": "b" }, "[{UserExtra  b  authentication.k8s.io/v1  a}]"],
  ] as const) {
    const { code, text, headers: answered } = await server.request("GET", "/api/v1/nodes", undefined, headers);
    assert.equal(code, 500);
    assert.equal(answered["content-type"], "text/plain; charset=utf-8");
    assert.equal(text, `Internal Server Error: "/api/v1/nodes": requested ${parts} without impersonating a user\n`);
  }
});

test("each part of an impersonated identity needs a separate right", async () => {
  await server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
    metadata: { name: "as-ann" },
    rules: [
      { apiGroups: [""], resources: ["users"], resourceNames: ["ann"], verbs: ["impersonate"] },
      { apiGroups: [""], resources: ["groups"], resourceNames: ["readers"], verbs: ["impersonate"] },
      { apiGroups: ["authentication.k8s.io"], resources: ["userextras/scope"], resourceNames: ["view"], verbs: ["impersonate"] },
      { apiGroups: ["authentication.k8s.io"], resources: ["uids"], resourceNames: ["7"], verbs: ["impersonate"] },
    ],
  });
  await server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: "as-ann" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "as-ann" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "jane" }],
  });
  const as = (headers: Record<string, string>) =>
    server.request("GET", "/api/v1/nodes", undefined, { ...bearer("user-token"), ...headers });
  await waitFor(async () => /User "ann"/.test((await as({ "impersonate-user": "ann" })).body.message), { what: "the binding" });
  const whole = {
    "impersonate-user": "ann",
    "impersonate-group": "readers",
    "impersonate-uid": "7",
    "impersonate-extra-scope": "view",
  };
  assert.match((await as(whole)).body.message, /User "ann" cannot list resource "nodes"/);
  for (const [change, refused] of [
    [{ "impersonate-user": "joe" }, 'users "joe"'],
    [{ "impersonate-user": "system:serviceaccount:default:ann" }, 'serviceaccounts "ann"'],
    [{ "impersonate-group": "system:masters" }, 'groups "system:masters"'],
    [{ "impersonate-uid": "8" }, 'uids.authentication.k8s.io "8"'],
    [{ "impersonate-extra-scope": "edit" }, 'userextras.authentication.k8s.io "edit"'],
    [{ "impersonate-extra-other": "view" }, 'userextras.authentication.k8s.io "view"'],
    // Every value of a header is authorized, not only the first one.
    [{ "impersonate-group": ["readers", "system:masters"] as never }, 'groups "system:masters"'],
    [{ "impersonate-extra-scope": ["view", "edit"] as never }, 'userextras.authentication.k8s.io "edit"'],
  ] as const) {
    const { code, body } = await as({ ...whole, ...change });
    assert.equal(code, 403, refused);
    assert.ok(body.message.startsWith(`${refused} is forbidden: User "jane" cannot impersonate resource`), body.message);
  }
});
