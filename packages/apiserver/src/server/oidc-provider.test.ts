/** Users of a real OpenID Connect provider, with its own discovery, keys and tokens, against the complete server. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { asyncRequestListener } from "@coxswain/apimachinery/testing/async-listener";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import Provider from "oidc-provider";
import { startTestServer } from "../testing/start-test-server.ts";

const client = {
  client_id: "kubernetes",
  client_secret: "not requested here",
  redirect_uris: ["https://app.test/callback"],
};

/** Each call creates a new key: restarting the provider at the same address replaces its keys. */
function newProvider(issuer: string, kid: string): Provider {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwk = { ...privateKey.export({ format: "jwk" }), kid, alg: "RS256", use: "sig" };
  const provider = new Provider(issuer, { clients: [client], jwks: { keys: [jwk] }, cookies: { keys: ["x"] } });
  provider.proxy = true;
  return provider;
}

/** An ID token as the provider issues it at the end of a login. */
async function login(provider: Provider, claims: Record<string, unknown>, seconds = 3600): Promise<string> {
  const { sub, ...others } = claims;
  const application = await provider.Client.find(client.client_id);
  const token = new provider.IdToken({ sub: String(sub) }, { client: application });
  Object.assign(token, { scope: "openid" });
  for (const [name, value] of Object.entries(others)) token.set(name, value);
  return token.issue({ use: "idtoken", expiresAt: Math.floor(Date.now() / 1000) + seconds } as never);
}

async function startProvider(t: TestContext) {
  const ca = await newCa({ commonName: "identity" });
  const pair = await newCertificate({ commonName: "idp", ips: ["127.0.0.1"], usages: ["server"], ca });
  const directory = mkdtempSync(join(tmpdir(), "cox-oidc-"));
  const caFile = join(directory, "ca.crt");
  writeFileSync(caFile, ca.certPem);
  let answer: (request: IncomingMessage, response: ServerResponse) => Promise<void> = async () => {};
  const server = createServer(
    { cert: pair.certPem, key: pair.keyPem },
    asyncRequestListener(async (request, response) => answer(request, response)),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(directory, { recursive: true, force: true });
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const use = (kid: string): Provider => {
    const provider = newProvider(url, kid);
    answer = provider.callback();
    return provider;
  };
  return { url, caFile, use };
}

test("users of an OpenID provider come in by its tokens, also after its keys were exchanged", async (t) => {
  const place = await startProvider(t);
  const provider = place.use("first");
  const server = await startTestServer(t, [
    `--oidc-issuer-url=${place.url}`,
    "--oidc-client-id=kubernetes",
    `--oidc-ca-file=${place.caFile}`,
    "--oidc-username-claim=email",
    "--oidc-groups-claim=roles",
    "--oidc-groups-prefix=idp:",
  ]);
  const review = async (token: string) => {
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } };
    return (await server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)).body.status;
  };
  const jane = { sub: "1", email: "jane@example.com", email_verified: true, roles: ["readers", "writers"] };
  const token = await login(provider, jane);
  await waitFor(async () => (await review(token)).authenticated === true, {
    what: "the provider's discovery",
  });
  assert.deepEqual((await review(token)).user, {
    username: "jane@example.com",
    groups: ["idp:readers", "idp:writers", "system:authenticated"],
  });
  const { code, body } = await server.request("GET", "/api/v1/nodes", undefined, { authorization: `Bearer ${token}` });
  assert.equal(code, 403);
  assert.match(body.message, /User "jane@example.com" cannot list resource "nodes"/);
  const error = async (claims: Record<string, unknown>, seconds?: number): Promise<string> =>
    (await review(await login(provider, claims, seconds))).error;
  assert.match(await error({ ...jane, email_verified: false }), /oidc: email not verified/);
  assert.match(await error({ sub: "1" }), /oidc: parse username claims "email": claim not present/);
  assert.match(await error(jane, -60), /oidc: verify token: oidc: token is expired/);
  assert.match(await error({ ...jane, roles: { a: 1 } }), /oidc: parse groups claim "roles"/);

  const next = place.use("second");
  const later = await login(next, { ...jane, email: "joe@example.com" });
  assert.equal((await review(later)).user?.username, "joe@example.com");
  assert.match((await review(await login(newProvider(place.url, "second"), jane))).error, /failed to verify/);
  assert.match((await review(await login(newProvider(place.url, "third"), jane))).error, /failed to verify/);
});
