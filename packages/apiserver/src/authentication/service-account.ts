/**
 * Service-account tokens: legacy ones (stored in a Secret, without expiry) and bound ones (with audience, expiry, and usually
 * a Pod). Besides the signature, the objects that a token is bound to are checked for existence.
 * Source: pkg/serviceaccount/{jwt,legacy,claims}.go
 */
import { timingSafeEqual } from "node:crypto";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { AuthenticationResult, TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import { compactVerify, decodeJwt, decodeProtectedHeader } from "jose";
import { serviceAccountGroups, serviceAccountUsername, splitServiceAccountUsername } from "../request/user-names.ts";
import type { VerificationKey } from "./service-account-keys.ts";

export const legacyIssuer = "kubernetes/serviceaccount";
const podNameKey = "authentication.kubernetes.io/pod-name";
const podUidKey = "authentication.kubernetes.io/pod-uid";
/** Clock skew tolerated for token expiry and for the deletion of bound objects. */
const leewayMs = 60_000;

/** Reads objects that tokens are bound to; undefined when missing. May use a cache, unless `fresh` is set. */
export interface ServiceAccountGetter {
  get(
    kind: "serviceaccounts" | "secrets" | "pods",
    namespace: string,
    name: string,
    fresh: boolean,
  ): Promise<KubeObject | undefined>;
}

export interface ServiceAccountTokenOptions {
  /** The first one signs, all are accepted. */
  issuers: readonly string[];
  keys: readonly VerificationKey[];
  /** Audiences of tokens without audience. */
  apiAudiences: readonly string[];
  /** --service-account-lookup: legacy tokens must match their Secret. */
  lookup: boolean;
  getter: ServiceAccountGetter;
  clock: Clock;
  use: TokenUse;
}

/** Counters of verified tokens by type. */
type TokenUse = ReturnType<typeof newTokenUse>;

/** Registers counters of authenticated tokens. Source: pkg/serviceaccount/metrics.go */
export function newTokenUse(metrics: MetricsRegistry) {
  const total = (kind: string, what: string) =>
    metrics.counter({ name: `serviceaccount_${kind}_tokens_total`, help: `Cumulative ${what} service account tokens used` });
  return {
    legacy: total("legacy", "legacy"),
    /** Bound tokens past their original expiry, accepted because of the extended lifetime for clients that do not reload. */
    stale: total("stale", "stale projected"),
    valid: total("valid", "valid projected"),
  };
}

/** Authenticates tokens stored in Secrets; ignores tokens of other issuers. */
export function legacyServiceAccountToken(options: ServiceAccountTokenOptions): TokenAuthenticator {
  return async (token, audiences) => {
    if (issuerOf(token) !== legacyIssuer) return undefined;
    const claims = await verify(token, options.keys);
    options.use.legacy.inc();
    const granted = grantedAudiences(claims, options.apiAudiences, audiences);
    return withAudiences(await checkLegacy(token, claims, options), granted);
  };
}

/** Authenticates bound tokens of the configured issuers; ignores tokens of other issuers. */
export function boundServiceAccountToken(options: ServiceAccountTokenOptions): TokenAuthenticator {
  return async (token, audiences) => {
    const issuer = issuerOf(token);
    if (issuer === undefined || issuer === legacyIssuer || !options.issuers.includes(issuer)) return undefined;
    const claims = await verify(token, options.keys);
    const granted = grantedAudiences(claims, options.apiAudiences, audiences);
    return withAudiences(await checkBound(claims, options), granted);
  };
}

/** Upper bound for tokens in TokenReviews; tokens in request headers are always shorter. */
const longestToken = 1024 * 1024;

/** Reads the unverified issuer, to skip tokens of other issuers before any signature check. */
function issuerOf(token: string): string | undefined {
  if (token.length > longestToken || token.split(".", 4).length !== 3) return undefined;
  try {
    const { iss } = decodeJwt(token);
    return typeof iss === "string" ? iss : undefined;
  } catch {
    return undefined;
  }
}

type Claims = Readonly<Record<string, unknown>>;

async function verify(token: string, keys: readonly VerificationKey[]): Promise<Claims> {
  const { kid, alg } = decodeProtectedHeader(token);
  // The header only determines the order of attempts; keys and algorithms in it are not trusted.
  const candidates = keys.filter((key) => key.algorithm === alg).toSorted((a, b) => Number(b.id === kid) - Number(a.id === kid));
  for (const { key, algorithm } of candidates) {
    try {
      const { payload } = await compactVerify(token, key, { algorithms: [algorithm] });
      return JSON.parse(Buffer.from(payload).toString("utf8")) as Claims; // cast: an object, as `issuerOf` has found; each claim is checked where it is read
    } catch {
      // Try the next key.
    }
  }
  throw new Error("invalid bearer token");
}

function grantedAudiences(
  claims: Claims,
  implicit: readonly string[],
  requested: readonly string[] | undefined,
): readonly string[] | undefined {
  const { aud } = claims;
  const own = typeof aud === "string" ? [aud] : Array.isArray(aud) ? aud.filter((value) => typeof value === "string") : [];
  const tokenAudiences = own.length === 0 ? implicit : own;
  if (requested === undefined) return undefined;
  const granted = tokenAudiences.filter((audience) => requested.includes(audience));
  if (granted.length === 0) {
    throw new Error(`token audiences ${quoteAll(tokenAudiences)} is invalid for the target audiences ${quoteAll(requested)}`);
  }
  return granted;
}

function quoteAll(texts: readonly string[]): string {
  return `[${texts.map(goQuote).join(" ")}]`;
}

function withAudiences(result: AuthenticationResult, audiences: readonly string[] | undefined): AuthenticationResult {
  return audiences === undefined ? result : { ...result, audiences };
}

interface Reference {
  name: string;
  uid: string;
}

async function checkBound(claims: Claims, options: ServiceAccountTokenOptions): Promise<AuthenticationResult> {
  const now = options.clock.now();
  checkTimes(claims, now);
  const own = claims["kubernetes.io"] as Record<string, unknown> | undefined; // cast: each field is checked where it is read, and other values have none
  const namespace = typeof own?.["namespace"] === "string" ? own["namespace"] : "";
  const account = reference(own?.["serviceaccount"]);
  if (namespace === "" || account === undefined) throw new Error("token has no namespace or service account claim");
  const secret = reference(own?.["secret"]);
  const pod = reference(own?.["pod"]);
  const { getter } = options;
  const serviceAccount = await checkAlive(getter, "serviceaccounts", namespace, account, now, "ServiceAccount");
  if (secret !== undefined) await checkAlive(getter, "secrets", namespace, secret, now, "Secret");
  if (pod !== undefined) await checkAlive(getter, "pods", namespace, pod, now, "Pod");
  return {
    user: {
      name: serviceAccountUsername(namespace, account.name),
      uid: serviceAccount.metadata.uid ?? account.uid,
      groups: serviceAccountGroups(namespace),
      ...(pod === undefined ? {} : { extra: { [podNameKey]: [pod.name], [podUidKey]: [pod.uid] } }),
    },
    ...staleness(claims, own?.["warnafter"], options),
  };
}

/**
 * Classifies a token with extended lifetime by its `warnafter` claim: the time after which the client should have reloaded it.
 * Source: pkg/serviceaccount/claims.go Validate
 */
function staleness(
  claims: Claims,
  warnAfter: unknown,
  { clock, use }: ServiceAccountTokenOptions,
): Pick<AuthenticationResult, "auditAnnotations"> {
  if (typeof warnAfter !== "number" || warnAfter === 0) return {};
  const now = clock.now();
  if (now <= warnAfter * 1000) {
    use.valid.inc();
    return {};
  }
  use.stale.inc();
  const seconds = Math.floor(now / 1000) - warnAfter;
  const said = `subject: ${String(claims["sub"])}, seconds after warning threshold: ${seconds}`;
  return { auditAnnotations: { "authentication.k8s.io/stale-token": said } };
}

function checkTimes(claims: Claims, now: number): void {
  const { exp, nbf, iat } = claims;
  if (typeof exp !== "number") throw new Error("token has no expiry");
  if (now > exp * 1000 + leewayMs) throw new Error("token has expired");
  if (typeof nbf === "number" && now < nbf * 1000 - leewayMs) throw new Error("service account token is not valid yet");
  if (typeof iat === "number" && now < iat * 1000 - leewayMs) throw new Error("service account token is issued in the future");
}

function reference(claim: unknown): Reference | undefined {
  if (typeof claim !== "object" || claim === null) return undefined;
  const { name, uid }: { name?: unknown; uid?: unknown } = claim;
  return typeof name === "string" && name !== "" ? { name, uid: typeof uid === "string" ? uid : "" } : undefined;
}

async function checkAlive(
  getter: ServiceAccountGetter,
  kind: "serviceaccounts" | "secrets" | "pods",
  namespace: string,
  wanted: Reference,
  now: number,
  what: string,
): Promise<KubeObject> {
  let object = await getter.get(kind, namespace, wanted.name, false);
  // The cache may lag behind a token that was just issued.
  if (object === undefined || object.metadata.uid !== wanted.uid) object = await getter.get(kind, namespace, wanted.name, true);
  if (object === undefined)
    throw new Error(`${what} ${namespace}/${wanted.name} not found: service account token has been invalidated`);
  const deletedMs = object.metadata.deletionTimestamp ? Date.parse(object.metadata.deletionTimestamp) : undefined;
  if (deletedMs !== undefined && deletedMs < now - leewayMs)
    throw new Error(`${what} ${namespace}/${wanted.name} has been deleted`);
  if (object.metadata.uid !== wanted.uid) {
    throw new Error(`${what} UID (${object.metadata.uid}) does not match claim (${wanted.uid})`);
  }
  return object;
}

async function checkLegacy(token: string, claims: Claims, options: ServiceAccountTokenOptions): Promise<AuthenticationResult> {
  const claim = (suffix: string): string => {
    const value = claims[`kubernetes.io/serviceaccount/${suffix}`];
    return typeof value === "string" ? value : "";
  };
  const subject = typeof claims["sub"] === "string" ? splitServiceAccountUsername(claims["sub"]) : undefined;
  const [namespace, secretName, name, uid] = [
    claim("namespace"),
    claim("secret.name"),
    claim("service-account.name"),
    claim("service-account.uid"),
  ];
  if (subject === undefined) throw new Error("sub claim is missing or not a service account");
  if (namespace === "" || secretName === "" || name === "" || uid === "") throw new Error("a service account claim is missing");
  if (subject.namespace !== namespace || subject.name !== name)
    throw new Error("sub claim does not match the service account claims");

  if (options.lookup) {
    const { getter } = options;
    const secret =
      (await getter.get("secrets", namespace, secretName, false)) ?? (await getter.get("secrets", namespace, secretName, true));
    if (secret === undefined || secret.metadata.deletionTimestamp) throw new Error("Token has been invalidated");
    const stored = (secret as { data?: Record<string, string> }).data?.["token"]; // cast: the getter returns Secrets for this resource
    if (stored === undefined || !sameBytes(Buffer.from(stored, "base64"), Buffer.from(token))) {
      throw new Error("Token does not match server's copy");
    }
    let account = await getter.get("serviceaccounts", namespace, name, false);
    if (account === undefined || account.metadata.uid !== uid)
      account = await getter.get("serviceaccounts", namespace, name, true);
    if (account === undefined || account.metadata.deletionTimestamp) {
      throw new Error(`ServiceAccount ${namespace}/${name} has been deleted`);
    }
    if (account.metadata.uid !== uid)
      throw new Error(`ServiceAccount UID (${account.metadata.uid}) does not match claim (${uid})`);
  }
  return { user: { name: serviceAccountUsername(namespace, name), uid, groups: serviceAccountGroups(namespace) } };
}

function sameBytes(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
