import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { CompactSign } from "jose";
import { startTlsPeer } from "../testing/tls-peer.ts";
import { checkOidcOptions, type OidcOptions, oidcToken, usernamePrefixOf } from "./oidc.ts";

interface SigningKey {
  readonly id: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pairs: Record<string, { privateKey: KeyObject; publicKey: KeyObject }> = {
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }),
  ES384: generateKeyPairSync("ec", { namedCurve: "P-384" }),
  ES512: generateKeyPairSync("ec", { namedCurve: "P-521" }),
};
const keyOf = (alg: string, id = alg): SigningKey => ({ id, alg, ...(pairs[alg] ?? rsa) });

/** An OpenID provider with adjustable keys, health and extra responses. */
async function startProvider(t: TestContext) {
  const state = {
    keys: [keyOf("RS256")],
    up: true,
    issuer: undefined as string | undefined,
    /** JWTs of distributed claims by path. */
    claims: new Map<string, string>(),
  };
  const peer = await startTlsPeer(t, ({ url }, base) => {
    if (!state.up) return { status: 503, body: "down" };
    if (url === "/.well-known/openid-configuration") {
      return { body: { issuer: state.issuer ?? base, jwks_uri: `${base}/keys` } };
    }
    if (url === "/keys") {
      return { body: { keys: state.keys.map(({ id, publicKey }) => ({ ...publicKey.export({ format: "jwk" }), kid: id })) } };
    }
    const claim = state.claims.get(url);
    return claim === undefined ? { status: 404, body: "nothing here" } : { body: claim };
  });
  const count = (path: string): number => peer.requests.filter(({ url }) => url === path).length;
  return { peer, state, count };
}

type Provider = Awaited<ReturnType<typeof startProvider>>;

async function sign(claims: object, key = keyOf("RS256"), header: object = {}): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: key.alg, kid: key.id, ...header })
    .sign(key.privateKey);
}

function authenticatorOf(t: TestContext, { peer }: Pick<Provider, "peer">, changes: Partial<OidcOptions> = {}) {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const clock = newFakeClock();
  const options: OidcOptions = {
    issuerUrl: peer.url,
    clientId: "kubernetes",
    ca: peer.ca,
    usernameClaim: "sub",
    usernamePrefix: "-",
    groupsClaim: "",
    groupsPrefix: "",
    requiredClaims: {},
    signingAlgorithms: ["RS256"],
    ...changes,
  };
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const authenticate = oidcToken(options, { clock, log, signal: stop.signal });
  const claims = (more: object = {}): object => ({
    iss: peer.url,
    aud: "kubernetes",
    sub: "jane",
    exp: clock.now() / 1000 + 300,
    ...more,
  });
  return { authenticate: (token: string) => authenticate(token, undefined), clock, claims, stop, errors };
}

/** Retries until the background discovery has completed. */
async function ready({ authenticate }: { authenticate: (token: string) => Promise<unknown> }, token: string): Promise<void> {
  await waitFor(
    async () => {
      try {
        await authenticate(token);
        return true;
      } catch (err) {
        return !/not initialized/.test((err as Error).message);
      }
    },
    { what: "the provider" },
  );
}

async function ask(t: TestContext, options: Partial<OidcOptions>, more: object) {
  const provider = await startProvider(t);
  const oidc = authenticatorOf(t, provider, options);
  const token = await sign(oidc.claims(more));
  await ready(oidc, token);
  return oidc.authenticate(token);
}

for (const alg of ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"]) {
  test(`OIDC: a token signed with ${alg} is good when that is allowed, and not otherwise`, async (t) => {
    const provider = await startProvider(t);
    provider.state.keys = [keyOf(alg)];
    const oidc = authenticatorOf(t, provider, { signingAlgorithms: [alg] });
    const token = await sign(oidc.claims(), keyOf(alg));
    await ready(oidc, token);
    assert.deepEqual(await oidc.authenticate(token), { user: { name: "jane", groups: [] } });
    const strict = authenticatorOf(t, provider, { signingAlgorithms: [alg === "RS256" ? "ES256" : "RS256"] });
    await ready(strict, token);
    await assert.rejects(strict.authenticate(token), /oidc: verify token: oidc: id token signed with unsupported algorithm/);
  });
}

