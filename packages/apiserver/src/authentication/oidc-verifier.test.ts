import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { CompactSign } from "jose";
import { newClaimVerifiers } from "./oidc-distributed-claims.ts";
import type { HttpsAnswer } from "./oidc-https.ts";
import { discoverVerifier, type TokenVerifier, untrustedIssuer } from "./oidc-verifier.ts";

const issuer = "https://issuer.test";
const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwkOf = (publicKey: KeyObject, more: object = {}) => ({ ...publicKey.export({ format: "jwk" }), ...more });
const good = (body: object): HttpsAnswer => ({ status: 200, statusText: "200 OK", body: JSON.stringify(body) });

/** A provider with these keys and adjustable responses. */
async function provider(...keys: object[]) {
  const clock = newFakeClock(Date.parse("2026-01-01T00:00:00Z"));
  const requested: string[] = [];
  const answer = { keys: async (): Promise<HttpsAnswer> => good({ keys }) };
  const get = async (url: string) => {
    requested.push(url);
    return url.endsWith("/keys") ? answer.keys() : good({ issuer, jwks_uri: `${issuer}/keys` });
  };
  const verifier = await discoverVerifier(issuer, { clientId: "k", signingAlgorithms: ["ES256"] }, get, clock);
  requested.length = 0;
  const token = (key: KeyObject, claims: object = {}, header: object = {}) =>
    new CompactSign(Buffer.from(JSON.stringify({ iss: issuer, aud: "k", exp: clock.now() / 1000 + 60, ...claims })))
      .setProtectedHeader({ alg: "ES256", ...header })
      .sign(key);
  return { clock, requested, answer, verifier, token };
}

test("any of a provider's keys may have signed a token, but where it names one", async () => {
  const [first, second] = [newKey(), newKey()];
  const odd = [{ kty: "oct", k: "c2VjcmV0" }, { kty: "EC" }, null];
  const { verifier, token } = await provider(
    ...(odd as object[]),
    jwkOf(first.publicKey, { kid: "1" }),
    jwkOf(second.publicKey, { kid: "2" }),
  );
  for (const header of [{}, { kid: "2" }])
    assert.partialDeepStrictEqual(await verifier.verify(await token(second.privateKey, {}, header)), { aud: "k" });
  const unnamed = await provider(jwkOf(first.publicKey));
  await assert.rejects(unnamed.verifier.verify(await unnamed.token(first.privateKey, {}, { kid: "1" })), /failed to verify/);
  await assert.rejects(verifier.verify(await token(second.privateKey, {}, { kid: "1" })), {
    message: "failed to verify signature: failed to verify id token signature",
  });
});

test("a token is good to its last moment, and a minute before its first", async () => {
  const { privateKey, publicKey } = newKey();
  const { clock, verifier, token } = await provider(jwkOf(publicKey));
  const now = clock.now() / 1000;
  await verifier.verify(await token(privateKey, { exp: now, nbf: now + 60 }));
  await assert.rejects(verifier.verify(await token(privateKey, { exp: now - 1 })), {
    message: "oidc: token is expired (Token Expiry: 2025-12-31T23:59:59.000Z)",
  });
  await assert.rejects(verifier.verify(await token(privateKey, { nbf: now + 61 })), {
    message: "oidc: current time 2026-01-01T00:00:00.000Z before the nbf (not before) time: 2026-01-01T00:01:01.000Z",
  });
  await assert.rejects(verifier.verify(await token(privateKey, { exp: "soon" })), /exp is no number/);
  await assert.rejects(verifier.verify(await token(privateKey, { exp: -1e300 })), {
    message: "oidc: token is expired (Token Expiry: -1e+300)",
  });
  for (const exp of [undefined, null])
    await assert.rejects(verifier.verify(await token(privateKey, { exp })), /token is expired \(Token Expiry: none\)/);
});

test("concurrent verifications share one fetch of keys; a failed fetch is not cached and keeps the known keys", async () => {
  const [old, next] = [newKey(), newKey()];
  const { requested, answer, verifier, token } = await provider(jwkOf(old.publicKey));
  const signed = await token(old.privateKey);
  answer.keys = async () => ({ status: 503, statusText: "503 Service Unavailable", body: "busy" });
  const both = await Promise.allSettled([verifier.verify(signed), verifier.verify(signed)]);
  assert.deepEqual(
    both.map((one) => one.status === "rejected" && one.reason.message),
    Array(2).fill("failed to verify signature: fetching keys oidc: get keys failed: 503 Service Unavailable busy"),
  );
  assert.equal(requested.length, 1);
  answer.keys = async () => good({ keys: [jwkOf(old.publicKey)] });
  await verifier.verify(signed);
  answer.keys = () => Promise.reject(new Error("away"));
  await assert.rejects(verifier.verify(await token(next.privateKey)), /get keys failed away/);
  await verifier.verify(signed);
  answer.keys = async () => ({ status: 500, statusText: "500 Internal Server Error", body: "" });
  await assert.rejects(verifier.verify(await token(next.privateKey)), /get keys failed: 500/);
  await verifier.verify(signed);
  answer.keys = async () => good({ keys: [jwkOf(next.publicKey)] });
  await verifier.verify(await token(next.privateKey));
  await assert.rejects(verifier.verify(signed), /failed to verify id token signature/, "what the provider took away is gone");
});

