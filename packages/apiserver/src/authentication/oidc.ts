/**
 * Authenticates ID tokens of an OpenID Connect provider. Discovery is retried in the background, because the provider may run
 * on this cluster and be unavailable at startup; until it succeeds, the provider's tokens are rejected.
 * Source: k8s.io/apiserver plugin/pkg/authenticator/token/oidc/oidc.go
 */

import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { jsonWord } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import { expandDistributedClaim, newClaimVerifiers } from "./oidc-distributed-claims.ts";
import { newHttpsGet } from "./oidc-https.ts";
import {
  type Claims,
  discoverVerifier,
  supportedSigningAlgorithms,
  type TokenVerifier,
  untrustedIssuer,
} from "./oidc-verifier.ts";

/** --oidc-*. */
export interface OidcOptions {
  readonly issuerUrl: string;
  readonly clientId: string;
  /** PEM bundle; the system's roots when undefined. */
  readonly ca: string | undefined;
  readonly usernameClaim: string;
  /** Value of the flag; see `usernamePrefixOf`. */
  readonly usernamePrefix: string;
  /** Empty disables groups. */
  readonly groupsClaim: string;
  readonly groupsPrefix: string;
  readonly requiredClaims: Readonly<Record<string, string>>;
  readonly signingAlgorithms: readonly string[];
}

interface OidcRuntime {
  readonly clock: Clock;
  readonly log: Logger;
  /** Stops discovery and aborts requests. */
  readonly signal: AbortSignal;
}

const retryMs = 10_000;

/** @throws Error when an option is invalid; the server does not start then. */
export function checkOidcOptions({ issuerUrl, usernameClaim, signingAlgorithms }: OidcOptions): void {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(issuerUrl)?.[1]?.toLowerCase() ?? "";
  if (scheme !== "https") {
    throw new Error(
      `'oidc-issuer-url' (${JSON.stringify(issuerUrl)}) has invalid scheme (${JSON.stringify(scheme)}), require 'https'`,
    );
  }
  if (!URL.canParse(issuerUrl)) throw new Error(`parse ${JSON.stringify(issuerUrl)}: invalid URL`);
  if (usernameClaim === "") throw new Error("no username claim provided");
  for (const algorithm of signingAlgorithms) {
    if (!supportedSigningAlgorithms.includes(algorithm)) {
      throw new Error(`oidc: unsupported signing alg: ${JSON.stringify(algorithm)}`);
    }
  }
}

/**
 * Effective prefix, which keeps user names of different providers apart. Default: `<issuer>#`, or none when the claim is
 * `email`. `-` disables the prefix.
 */
export function usernamePrefixOf({ usernamePrefix, usernameClaim, issuerUrl }: OidcOptions): string {
  if (usernamePrefix === "" && usernameClaim !== "email") return `${issuerUrl}#`;
  return usernamePrefix === "-" ? "" : usernamePrefix;
}

/** The authenticator throws Error for invalid tokens of this issuer, and ignores tokens of other issuers. */
export function oidcToken(options: OidcOptions, runtime: OidcRuntime): TokenAuthenticator {
  const { clock, signal } = runtime;
  const { issuerUrl, groupsClaim } = options;
  const usernamePrefix = usernamePrefixOf(options);
  const config = {
    clientId: options.clientId,
    signingAlgorithms: options.signingAlgorithms.length === 0 ? ["RS256"] : options.signingAlgorithms,
  };
  const get = newHttpsGet(options.ca, signal);
  let verifier: TokenVerifier | undefined;
  void findProvider(() => discoverVerifier(issuerUrl, config, get, clock), runtime).then((found) => {
    verifier = found;
  });
  const distributed =
    groupsClaim === ""
      ? undefined
      : { get, verifierOf: newClaimVerifiers((issuer) => discoverVerifier(issuer, config, get, clock), clock) };

  return async (token) => {
    if (!isFrom(issuerUrl, token)) return undefined;
    if (verifier === undefined) throw new Error("oidc: authenticator not initialized");
    let claims = await verifier.verify(token).catch((err: Error) => {
      throw new Error(`oidc: verify token: ${err.message}`, { cause: err });
    });
    if (distributed !== undefined) {
      claims = await expandDistributedClaim(claims, groupsClaim, distributed).catch((err: Error) => {
        throw new Error(`oidc: could not expand distributed claims: ${err.message}`, { cause: err });
      });
    }
    const name = usernameIn(claims, options.usernameClaim);
    const groups = groupsIn(claims, groupsClaim);
    checkRequired(claims, options.requiredClaims);
    return { user: { name: usernamePrefix + name, groups: groups.map((group) => options.groupsPrefix + group) } };
  };
}

/** Retries discovery until it succeeds; undefined when the server stops before. */
async function findProvider(
  discover: () => Promise<TokenVerifier>,
  { clock, log, signal }: OidcRuntime,
): Promise<TokenVerifier | undefined> {
  while (!signal.aborted) {
    try {
      return await discover();
    } catch (err) {
      if (signal.aborted) break;
      log.error("oidc authenticator: initializing plugin", err);
    }
    await clock.sleep(retryMs, signal).catch(() => {}); // aborted: the loop condition ends it
  }
  return undefined;
}

function isFrom(issuer: string, token: string): boolean {
  try {
    return untrustedIssuer(token) === issuer;
  } catch {
    return false;
  }
}

function usernameIn(claims: Claims, claim: string): string {
  const name = read(claims, claim, stringOf, `parse username claims ${JSON.stringify(claim)}`);
  if (claim === "email" && Object.hasOwn(claims, "email_verified")) {
    if (!read(claims, "email_verified", boolOf, "parse 'email_verified' claim")) throw new Error("oidc: email not verified");
  }
  return name;
}

/** The claim may be a string or a list of strings. */
function groupsIn(claims: Claims, claim: string): string[] {
  if (claim === "" || !Object.hasOwn(claims, claim)) return [];
  return read(claims, claim, stringsOf, `parse groups claim ${JSON.stringify(claim)}`);
}

function checkRequired(claims: Claims, required: Readonly<Record<string, string>>): void {
  for (const [claim, wanted] of Object.entries(required)) {
    if (!Object.hasOwn(claims, claim)) throw new Error(`oidc: required claim ${claim} not present in ID token`);
    const value = read(claims, claim, stringOf, `parse claim ${claim}`);
    if (value !== wanted) {
      throw new Error(`oidc: required claim ${claim} value does not match. Got = ${value}, want = ${wanted}`);
    }
  }
}

function read<T>(claims: Claims, name: string, convert: (value: unknown) => T, what: string): T {
  try {
    if (!Object.hasOwn(claims, name)) throw new Error("claim not present");
    return convert(claims[name]);
  } catch (err) {
    throw new Error(`oidc: ${what}: ${messageOf(err)}`, { cause: err });
  }
}

function stringOf(value: unknown): string {
  if (value === null) return "";
  if (typeof value !== "string") throw new Error(`json: cannot unmarshal ${jsonWord(value)} into Go value of type string`);
  return value;
}

function boolOf(value: unknown): boolean {
  if (value === null) return false;
  if (typeof value !== "boolean") throw new Error(`json: cannot unmarshal ${jsonWord(value)} into Go value of type bool`);
  return value;
}

function stringsOf(value: unknown): string[] {
  if (value === null) return [];
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  return [stringOf(value)];
}