for (const { name, options, claims, want } of [
  {
    name: "the issuer is the prefix of names by default",
    options: { usernamePrefix: "oidc:" },
    claims: {},
    want: { name: "oidc:jane", groups: [] },
  },
  {
    name: "an e-mail address is a name",
    options: { usernameClaim: "email", usernamePrefix: "" },
    claims: { email: "j@x.y", email_verified: true },
    want: { name: "j@x.y", groups: [] },
  },
  {
    name: "an e-mail address that nothing is said about counts as verified",
    options: { usernameClaim: "email" },
    claims: { email: "j@x.y" },
    want: { name: "j@x.y", groups: [] },
  },
  {
    name: "groups come from a list",
    options: { groupsClaim: "groups" },
    claims: { groups: ["a", "b"] },
    want: { name: "jane", groups: ["a", "b"] },
  },
  {
    name: "a group comes from a text",
    options: { groupsClaim: "role" },
    claims: { role: "a" },
    want: { name: "jane", groups: ["a"] },
  },
  {
    name: "groups get their prefix",
    options: { groupsClaim: "groups", groupsPrefix: "g:" },
    claims: { groups: ["a", "b"] },
    want: { name: "jane", groups: ["g:a", "g:b"] },
  },
  {
    name: "a groups claim of null, no groups",
    options: { groupsClaim: "groups" },
    claims: { groups: null },
    want: { name: "jane", groups: [] },
  },
  { name: "no groups claim, no groups", options: { groupsClaim: "groups" }, claims: {}, want: { name: "jane", groups: [] } },
  {
    name: "one of several audiences may be ours",
    options: {},
    claims: { aud: ["x", "kubernetes"] },
    want: { name: "jane", groups: [] },
  },
  {
    name: "required claims that hold",
    options: { requiredClaims: { hd: "x.y" } },
    claims: { hd: "x.y" },
    want: { name: "jane", groups: [] },
  },
  {
    name: "a verified address says nothing of other names",
    options: {},
    claims: { email_verified: false },
    want: { name: "jane", groups: [] },
  },
  {
    name: "RS256 is allowed where no algorithm is",
    options: { signingAlgorithms: [] },
    claims: {},
    want: { name: "jane", groups: [] },
  },
  { name: "a name of null is empty, as in Go", options: {}, claims: { sub: null }, want: { name: "", groups: [] } },
  {
    name: "a claim called __proto__ is one like others",
    options: { requiredClaims: { hd: "x.y" } },
    claims: { hd: "x.y", ["__proto__"]: { hd: "z" } },
    want: { name: "jane", groups: [] },
  },
]) {
  test(`OIDC: ${name}`, async (t) => {
    assert.deepEqual(await ask(t, options, claims), { user: want });
  });
}

for (const { name, options, claims, want } of [
  {
    name: "another audience",
    options: {},
    claims: { aud: "vault" },
    want: /oidc: verify token: oidc: expected audience "kubernetes" got \["vault"\]/,
  },
  {
    name: "its end in the past",
    options: {},
    claims: { exp: 1 },
    want: /oidc: verify token: oidc: token is expired \(Token Expiry: /,
  },
  { name: "no end", options: {}, claims: { exp: undefined }, want: /token is expired/ },
  {
    name: "its begin in the future",
    options: {},
    claims: { nbf: Date.UTC(2022, 0, 1) / 1000 + 61 },
    want: /before the nbf \(not before\) time/,
  },
  {
    name: "no name",
    options: { usernameClaim: "nick" },
    claims: {},
    want: /oidc: parse username claims "nick": claim not present/,
  },
  {
    name: "a name that is no text",
    options: {},
    claims: { sub: 1 },
    want: /oidc: parse username claims "sub": json: cannot unmarshal number into Go value of type string/,
  },
  {
    name: "an e-mail address that is not verified",
    options: { usernameClaim: "email" },
    claims: { email: "j", email_verified: false },
    want: /^Error: oidc: email not verified$/,
  },
  {
    name: "an e-mail address whose verification is null",
    options: { usernameClaim: "email" },
    claims: { email: "j", email_verified: null },
    want: /^Error: oidc: email not verified$/,
  },
  {
    name: "a verification that is no bool",
    options: { usernameClaim: "email" },
    claims: { email: "j", email_verified: "true" },
    want: /oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool/,
  },
  {
    name: "groups that are no texts",
    options: { groupsClaim: "groups" },
    claims: { groups: [1] },
    want: /oidc: parse groups claim "groups": json: cannot unmarshal array/,
  },
  {
    name: "a required claim missing",
    options: { requiredClaims: { sub: "jane", hd: "x" } },
    claims: {},
    want: /oidc: required claim hd not present in ID token/,
  },
  {
    name: "a required claim of another value",
    options: { requiredClaims: { sub: "jane", hd: "x" } },
    claims: { hd: "y" },
    want: /oidc: required claim hd value does not match. Got = y, want = x/,
  },
]) {
  test(`OIDC: a token with ${name} is refused`, async (t) => {
    await assert.rejects(ask(t, options, claims), want);
  });
}

test("OIDC: tokens of other issuers and tokens that are no JWT are left to other authenticators", async (t) => {
  const oidc = authenticatorOf(t, await startProvider(t));
  for (const token of ["abc", "a.b.c", "..", await sign(oidc.claims({ iss: "https://other.example" }))]) {
    assert.equal(await oidc.authenticate(token), undefined);
  }
});

test("OIDC: forged signatures, alg none and the public key as a secret are refused", async (t) => {
  const provider = await startProvider(t);
  const oidc = authenticatorOf(t, provider, { signingAlgorithms: ["RS256", "ES256"] });
  const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const forged = await sign(oidc.claims(), { ...keyOf("RS256"), ...stranger });
  await ready(oidc, forged);
  await assert.rejects(
    oidc.authenticate(forged),
    /oidc: verify token: failed to verify signature: failed to verify id token signature/,
  );
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  await assert.rejects(oidc.authenticate(`${part({ alg: "none" })}.${part(oidc.claims())}.`), /unsupported algorithm/);
  const pem = rsa.publicKey.export({ type: "spki", format: "pem" }) as string;
  const hmac = await new CompactSign(Buffer.from(JSON.stringify(oidc.claims())))
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(pem));
  await assert.rejects(oidc.authenticate(hmac), /unsupported algorithm/);
  const changed = (await sign(oidc.claims())).split(".");
  changed[1] = part(oidc.claims({ sub: "root" }));
  await assert.rejects(oidc.authenticate(changed.join(".")), /failed to verify signature/);
});