test("the issuer is read from a JWT, and any other token is an error", () => {
  const jwt = (payload: unknown) => `e30.${Buffer.from(JSON.stringify(payload)).toString("base64url")}.x`;
  assert.equal(untrustedIssuer(jwt({ iss: "accounts.google.com" })), "https://accounts.google.com");
  assert.deepEqual([untrustedIssuer(jwt({})), untrustedIssuer(jwt({ iss: null }))], ["", ""]);
  assert.throws(() => untrustedIssuer(jwt({ iss: 1 })), /iss is no string/);
  assert.throws(() => untrustedIssuer(jwt([])), /not a JSON object/);
  assert.throws(() => untrustedIssuer("a.b"), /malformed token/);
  assert.throws(() => untrustedIssuer("a.b+c.d"), /illegal base64 data/);
});

for (const { name, document, want } of [
  {
    name: "of another issuer",
    document: good({ issuer: "https://other.test", jwks_uri: "x" }),
    want: /expected "https:\/\/issuer\.test" got "https:\/\/other\.test"/,
  },
  { name: "without an address of keys", document: good({ issuer }), want: /jwks_uri is no string/ },
  {
    name: "that is not there",
    document: { status: 404, statusText: "404 Not Found", body: "no" },
    want: /^Error: 404 Not Found: no$/,
  },
]) {
  test(`a discovery document ${name} is refused`, async () => {
    const config = { clientId: "k", signingAlgorithms: ["ES256"] };
    await assert.rejects(
      discoverVerifier(`${issuer}/`.slice(0, -1), config, async () => document, newFakeClock()),
      want,
    );
  });
}

test("a verifier is made once for each issuer; one that failed is tried again after ten seconds", async () => {
  const clock = newFakeClock();
  const requested: string[] = [];
  let fails = true;
  const verifier = {} as TokenVerifier;
  const verifierOf = newClaimVerifiers(async (of) => {
    requested.push(of);
    if (fails) throw new Error("away");
    return verifier;
  }, clock);
  const failing = () => assert.rejects(verifierOf("a"), { message: 'verifier not initialized for issuer: "a"' });
  await Promise.all([failing(), failing()]);
  await clock.advance(9_999);
  await failing();
  assert.deepEqual(requested, ["a"]);
  fails = false;
  await clock.advance(1);
  assert.equal(await verifierOf("a"), verifier);
  await clock.advance(60_000);
  assert.equal(await verifierOf("a"), verifier);
  assert.equal(await verifierOf("b"), verifier);
  assert.deepEqual(requested, ["a", "a", "b"]);
});

const config = { clientId: "k", signingAlgorithms: ["ES256"] };

test("an issuer that ends with a slash is found below it, and is the issuer with its slash", async () => {
  const requested: string[] = [];
  const get = async (url: string) => {
    requested.push(url);
    return good({ issuer: `${issuer}/`, jwks_uri: `${issuer}/keys` });
  };
  await discoverVerifier(`${issuer}/`, config, get, newFakeClock());
  assert.deepEqual(requested, [`${issuer}/.well-known/openid-configuration`]);
  await assert.rejects(discoverVerifier(issuer, config, get, newFakeClock()), /issuer did not match/);
});

for (const { of, isTaken } of [
  { of: "https://accounts.google.com", isTaken: true },
  { of: issuer, isTaken: false },
]) {
  test(`a token of accounts.google.com without a scheme is ${isTaken ? "" : "not "}one of ${of}`, async () => {
    const { privateKey, publicKey } = newKey();
    const clock = newFakeClock();
    const get = async (url: string) =>
      good(url.endsWith("/keys") ? { keys: [jwkOf(publicKey)] } : { issuer: of, jwks_uri: `${of}/keys` });
    const { verify } = await discoverVerifier(of, config, get, clock);
    const claims = { iss: "accounts.google.com", aud: "k", exp: clock.now() / 1000 + 60 };
    const token = await new CompactSign(Buffer.from(JSON.stringify(claims)))
      .setProtectedHeader({ alg: "ES256" })
      .sign(privateKey);
    if (isTaken) assert.deepEqual(await verify(token), claims);
    else await assert.rejects(verify(token), /id token issued by a different provider/);
  });
}

test("the times of a token are whole seconds: what is behind the point does not count", async () => {
  const { privateKey, publicKey } = newKey();
  const { clock, verifier, token } = await provider(jwkOf(publicKey));
  const now = clock.now() / 1000;
  await verifier.verify(await token(privateKey, { nbf: now + 60.9 }));
  const ending = await token(privateKey, { exp: now + 0.9 });
  await verifier.verify(ending);
  await clock.advance(500);
  await assert.rejects(verifier.verify(ending), /token is expired/);
});
