/**
 * Builds all configured authenticators in upstream's order: request headers of a front proxy, client certificates, bearer
 * tokens. Requests without credentials are anonymous.
 * Source: pkg/kubeapiserver/authenticator/config.go New
 */
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { anonymous } from "@coxswain/apimachinery/serving/authentication/anonymous";
import type { Authenticator, TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import { bearerToken, webSocketToken } from "@coxswain/apimachinery/serving/authentication/bearer-token";
import { type FrontProxy, requestHeader } from "@coxswain/apimachinery/serving/authentication/request-header";
import { cachedTokens, newTokenCacheMetrics } from "@coxswain/apimachinery/serving/authentication/token-cache";
import {
  unionAuthenticator,
  unionTokenAuthenticator,
  withAuthenticatedGroup,
  withAuthenticatedGroupToken,
  withFallback,
} from "@coxswain/apimachinery/serving/authentication/union";
import { type CertificatePool, x509 } from "@coxswain/apimachinery/serving/authentication/x509";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import { bootstrapToken } from "./bootstrap-token.ts";
import { newCertificateLifetimes } from "./certificate-lifetimes.ts";
import { type OidcOptions, oidcToken } from "./oidc.ts";
import { newReviewWebhook } from "./review-webhook.ts";
import {
  boundServiceAccountToken,
  legacyServiceAccountToken,
  newTokenUse,
  type ServiceAccountGetter,
} from "./service-account.ts";
import type { VerificationKey } from "./service-account-keys.ts";
import { tokenFile } from "./token-file.ts";
import { webhookToken } from "./webhook.ts";

interface AuthenticationOptions {
  anonymous: boolean;
  apiAudiences: readonly string[];
  clientCa: CertificatePool | undefined;
  frontProxy: FrontProxy | undefined;
  tokenAuthFile: string;
  bootstrapTokens: boolean;
  serviceAccounts:
    | { issuers: readonly string[]; keys: readonly VerificationKey[]; lookup: boolean; getter: ServiceAccountGetter }
    | undefined;
  getter: ServiceAccountGetter;
  oidc: OidcOptions | undefined;
  tokenWebhook: TokenWebhookOptions | undefined;
  clock: Clock;
  log: Logger;
  metrics: MetricsRegistry;
  /** Aborts outgoing connections when the server stops. */
  signal: AbortSignal;
  /** Dialer for webhooks; undefined: direct. */
  connect?: Connect | undefined;
}

/** --authentication-token-webhook-*. */
export interface TokenWebhookOptions {
  readonly config: ClientConfig;
  readonly version: string;
  readonly cacheTtlMs: number;
}

export interface Authentication {
  readonly authenticate: Authenticator;
  /** For TokenReviews: authenticates a bearer token for the given audiences. */
  readonly authenticateToken: TokenAuthenticator;
}

const successTtlMs = 10_000;

export function buildAuthentication(options: AuthenticationOptions): Authentication {
  const { apiAudiences, clock, log, signal } = options;
  const cacheMetrics = newTokenCacheMetrics(options.metrics);
  const tokens: TokenAuthenticator[] = [];
  if (options.tokenAuthFile !== "") tokens.push(withApiAudiences(tokenFile(options.tokenAuthFile, log), apiAudiences));
  if (options.serviceAccounts !== undefined) {
    const serviceAccounts = { ...options.serviceAccounts, apiAudiences, clock, use: newTokenUse(options.metrics) };
    tokens.push(legacyServiceAccountToken(serviceAccounts));
    if (serviceAccounts.issuers.length > 0) tokens.push(boundServiceAccountToken(serviceAccounts));
  }
  if (options.bootstrapTokens) tokens.push(withApiAudiences(bootstrapToken(options.getter, clock), apiAudiences));
  // After service accounts, as upstream: their tokens must not be presented to the OpenID provider first.
  if (options.oidc !== undefined) tokens.push(withApiAudiences(oidcToken(options.oidc, { clock, log, signal }), apiAudiences));
  if (options.tokenWebhook !== undefined) {
    const { config, version, cacheTtlMs } = options.tokenWebhook;
    const review = newReviewWebhook({
      config,
      clock,
      signal,
      observer: clientMetrics(options.metrics),
      connect: options.connect,
    });
    const requested = webhookToken({ review, version, implicitAudiences: apiAudiences });
    tokens.push(cachedTokens(requested, { successTtlMs: cacheTtlMs, failureTtlMs: cacheTtlMs, clock, metrics: cacheMetrics }));
  }
  const union = unionTokenAuthenticator(tokens);
  const token = cachedTokens(union, { successTtlMs, failureTtlMs: 0, clock, metrics: cacheMetrics });

  const requests: Authenticator[] = [];
  if (options.frontProxy !== undefined) requests.push(requestHeader(() => options.frontProxy, clock));
  const lifetimes = newCertificateLifetimes(options.metrics);
  if (options.clientCa !== undefined) requests.push(x509(options, clock, (seconds) => lifetimes.observe(seconds)));
  if (tokens.length > 0) requests.push(bearerToken(token, apiAudiences, clock), webSocketToken(token, apiAudiences));
  const known = withAuthenticatedGroup(unionAuthenticator(requests));
  return {
    authenticate: options.anonymous ? withFallback(known, anonymous(apiAudiences)) : known,
    authenticateToken: withDefaultAudiences(withAuthenticatedGroupToken(token), apiAudiences),
  };
}

/**
 * A review without audiences uses those of this API server.
 * @throws Error for a token that no authenticator recognizes, like a request with it
 * Source: pkg/registry/authentication/tokenreview/storage.go
 */
function withDefaultAudiences(authenticate: TokenAuthenticator, apiAudiences: readonly string[]): TokenAuthenticator {
  return async (token, audiences) => {
    const wanted = audiences === undefined || audiences.length === 0 ? apiAudiences : audiences;
    const result = await authenticate(token, wanted.length === 0 ? undefined : wanted);
    if (result === undefined) throw new Error("invalid bearer token");
    return result;
  };
}

/**
 * Grants the API server's own audiences to tokens of authenticators that do not support audiences.
 * Source: pkg/authentication/authenticator/audagnostic.go
 */
function withApiAudiences(authenticate: TokenAuthenticator, apiAudiences: readonly string[]): TokenAuthenticator {
  return async (token, audiences) => {
    if (audiences === undefined) return authenticate(token, audiences);
    const granted = apiAudiences.filter((audience) => audiences.includes(audience));
    if (granted.length === 0) return undefined;
    const result = await authenticate(token, audiences);
    return result === undefined ? undefined : { ...result, audiences: granted };
  };
}
