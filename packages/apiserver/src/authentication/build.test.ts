import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { LoopbackExchange } from "../loopback/exchange.ts";
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
