/**
 * Distributed claims: `_claim_names` of the ID token maps a claim to a source, `_claim_sources` the source to an endpoint.
 * The endpoint returns a JWT, which is verified like an ID token.
 * Source: k8s.io/apiserver plugin/pkg/authenticator/token/oidc/oidc.go claimResolver; OpenID Connect Core 1.0 section 5.6.2
 */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { LRUCache } from "lru-cache";
import type { HttpsGet } from "./oidc-https.ts";
import { type Claims, type TokenVerifier, untrustedIssuer } from "./oidc-verifier.ts";

interface ClaimSources {
  readonly get: HttpsGet;
  /** @throws Error when the verifier of the issuer is not available. */
  verifierOf(issuer: string): Promise<TokenVerifier>;
}

const retryMs = 10_000;
/** Bounds the cache of verifiers, because issuer names are taken from tokens. */
const mostIssuers = 100;

/** Caches one verifier per issuer; a failed discovery is retried after `retryMs` at the earliest. */
export function newClaimVerifiers(
  discover: (issuer: string) => Promise<TokenVerifier>,
  clock: Clock,
): ClaimSources["verifierOf"] {
  const known = new LRUCache<string, { made: Promise<TokenVerifier | undefined>; failedAtMs?: number }>({ max: mostIssuers });
  return async (issuer) => {
    let entry = known.get(issuer);
    if (entry === undefined || (entry.failedAtMs !== undefined && clock.monotonic() - entry.failedAtMs >= retryMs)) {
      const started: NonNullable<typeof entry> = {
        made: discover(issuer).catch(() => {
          started.failedAtMs = clock.monotonic();
          return undefined;
        }),
      };
      entry = started;
      known.set(issuer, entry);
    }
    const verifier = await entry.made;
    if (verifier === undefined) throw new Error(`verifier not initialized for issuer: ${JSON.stringify(issuer)}`);
    return verifier;
  };
}

/**
 * @returns the claims including the requested one, fetched if it is distributed
 * @throws Error when the token names a source for the claim and fetching or verifying it fails
 */
export async function expandDistributedClaim(claims: Claims, claim: string, sources: ClaimSources): Promise<Claims> {
  if (Object.hasOwn(claims, claim) || !Object.hasOwn(claims, "_claim_names")) return claims;
  const names = objectOf(claims["_claim_names"], "oidc: error parsing distributed claim names");
  if (!Object.hasOwn(claims, "_claim_sources")) throw new Error("oidc: no claim sources");
  const addresses = objectOf(claims["_claim_sources"], "oidc: could not parse claim sources");
  if (!Object.hasOwn(names, claim)) return claims;
  const source = names[claim];
  if (typeof source !== "string") throw new Error("oidc: error parsing distributed claim names: a source is no string");
  if (!Object.hasOwn(addresses, source)) {
    throw new Error(`id token _claim_names contained a source ${source} missing in _claims_sources`);
  }
  const { endpoint = "", access_token: accessToken = "" } = objectOf(addresses[source], "oidc: could not parse claim sources");
  if (typeof endpoint !== "string" || typeof accessToken !== "string") {
    throw new Error("oidc: could not parse claim sources: an endpoint or access_token is no string");
  }
  // A source without endpoint is an aggregated claim, which upstream does not support either.
  if (endpoint === "") return claims;
  const value = await resolve(endpoint, accessToken, claim, sources);
  const expanded = { ...claims };
  Object.defineProperty(expanded, claim, { value, enumerable: true, configurable: true, writable: true });
  return expanded;
}

async function resolve(endpoint: string, accessToken: string, claim: string, sources: ClaimSources): Promise<unknown> {
  const jwt = await wrap(`while getting distributed claim ${JSON.stringify(claim)}`, () =>
    fetchJwt(endpoint, accessToken, sources.get),
  );
  const issuer = await wrap(`getting untrusted issuer from endpoint ${endpoint} failed for claim ${JSON.stringify(claim)}`, () =>
    untrustedIssuer(jwt),
  );
  const verifier = await wrap(`verifying untrusted issuer ${issuer} failed`, () => sources.verifierOf(issuer));
  const claims = await wrap("verify distributed claim token", () => verifier.verify(jwt));
  if (!Object.hasOwn(claims, claim)) {
    throw new Error(`jwt returned by distributed claim endpoint ${endpoint} did not contain claim: ${claim}`);
  }
  return claims[claim];
}

async function fetchJwt(endpoint: string, accessToken: string, get: HttpsGet): Promise<string> {
  const { status, statusText, body } = await get(endpoint, accessToken === "" ? {} : { authorization: `Bearer ${accessToken}` });
  if (status < 200 || status > 226) throw new Error(`error while getting distributed claim JWT: ${statusText}`);
  return body;
}

async function wrap<T>(what: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (err) {
    throw new Error(`${what}: ${messageOf(err)}`, { cause: err });
  }
}

function objectOf(value: unknown, what: string): Record<string, unknown> {
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new Error(`${what}: not an object`);
  return value as Record<string, unknown>; // cast: an object, which was checked above
}