test("OIDC: keys are fetched once, again when the provider rotates them, and stay valid while it is unreachable", async (t) => {
  const provider = await startProvider(t);
  const oidc = authenticatorOf(t, provider, { signingAlgorithms: ["RS256", "ES256"] });
  const first = await sign(oidc.claims());
  await ready(oidc, first);
  await oidc.authenticate(first);
  await oidc.authenticate(first);
  assert.equal(provider.count("/keys"), 1);
  provider.state.keys = [keyOf("ES256", "second")];
  const second = await sign(oidc.claims(), keyOf("ES256", "second"));
  const results = await Promise.all([oidc.authenticate(second), oidc.authenticate(second)]);
  assert.deepEqual(
    results.map((result) => result?.user.name),
    ["jane", "jane"],
  );
  assert.equal(provider.count("/keys"), 2, "those who wait at the same time share a fetch");
  provider.state.up = false;
  assert.equal((await oidc.authenticate(second))?.user.name, "jane");
  await assert.rejects(
    oidc.authenticate(first),
    /failed to verify signature: fetching keys oidc: get keys failed: 503 Service Unavailable down/,
  );
});

test("OIDC: a provider that is down at the start is queried again every ten seconds", async (t) => {
  const provider = await startProvider(t);
  provider.state.up = false;
  const oidc = authenticatorOf(t, provider);
  const token = await sign(oidc.claims());
  const queries = (): number => provider.count("/.well-known/openid-configuration");
  await waitFor(() => oidc.clock.waiting === 1 || queries() > 1, { what: "the pause" });
  assert.equal(queries(), 1);
  await assert.rejects(oidc.authenticate(token), /^Error: oidc: authenticator not initialized$/);
  assert.deepEqual(oidc.errors, ["oidc authenticator: initializing plugin"]);
  provider.state.up = true;
  await oidc.clock.advance(10_000);
  await ready(oidc, token);
  assert.equal((await oidc.authenticate(token))?.user.name, "jane");
});

test("OIDC: a server that stops no longer waits for its provider", async (t) => {
  const provider = await startProvider(t);
  provider.state.up = false;
  const { clock, stop } = authenticatorOf(t, provider);
  await waitFor(() => clock.waiting === 1, { what: "the pause" });
  stop.abort();
  assert.equal(clock.waiting, 0);
});

test("OIDC: a discovery that the end of the server interrupts is no error", async (t) => {
  const peer = await startTlsPeer(t, () => new Promise<never>(() => {}));
  const { clock, stop, errors } = authenticatorOf(t, { peer });
  await waitFor(() => peer.requests.length === 1, { what: "the request" });
  stop.abort();
  await settle(50);
  assert.deepEqual([errors, clock.waiting], [[], 0]);
});

