import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as netConnect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { startTlsPeer } from "../testing/tls-peer.ts";
import { buildAuthentication } from "./build.ts";

/** Authentication by a token file with the token `t` of joe. */
function built(t: TestContext, more: Partial<Parameters<typeof buildAuthentication>[0]> = {}) {
  const directory = mkdtempSync(join(tmpdir(), "cox-authentication-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const tokenAuthFile = join(directory, "tokens.csv");
  writeFileSync(tokenAuthFile, "t,joe,u1\n");
  const end = new AbortController();
  t.after(() => end.abort());
  return buildAuthentication({
    ...{ anonymous: true, apiAudiences: ["api", "second"], clientCa: undefined, frontProxy: undefined, tokenAuthFile },
    ...{ bootstrapTokens: false, serviceAccounts: undefined, getter: { get: async () => undefined } },
    ...{ oidc: undefined, tokenWebhook: undefined, clock: newFakeClock(), log: discardLogger },
    ...{ metrics: newMetricsRegistry(), signal: end.signal },
    ...more,
  });
}

const request = (authorization?: string) =>
  new LoopbackExchange({ method: "GET", path: "/", headers: authorization === undefined ? {} : { authorization } });

for (const { wanted, granted } of [
  { wanted: undefined, granted: ["api", "second"] },
  { wanted: [], granted: ["api", "second"] },
  { wanted: ["second"], granted: ["second"] },
  { wanted: ["vault", "api"], granted: ["api"] },
]) {
  test(`a token without audiences, reviewed for ${JSON.stringify(wanted)}, is good for ${granted}`, async (t) => {
    const result = await built(t).authenticateToken("t", wanted);
    assert.deepEqual([result?.user.name, result?.audiences], ["joe", granted]);
    assert.ok(result?.user.groups.includes("system:authenticated"));
  });
}

test("a server without audiences knows a token without audiences, and reviews it for none", async (t) => {
  const { authenticateToken } = built(t, { apiAudiences: [] });
  for (const wanted of [undefined, []]) {
    const result = await authenticateToken("t", wanted);
    assert.deepEqual([result?.user.name, result?.audiences], ["joe", undefined]);
  }
  await assert.rejects(authenticateToken("t", ["vault"]), { message: "invalid bearer token" });
});

test("a token is invalid for the audiences of others, and one that nobody knows for all", async (t) => {
  const { authenticateToken } = built(t);
  await assert.rejects(authenticateToken("t", ["vault"]), { message: "invalid bearer token" });
  await assert.rejects(authenticateToken("x", ["api"]), { message: "invalid bearer token" });
});

for (const { name, anonymous, authorization, want } of [
  { name: "with a token", anonymous: false, authorization: "Bearer t", want: ["joe", "system:authenticated"] },
  { name: "without credentials", anonymous: true, want: ["system:anonymous", "system:unauthenticated"] },
  { name: "without credentials, where that is off", anonymous: false, want: undefined },
]) {
  test(`a request ${name} is ${want?.[0] ?? "nobody's"}`, async (t) => {
    const result = await built(t, { anonymous }).authenticate(request(authorization));
    assert.deepEqual(result && [result.user.name, ...result.user.groups], want);
  });
}

test("a request with a wrong token is refused, not anonymous", async (t) => {
  await assert.rejects(built(t).authenticate(request("Bearer x")), /invalid bearer token/);
});

const bootstrapSecret = (data: Record<string, string>) => ({
  metadata: { name: "bootstrap-token-abcdef" },
  type: "bootstrap.kubernetes.io/token",
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")])),
});
const knownSecret = bootstrapSecret({
  ...{ "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true" },
});

test("a token that is known is known for ten seconds without another look; one that is not is looked for each time", async (t) => {
  let secret: typeof knownSecret | undefined;
  let looks = 0;
  const getter = {
    async get() {
      looks++;
      return secret;
    },
  };
  const clock = newFakeClock();
  const { authenticateToken } = built(t, { bootstrapTokens: true, getter, clock });
  const known = (audiences?: string[]) => authenticateToken("abcdef.0123456789abcdef", audiences);
  await assert.rejects(known(), /invalid bearer token/);
  secret = knownSecret;
  assert.deepEqual((await known())?.audiences, ["api", "second"]);
  await clock.advance(9_999);
  await known();
  assert.equal(looks, 2);
  secret = undefined;
  await clock.advance(1);
  await assert.rejects(known(), /invalid bearer token/);
  assert.equal(looks, 3);
  secret = knownSecret;
  await assert.rejects(known(["vault"]), /invalid bearer token/);
  assert.deepEqual((await known(["vault", "second"]))?.audiences, ["second"]);
});

/** Authentication by a webhook that knows the token `w`, and remembers for a minute. */
async function withWebhook(t: TestContext, more: Parameters<typeof built>[1] = {}) {
  const peer = await startTlsPeer(t, ({ body }) => {
    const { token } = (JSON.parse(body) as { spec: { token: string } }).spec; // cast: the review that is sent
    return { body: { status: { authenticated: token === "w", user: { username: "webby" } } } };
  });
  const clock = newFakeClock();
  const tokenWebhook = { config: { host: peer.url, ca: peer.ca }, version: "v1", cacheTtlMs: 60_000 };
  return { peer, clock, ...built(t, { tokenWebhook, clock, ...more }) };
}

test("what the token webhook says, yes or no, is remembered for the time of its flag", async (t) => {
  const { peer, clock, authenticateToken } = await withWebhook(t);
  for (const ms of [0, 59_999]) {
    await clock.advance(ms);
    assert.deepEqual((await authenticateToken("w", undefined))?.audiences, ["api", "second"]);
    await assert.rejects(authenticateToken("x", undefined), /invalid bearer token/);
    assert.equal(peer.requests.length, 2);
  }
  await clock.advance(10_000); // the time of the cache of all tokens, which the last answer began
  await authenticateToken("w", undefined);
  assert.equal(peer.requests.length, 3);
});

test("calls of the token webhook go through its dialer, and are counted", async (t) => {
  const dialled: string[] = [];
  const connect: Connect = async (host, port) => {
    dialled.push(host);
    const socket = netConnect(port, host);
    await once(socket, "connect");
    return socket;
  };
  const metrics = newMetricsRegistry();
  const { authenticateToken } = await withWebhook(t, { connect, metrics });
  await authenticateToken("w", undefined);
  assert.ok(dialled.length > 0);
  assert.match(await metrics.render(), /^rest_client_requests_total\{[^}]*code="200"[^}]*\} 1$/m);
});

test("a WebSocket's token is known as that of another request", async (t) => {
  const token = `base64url.bearer.authorization.k8s.io.${Buffer.from("t").toString("base64url")}`;
  const headers = { upgrade: "websocket", "sec-websocket-protocol": `${token}, chat` };
  const exchange = new LoopbackExchange({ method: "GET", path: "/", headers });
  Object.defineProperty(exchange, "upgrade", { value: {} });
  const result = await built(t).authenticate(exchange);
  assert.deepEqual([result?.user.name, result?.audiences], ["joe", ["api", "second"]]);
});
