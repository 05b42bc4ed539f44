/**
 * Remembers for a short time which tokens were good, so that a signature and its liveness are not checked at each
 * request. Refusals are not remembered.
 * Source: k8s.io/apiserver pkg/authentication/token/cache/cached_token_authenticator.go
 */
import { createHmac, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { AuthenticationResult, TokenAuthenticator } from "./authenticator.ts";

export function cachedTokens(authenticate: TokenAuthenticator, successTtlMs: number): TokenAuthenticator {
  // A keyed hash: neither the tokens nor something to guess them by stays in memory.
  const secret = randomBytes(32);
  const cache = new LRUCache<string, AuthenticationResult>({ max: 4096, ttl: successTtlMs });
  const running = new Map<string, Promise<AuthenticationResult | undefined>>();
  return async (token, audiences) => {
    const key = createHmac("sha256", secret)
      .update(JSON.stringify(audiences ?? null))
      .update("\0")
      .update(token)
      .digest("latin1");
    const known = cache.get(key);
    if (known !== undefined) return known;
    const already = running.get(key);
    if (already !== undefined) return already;
    const attempt = authenticate(token, audiences);
    running.set(key, attempt);
    try {
      const result = await attempt;
      if (result !== undefined) cache.set(key, result);
      return result;
    } finally {
      running.delete(key);
    }
  };
}
