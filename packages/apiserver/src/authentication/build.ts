/**
 * All authenticators in upstream's order: a front proxy's word, client certificates, bearer tokens, and who shows
 * nothing is anonymous.
 * Source: pkg/kubeapiserver/authenticator/config.go New
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { anonymous } from "./anonymous.ts";
import type { Authenticator, TokenAuthenticator } from "./authenticator.ts";
import { bearerToken, webSocketToken } from "./bearer-token.ts";
import { bootstrapToken } from "./bootstrap-token.ts";
import type { CertificatePool } from "./certificate-pool.ts";
import { type RequestHeaderOptions, requestHeader } from "./request-header.ts";
import { boundServiceAccountToken, legacyServiceAccountToken, type ServiceAccountGetter } from "./service-account.ts";
import type { VerificationKey } from "./service-account-keys.ts";
import { cachedTokens } from "./token-cache.ts";
import { tokenFile } from "./token-file.ts";
import {
  unionAuthenticator,
  unionTokenAuthenticator,
  withAuthenticatedGroup,
  withAuthenticatedGroupToken,
  withFallback,
} from "./union.ts";
import { x509 } from "./x509.ts";

export interface AuthenticationOptions {
  anonymous: boolean;
  apiAudiences: readonly string[];
  clientCa: CertificatePool | undefined;
  requestHeader: Omit<RequestHeaderOptions, "clock"> | undefined;
  tokenAuthFile: string;
  bootstrapTokens: boolean;
  serviceAccounts:
    | { issuers: readonly string[]; keys: readonly VerificationKey[]; lookup: boolean; getter: ServiceAccountGetter }
    | undefined;
  getter: ServiceAccountGetter;
  clock: Clock;
  log: Logger;
}

export interface Authentication {
  readonly authenticate: Authenticator;
  /** For token reviews: what a bearer token says, for these audiences. */
  readonly authenticateToken: TokenAuthenticator;
}

const successTtlMs = 10_000;

export function buildAuthentication(options: AuthenticationOptions): Authentication {
  const { apiAudiences, clock, log } = options;
  const tokens: TokenAuthenticator[] = [];
  if (options.tokenAuthFile !== "") tokens.push(withApiAudiences(tokenFile(options.tokenAuthFile, log), apiAudiences));
  if (options.serviceAccounts !== undefined) {
    const serviceAccounts = { ...options.serviceAccounts, apiAudiences, clock };
    tokens.push(legacyServiceAccountToken(serviceAccounts));
    if (serviceAccounts.issuers.length > 0) tokens.push(boundServiceAccountToken(serviceAccounts));
  }
  if (options.bootstrapTokens) tokens.push(withApiAudiences(bootstrapToken(options.getter, clock), apiAudiences));
  const token = cachedTokens(unionTokenAuthenticator(tokens), successTtlMs);

  const requests: Authenticator[] = [];
  if (options.requestHeader !== undefined) requests.push(requestHeader({ ...options.requestHeader, clock }));
  if (options.clientCa !== undefined) requests.push(x509(options.clientCa, clock));
  if (tokens.length > 0) requests.push(bearerToken(token, apiAudiences, clock), webSocketToken(token, apiAudiences));
  const known = withAuthenticatedGroup(unionAuthenticator(requests));
  return {
    authenticate: options.anonymous ? withFallback(known, anonymous(apiAudiences)) : known,
    authenticateToken: withAuthenticatedGroupToken(token),
  };
}

/** Tokens that know of no audience are good for this server's own. Source: pkg/authentication/authenticator/audagnostic.go */
function withApiAudiences(authenticate: TokenAuthenticator, apiAudiences: readonly string[]): TokenAuthenticator {
  return async (token, audiences) => {
    if (audiences === undefined) return authenticate(token, audiences);
    const granted = apiAudiences.filter((audience) => audiences.includes(audience));
    if (granted.length === 0) return undefined;
    const result = await authenticate(token, audiences);
    return result === undefined ? undefined : { ...result, audiences: granted };
  };
}
