import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { expandDistributedClaim, newClaimVerifiers } from "./oidc-distributed-claims.ts";
import type { TokenVerifier } from "./oidc-verifier.ts";

const jwt = `e30.${Buffer.from(JSON.stringify({ iss: "https://far.test" })).toString("base64url")}.x`;

/** Sources that answer each request with this status; the fetched JWT has the groups `far`. */
function sources(status = 200) {
  const requested: unknown[] = [];
  const verified: string[] = [];
  return {
    requested,
    verified,
    get: async (url: string, headers = {}) => {
      requested.push([url, headers]);
      return { status, statusText: String(status), body: jwt };
    },
    async verifierOf(issuer: string): Promise<TokenVerifier> {
      verified.push(issuer);
      return { verify: async () => ({ groups: ["far"] }) };
    },
  };
}

const distributed = (source: object, name = "groups") => ({
  sub: "jane",
  _claim_names: { [name]: "src" },
  _claim_sources: { src: source },
});

test("a distributed claim is added to the others, verified as a token of its own issuer", async () => {
  const { verified, ...from } = sources();
  const claims = distributed({ endpoint: "https://far.test/groups", access_token: "key" });
  assert.deepEqual(await expandDistributedClaim(claims, "groups", from), { ...claims, groups: ["far"] });
  assert.deepEqual(from.requested, [["https://far.test/groups", { authorization: "Bearer key" }]]);
  assert.deepEqual(verified, ["https://far.test"]);
});

test("a source without an access token is asked without credentials", async () => {
  const from = sources();
  await expandDistributedClaim(distributed({ endpoint: "https://far.test/groups" }), "groups", from);
  assert.deepEqual(from.requested, [["https://far.test/groups", {}]]);
});

for (const { name, claims } of [
  { name: "of another claim", claims: distributed({ endpoint: "https://far.test/" }, "roles") },
  { name: "of an aggregated claim, without an endpoint", claims: distributed({ JWT: jwt }) },
  { name: "that is null", claims: { sub: "jane", _claim_names: null, _claim_sources: null } },
]) {
  test(`a source ${name} is left alone`, async () => {
    const from = sources();
    assert.equal(await expandDistributedClaim(claims, "groups", from), claims);
    assert.deepEqual(from.requested, []);
  });
}

for (const { name, claims, want } of [
  {
    name: "names that are a list",
    claims: { _claim_names: ["groups"], _claim_sources: {} },
    want: "oidc: error parsing distributed claim names: not an object",
  },
  {
    name: "sources that are a text",
    claims: { _claim_names: {}, _claim_sources: "src" },
    want: "oidc: could not parse claim sources: not an object",
  },
  {
    name: "a name of a source that is a number",
    claims: { _claim_names: { groups: 1 }, _claim_sources: {} },
    want: "oidc: error parsing distributed claim names: a source is no string",
  },
  {
    name: "an endpoint that is a number",
    claims: distributed({ endpoint: 1 }),
    want: "oidc: could not parse claim sources: an endpoint or access_token is no string",
  },
  {
    name: "a token that is a number",
    claims: distributed({ endpoint: "https://far.test/", access_token: 1 }),
    want: "oidc: could not parse claim sources: an endpoint or access_token is no string",
  },
]) {
  test(`distributed claims with ${name} are an error`, async () => {
    await assert.rejects(expandDistributedClaim(claims, "groups", sources()), { message: want });
  });
}

for (const { status, isTaken } of [
  { status: 200, isTaken: true },
  { status: 226, isTaken: true },
  { status: 199, isTaken: false },
  { status: 227, isTaken: false },
]) {
  test(`a claim that is answered with ${status} is ${isTaken ? "taken" : "an error"}`, async () => {
    const expanded = expandDistributedClaim(distributed({ endpoint: "https://far.test/" }), "groups", sources(status));
    if (isTaken) assert.deepEqual((await expanded)["groups"], ["far"]);
    else
      await assert.rejects(expanded, {
        message: `while getting distributed claim "groups": error while getting distributed claim JWT: ${status}`,
      });
  });
}

test("the verifiers of a hundred issuers are kept, and the longest unused one is made again", async () => {
  const made: string[] = [];
  const verifierOf = newClaimVerifiers(async (issuer) => {
    made.push(issuer);
    return {} as TokenVerifier;
  }, newFakeClock());
  for (let i = 0; i < 100; i++) await verifierOf(`i${i}`);
  await verifierOf("i0");
  assert.equal(made.length, 100);
  await verifierOf("i100");
  made.length = 0;
  for (const issuer of ["i0", "i1"]) await verifierOf(issuer);
  assert.deepEqual(made, ["i1"]);
});
