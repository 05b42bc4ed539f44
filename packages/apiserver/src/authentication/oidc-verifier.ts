/**
 * Verifies ID tokens of one OpenID provider. Keys are discovered, cached, and fetched again when no cached key verifies the
 * signature (key rotation). Claims that need no key are checked first.
 * Source: github.com/coreos/go-oidc v2 oidc.go, verify.go, jwks.go; OpenID Connect Core 1.0, Discovery 1.0
 */

import { createPublicKey, type KeyObject } from "node:crypto";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { compactVerify, decodeProtectedHeader } from "jose";
import type { HttpsGet } from "./oidc-https.ts";

/** Claims by name; own properties only. */
export type Claims = Record<string, unknown>;

interface VerifierConfig {
  /** Required audience of the token. */
  readonly clientId: string;
  readonly signingAlgorithms: readonly string[];
}

export interface TokenVerifier {
  /** @throws Error when the token is invalid or the provider's keys cannot be fetched. */
  verify(token: string): Promise<Claims>;
}

export const supportedSigningAlgorithms: readonly string[] = [
  ...["RS256", "RS384", "RS512"],
  ...["ES256", "ES384", "ES512"],
  ...["PS256", "PS384", "PS512"],
];

const google = "https://accounts.google.com";
/** Clock skew tolerated for the "nbf" claim. */
const notBeforeLeewayMs = 60_000;

/** @throws Error when the provider is unreachable or its issuer does not match. */
export async function discoverVerifier(
  issuer: string,
  config: VerifierConfig,
  get: HttpsGet,
  clock: Clock,
): Promise<TokenVerifier> {
  const { status, statusText, body } = await get(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (status !== 200) throw new Error(`${statusText}: ${body}`);
  const document = parseDocument(body, "oidc: failed to decode provider discovery object");
  if (document["issuer"] !== issuer) {
    throw new Error(
      `oidc: issuer did not match the issuer returned by provider, expected ${quote(issuer)} got ${quote(document["issuer"] ?? "")}`,
    );
  }
  const jwksUri = document["jwks_uri"];
  if (typeof jwksUri !== "string") throw new Error("oidc: failed to decode provider discovery object: jwks_uri is no string");
  const keys = remoteKeys(jwksUri, get);
  return { verify: (token) => verify(token, issuer, config, keys, clock) };
}

/**
 * The issuer claim of an unverified token.
 * @throws Error when it is not a JWT
 */
export function untrustedIssuer(token: string): string {
  const { iss } = payloadOf(token).claims;
  if (iss !== undefined && iss !== null && typeof iss !== "string") throw new Error("while unmarshaling token: iss is no string");
  return iss === "accounts.google.com" ? google : (iss ?? "");
}

function payloadOf(token: string): { claims: Claims; bytes: Buffer } {
  const parts = token.split(".");
  if (parts.length !== 3) throw new Error("malformed token");
  const encoded = parts[1]!;
  if (!/^[A-Za-z0-9_-]*$/.test(encoded)) throw new Error("error decoding token: illegal base64 data");
  const bytes = Buffer.from(encoded, "base64url");
  return { bytes, claims: parseDocument(bytes.toString("utf8"), "while unmarshaling token") };
}

async function verify(token: string, issuer: string, config: VerifierConfig, keys: RemoteKeys, clock: Clock): Promise<Claims> {
  const { claims, bytes } = payloadOf(token);
  checkIssuer(claims, issuer);
  checkAudience(claims, config.clientId);
  checkTime(claims, clock.now());
  const { alg, kid } = headerOf(token);
  if (!config.signingAlgorithms.includes(alg)) {
    throw new Error(
      `oidc: id token signed with unsupported algorithm, expected [${config.signingAlgorithms.map(quote).join(" ")}] got ${quote(alg)}`,
    );
  }
  let payload: Uint8Array;
  try {
    payload = await verifySignature(token, alg, kid, keys);
  } catch (err) {
    throw new Error(`failed to verify signature: ${messageOf(err)}`, { cause: err });
  }
  if (!bytes.equals(payload)) throw new Error("oidc: internal error, payload parsed did not match previous payload");
  return claims;
}

function checkIssuer({ iss }: Claims, issuer: string): void {
  if (iss === issuer || (issuer === google && iss === "accounts.google.com")) return;
  throw new Error(`oidc: id token issued by a different provider, expected ${quote(issuer)} got ${quote(iss ?? "")}`);
}

function checkAudience({ aud = [] }: Claims, clientId: string): void {
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (!audiences.includes(clientId)) {
    throw new Error(`oidc: expected audience ${quote(clientId)} got [${audiences.map(quote).join(" ")}]`);
  }
}

/** A token without "exp" is treated as expired. */
function checkTime(claims: Claims, now: number): void {
  const expiresMs = timeOf(claims, "exp");
  if (expiresMs === undefined || expiresMs < now) {
    const expiry = expiresMs === undefined ? "none" : dateText(expiresMs);
    throw new Error(`oidc: token is expired (Token Expiry: ${expiry})`);
  }
  const notBeforeMs = timeOf(claims, "nbf");
  if (notBeforeMs !== undefined && now + notBeforeLeewayMs < notBeforeMs) {
    throw new Error(`oidc: current time ${dateText(now)} before the nbf (not before) time: ${dateText(notBeforeMs)}`);
  }
}

function timeOf(claims: Claims, name: string): number | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number") throw new Error(`oidc: failed to unmarshal claims: ${name} is no number`);
  return Math.trunc(value) * 1000;
}