test("OIDC: a provider that says it is another, or whose authority is not known, is not believed", async (t) => {
  const provider = await startProvider(t);
  provider.state.issuer = "https://other.example";
  for (const options of [{}, { ca: undefined }]) {
    const oidc = authenticatorOf(t, provider, options);
    await waitFor(() => oidc.clock.waiting === 1, { what: "the pause" });
    await assert.rejects(oidc.authenticate(await sign(oidc.claims())), /not initialized/);
    provider.state.issuer = undefined;
  }
});

const distributed = (endpoint: string, more: object = {}): object => ({
  _claim_names: { groups: "src" },
  _claim_sources: { src: { endpoint, access_token: "key", ...more } },
});

test("OIDC: groups may be in a distributed claim, a separate JWT", async (t) => {
  const provider = await startProvider(t);
  const oidc = authenticatorOf(t, provider, { groupsClaim: "groups", groupsPrefix: "g:" });
  provider.state.claims.set("/groups", await sign(oidc.claims({ groups: ["far"] })));
  const token = await sign(oidc.claims(distributed(`${provider.peer.url}/groups`)));
  await ready(oidc, token);
  assert.deepEqual((await oidc.authenticate(token))?.user.groups, ["g:far"]);
  assert.equal(provider.peer.requests.find(({ url }) => url === "/groups")?.authorization, "Bearer key");
  const own = await sign(oidc.claims({ groups: ["near"], ...distributed(`${provider.peer.url}/missing`) }));
  assert.deepEqual((await oidc.authenticate(own))?.user.groups, ["g:near"], "what the token holds itself counts");
});

for (const { name, claims, want } of [
  { name: "no sources", claims: () => ({ _claim_names: { groups: "src" } }), want: /oidc: no claim sources/ },
  {
    name: "another source",
    claims: (url: string) => ({ ...distributed(url), _claim_names: { groups: "x" } }),
    want: /contained a source x missing in _claims_sources/,
  },
  {
    name: "an endpoint without the claim's JWT",
    claims: (url: string) => distributed(`${url}/none`),
    want: /error while getting distributed claim JWT: 404 Not Found/,
  },
  {
    name: "a JWT without the claim",
    claims: (url: string) => distributed(`${url}/empty`),
    want: /did not contain claim: groups/,
  },
  {
    name: "a JWT for somebody else",
    claims: (url: string) => distributed(`${url}/foreign`),
    want: /verify distributed claim token: oidc: expected audience/,
  },
  { name: "an endpoint that is not HTTPS", claims: () => distributed("http://127.0.0.1:1/"), want: /require 'https'/ },
]) {
  test(`OIDC: distributed groups with ${name} are an error`, async (t) => {
    const provider = await startProvider(t);
    const oidc = authenticatorOf(t, provider, { groupsClaim: "groups" });
    provider.state.claims.set("/empty", await sign(oidc.claims()));
    provider.state.claims.set("/foreign", await sign(oidc.claims({ aud: "other", groups: ["x"] })));
    const token = await sign(oidc.claims(claims(provider.peer.url)));
    await ready(oidc, token);
    await assert.rejects(oidc.authenticate(token), want);
  });
}

test("OIDC: prefixes of names", () => {
  const of = (usernameClaim: string, usernamePrefix: string): string =>
    usernamePrefixOf({ usernameClaim, usernamePrefix, issuerUrl: "https://idp" } as OidcOptions);
  assert.deepEqual(
    [of("sub", ""), of("email", ""), of("sub", "-"), of("email", "-"), of("email", "x:")],
    ["https://idp#", "", "", "", "x:"],
  );
});

test("OIDC: options that cannot be honoured end the start", () => {
  const good = { issuerUrl: "https://idp", usernameClaim: "sub", signingAlgorithms: ["RS256"] } as unknown as OidcOptions;
  checkOidcOptions(good);
  checkOidcOptions({ ...good, issuerUrl: "HTTPS://idp" });
  assert.throws(() => checkOidcOptions({ ...good, issuerUrl: "https://[idp" }), {
    message: 'parse "https://[idp": invalid URL',
  });
  assert.throws(() => checkOidcOptions({ ...good, issuerUrl: "http://idp" }), {
    message: `'oidc-issuer-url' ("http://idp") has invalid scheme ("http"), require 'https'`,
  });
  assert.throws(() => checkOidcOptions({ ...good, usernameClaim: "" }), { message: "no username claim provided" });
  assert.throws(() => checkOidcOptions({ ...good, signingAlgorithms: ["HS256"] }), {
    message: 'oidc: unsupported signing alg: "HS256"',
  });
});
