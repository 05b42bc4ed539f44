/**
 * Checks, for each kind of token, that the time to reject a wrong token does not reveal how much of it was right. Two control
 * checks prove that the measurement works: one with an early-exit comparison, which must be detected, and one that compares
 * nothing. COX_TEST_LONG runs a million guesses each.
 */
import assert from "node:assert/strict";
import { createPrivateKey, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import { bearerToken } from "@coxswain/apimachinery/serving/authentication/bearer-token";
import { cachedTokens, newTokenCacheMetrics } from "@coxswain/apimachinery/serving/authentication/token-cache";
import { newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { CompactSign } from "jose";
import { startTestServer } from "../testing/start-test-server.ts";
import { type Door, timingLeak } from "../testing/timing-leak.ts";
import { bootstrapToken } from "./bootstrap-token.ts";
import { boundServiceAccountToken, legacyIssuer, legacyServiceAccountToken, newTokenUse } from "./service-account.ts";
import { parseKeys } from "./service-account-keys.ts";
import { tokenFile } from "./token-file.ts";

const long = process.env["COX_TEST_LONG"] !== undefined;
const guesses = long ? 1_000_000 : 10_000;
/** HTTP requests are slower than direct calls, hence fewer guesses. */
const requests = long ? 50_000 : 1_000;
const seed = process.env["COX_TEST_SEED"] ?? randomBytes(4).toString("hex");
const limit = 5;

const jane = { user: { name: "jane", groups: [] } };

const randomText = (length: number): string => randomBytes(length).toString("hex").slice(0, length);

type MakeDoor = (t: TestContext) => Door | Promise<Door>;

const kinds: Record<string, MakeDoor> = {
  "a token of a file": (t) => {
    const directory = mkdtempSync(join(tmpdir(), "cox-timing-"));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const path = join(directory, "tokens.csv");
    const secret = randomText(64);
    writeFileSync(path, `${secret},jane,1\n`);
    const authenticate = tokenFile(path, discardLogger);
    return { secret, check: (guess) => authenticate(guess, undefined) };
  },
  "the secret of a bootstrap token": () => {
    const secret = randomText(16);
    const encode = (text: string): string => Buffer.from(text).toString("base64");
    const data = {
      "token-id": encode("abcdef"),
      "token-secret": encode(secret),
      "usage-bootstrap-authentication": encode("true"),
    };
    const stored = { metadata: { name: "bootstrap-token-abcdef" }, type: "bootstrap.kubernetes.io/token", data };
    const authenticate = bootstrapToken({ get: async () => stored }, realClock);
    return { secret, check: (guess) => authenticate(`abcdef.${guess}`, undefined) };
  },
  "the signature of a bound token": () => signature(boundServiceAccountToken, { iss: "https://issuer", exp: 4e9 }),
  "the signature of a legacy token": () => signature(legacyServiceAccountToken, { iss: legacyIssuer }),
  "a token that a webhook said yes to": () => {
    const caching = { successTtlMs: 120_000, failureTtlMs: 120_000, clock: newFakeClock() };
    const metrics = newTokenCacheMetrics(newMetricsRegistry());
    return remembered((requested) => {
      const authenticate = cachedTokens(requested, { ...caching, metrics });
      return (guess) => authenticate(guess, undefined);
    });
  },
  "a token that its connection showed before": () =>
    remembered((requested) => {
      const authenticate = bearerToken(requested, [], newFakeClock());
      const tls = {};
      return (guess) => authenticate({ headers: { authorization: `Bearer ${guess}` }, tls } as Exchange);
    }),
};

/** A token that is accepted from the cache only. */
async function remembered(make: (requested: TokenAuthenticator) => Door["check"]): Promise<Door> {
  let known = true;
  const check = make(async () => (known ? jane : undefined));
  const secret = randomText(64);
  await check(secret);
  known = false;
  return { secret, check };
}

/** Shared by both doors: signatures not below the (public) modulus are rejected early, so different moduli differ in time. */
const key = newServiceAccountKey();

/** The signed part is public; the signature is the secret to guess. */
async function signature(make: typeof boundServiceAccountToken, claims: Record<string, unknown>): Promise<Door> {
  const authenticate = make({
    issuers: ["https://issuer"],
    keys: parseKeys(key.pubPem),
    apiAudiences: [],
    lookup: false,
    getter: { get: async () => undefined },
    clock: realClock,
    use: newTokenUse(newMetricsRegistry()),
  });
  const signed = await new CompactSign(Buffer.from(JSON.stringify({ ...claims, jti: randomText(16) })))
    .setProtectedHeader({ alg: "RS256" })
    .sign(createPrivateKey(key.keyPem));
  const end = signed.lastIndexOf(".") + 1;
  return { secret: signed.slice(end), check: (guess) => authenticate(signed.slice(0, end) + guess, undefined) };
}

async function leakOf(t: TestContext, make: MakeDoor, count = guesses): Promise<number> {
  const score = await timingLeak([await make(t), await make(t)], count, seed);
  t.diagnostic(`|t| = ${score.toFixed(2)} over ${count} guesses, COX_TEST_SEED=${seed}`);
  return score;
}

for (const [name, make] of Object.entries(kinds)) {
  test(`guesses at ${name} take as long whether they are near or far`, async (t) => {
    assert.ok((await leakOf(t, make)) < limit);
  });
}

test("guesses over HTTP take as long whether they are near or far", async (t) => {
  const server = async (): Promise<Door> => {
    const { adminToken, request } = await startTestServer(t);
    const check = (guess: string) => request("GET", "/version", undefined, { authorization: `Bearer ${guess}` });
    assert.equal((await check(randomText(adminToken.length))).code, 401);
    return { secret: adminToken, check };
  };
  assert.ok((await leakOf(t, server, requests)) < limit);
});

test("the measurement finds nothing where nothing is looked at", async (t) => {
  assert.ok((await leakOf(t, () => ({ secret: randomText(64), check: async () => undefined }))) < limit);
});

test("the measurement finds a comparison that stops at the first difference", async (t) => {
  const stopping = (): Door => {
    const secret = randomText(64);
    const check = async (guess: string): Promise<boolean> => {
      for (let i = 0; i < secret.length; i++) if (guess.charCodeAt(i) !== secret.charCodeAt(i)) return false;
      return true;
    };
    return { secret, check };
  };
  assert.ok((await leakOf(t, stopping)) > limit);
});