function dateText(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms / 1000) : date.toISOString();
}

function headerOf(token: string): { alg: string; kid: string } {
  try {
    const { alg = "", kid = "" } = decodeProtectedHeader(token);
    return { alg, kid };
  } catch (err) {
    throw new Error(`oidc: malformed jwt: ${messageOf(err)}`, { cause: err });
  }
}

async function verifySignature(token: string, alg: string, kid: string, keys: RemoteKeys): Promise<Uint8Array> {
  // Cached keys are tried first, however old: the provider may be unavailable.
  const found = (await tryKeys(token, alg, kid, keys.known())) ?? (await tryKeys(token, alg, kid, await keys.fetch()));
  if (found === undefined) throw new Error("failed to verify id token signature");
  return found;
}

async function tryKeys(token: string, alg: string, kid: string, keys: readonly ProviderKey[]): Promise<Uint8Array | undefined> {
  for (const { id, key } of keys) {
    if (kid !== "" && id !== kid) continue;
    try {
      return (await compactVerify(token, key, { algorithms: [alg] })).payload;
    } catch {
      // Try the next key.
    }
  }
  return undefined;
}

interface ProviderKey {
  readonly id: string;
  readonly key: KeyObject;
}

interface RemoteKeys {
  known(): readonly ProviderKey[];
  /** Concurrent calls share one fetch. */
  fetch(): Promise<readonly ProviderKey[]>;
}

function remoteKeys(url: string, get: HttpsGet): RemoteKeys {
  let known: readonly ProviderKey[] = [];
  let running: Promise<readonly ProviderKey[]> | undefined;
  const fetchKeys = async (): Promise<readonly ProviderKey[]> => {
    const { status, statusText, body } = await get(url).catch((err: Error) => {
      throw new Error(`fetching keys oidc: get keys failed ${err.message}`, { cause: err });
    });
    if (status !== 200) throw new Error(`fetching keys oidc: get keys failed: ${statusText} ${body}`);
    const { keys } = parseDocument(body, "fetching keys oidc: failed to decode keys");
    known = Array.isArray(keys) ? keys.flatMap(publicKeyOf) : [];
    return known;
  };
  return {
    known: () => known,
    fetch() {
      running ??= fetchKeys().finally(() => {
        running = undefined;
      });
      return running;
    },
  };
}

/** Returns asymmetric keys only; symmetric and unparsable keys are skipped. */
function publicKeyOf(jwk: { kid?: unknown; kty?: unknown }): ProviderKey[] {
  if (jwk?.kty !== "RSA" && jwk?.kty !== "EC") return [];
  try {
    const key = createPublicKey({ key: jwk as never, format: "jwk" }); // cast: Node checks the key and throws
    return [{ id: typeof jwk.kid === "string" ? jwk.kid : "", key }];
  } catch {
    return [];
  }
}

function parseDocument(text: string, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (err) {
    throw new Error(`${what}: ${messageOf(err)}`, { cause: err });
  }
  if (!isJsonObject(value)) throw new Error(`${what}: not a JSON object`);
  return value;
}

function quote(value: unknown): string {
  return JSON.stringify(value) ?? '""';
}
