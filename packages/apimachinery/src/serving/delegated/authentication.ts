/**
 * Authentication for components other than the API server: front-proxy headers and client certificates are verified locally,
 * bearer tokens by the API server. Without a client, tokens are ignored.
 * Source: k8s.io/apiserver pkg/authentication/authenticatorfactory/delegating.go
 */
import type { Client } from "../../client/client.ts";
import { withReviewRetries } from "../../client/retry.ts";
import type { TokenReview } from "../../objects/schema/kinds/authentication/v1.ts";
import { tokenReviews } from "../../objects/schema/kinds/resources.ts";
import type { Clock } from "../../process/clock/clock.ts";
import type { MetricsRegistry } from "../../process/metrics/registry.ts";
import { anonymous } from "../authentication/anonymous.ts";
import type { Authenticator, TokenAuthenticator } from "../authentication/authenticator.ts";
import { bearerToken, webSocketToken } from "../authentication/bearer-token.ts";
import { type FrontProxy, requestHeader } from "../authentication/request-header.ts";
import { cachedTokens, newTokenCacheMetrics } from "../authentication/token-cache.ts";
import { unionAuthenticator, withAuthenticatedGroup, withFallback } from "../authentication/union.ts";
import { type CertificatePool, x509 } from "../authentication/x509.ts";
import { newReviewMetrics } from "./review-metrics.ts";

/** The trusted authorities at this moment; they may change at runtime. */
export interface Trust {
  clientCa(): CertificatePool | undefined;
  frontProxy(): FrontProxy | undefined;
}

interface DelegatedAuthenticationOptions {
  readonly trust: Trust;
  /** Client for TokenReview requests; undefined: tokens are ignored. */
  readonly client: Client | undefined;
  /** Cache lifetime of token results, positive and negative. */
  readonly tokenTtlMs: number;
  readonly anonymous: boolean;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

/** The authenticator returns undefined for unauthenticated requests and throws for invalid credentials; both mean 401. */
export function delegatedAuthentication(options: DelegatedAuthenticationOptions): Authenticator {
  const { trust, client, clock, tokenTtlMs } = options;
  const followed = {
    get clientCa() {
      return trust.clientCa();
    },
  };
  const authenticators = [requestHeader(trust.frontProxy, clock), x509(followed, clock)];
  if (client !== undefined) {
    const token = cachedTokens(reviewedToken(client, clock, options.metrics), {
      successTtlMs: tokenTtlMs,
      failureTtlMs: tokenTtlMs,
      clock,
      metrics: newTokenCacheMetrics(options.metrics),
    });
    authenticators.push(bearerToken(token, [], clock), webSocketToken(token, []));
  }
  const known = withAuthenticatedGroup(unionAuthenticator(authenticators));
  return options.anonymous ? withFallback(known, anonymous([])) : known;
}

/** Time limit of all attempts together. */
const reviewTimeoutMs = 10_000;

function reviewedToken(client: Client, clock: Clock, metrics: MetricsRegistry): TokenAuthenticator {
  const measured = newReviewMetrics(metrics, "authn", clock);
  return async (token) => {
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec: { token } };
    const signal = AbortSignal.timeout(reviewTimeoutMs);
    const createReview = () => measured(() => client.create<TokenReview>(tokenReviews, review, { signal }));
    const { status } = await withReviewRetries(createReview, clock, signal);
    if (status?.authenticated !== true) {
      if (status?.error) throw new Error(status.error);
      return undefined;
    }
    const { username = "", uid = "", groups = [], extra } = status.user ?? {};
    return { user: { name: username, uid, groups, ...(extra === undefined ? {} : { extra }) } };
  };
}
