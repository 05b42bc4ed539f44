/**
 * Caches results of token authentication for a short time, so that signatures are not verified, and remote services not called,
 * for each request. Errors are not cached.
 * Source: k8s.io/apiserver pkg/authentication/token/cache/cached_token_authenticator.go, stats.go
 */
import { createHmac, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../process/clock/clock.ts";
import type { MetricsRegistry } from "../../process/metrics/registry.ts";
import type { AuthenticationResult, TokenAuthenticator } from "./authenticator.ts";

interface TokenCacheOptions {
  /** Lifetime of positive results; 0: not cached. */
  readonly successTtlMs: number;
  /** Lifetime of negative results (unknown tokens); 0: not cached. */
  readonly failureTtlMs: number;
  readonly clock: Clock;
  readonly metrics: TokenCacheMetrics;
}

type TokenCacheMetrics = ReturnType<typeof newTokenCacheMetrics>;

/** Shared by all caches of a server. */
export function newTokenCacheMetrics(registry: MetricsRegistry) {
  const labels = ["status"];
  const name = (what: string): string => `authentication_token_cache_${what}`;
  return {
    duration: registry.histogram({ name: name("request_duration_seconds"), help: "", labels }),
    requests: registry.counter({ name: name("request_total"), help: "", labels }),
    fetches: registry.counter({ name: name("fetch_total"), help: "", labels }),
    active: registry.gauge({ name: name("active_fetch_count"), help: "", labels }),
  };
}

interface Remembered {
  readonly result: AuthenticationResult | undefined;
  readonly untilMs: number;
}

/** Wraps an authenticator with a cache. Concurrent calls for one token share one lookup. */
export function cachedTokens(authenticate: TokenAuthenticator, options: TokenCacheOptions): TokenAuthenticator {
  const { clock, metrics } = options;
  // Entries are keyed by a keyed hash: neither tokens nor anything to guess them by stays in memory.
  const secret = randomBytes(32);
  const cache = new LRUCache<string, Remembered>({ max: 4096 });
  const running = new Map<string, Promise<AuthenticationResult | undefined>>();

  const fetchResult = async (key: string, token: string, audiences: readonly string[] | undefined) => {
    const inFlight = metrics.active.labels("in_flight");
    inFlight.inc();
    try {
      const result = await authenticate(token, audiences);
      const ttlMs = result === undefined ? options.failureTtlMs : options.successTtlMs;
      if (ttlMs > 0) cache.set(key, { result, untilMs: clock.monotonic() + ttlMs });
      metrics.fetches.labels("ok").inc();
      return result;
    } catch (err) {
      metrics.fetches.labels("error").inc();
      throw err;
    } finally {
      inFlight.dec();
      running.delete(key);
    }
  };

  return async (token, audiences) => {
    const startedAt = clock.monotonic();
    const done = (status: "hit" | "miss"): void => {
      metrics.requests.labels(status).inc();
      metrics.duration.labels(status).observe((clock.monotonic() - startedAt) / 1000);
    };
    const key = createHmac("sha256", secret)
      .update(JSON.stringify(audiences ?? null))
      .update("\0")
      .update(token)
      .digest("latin1");
    const known = cache.get(key);
    if (known !== undefined && clock.monotonic() < known.untilMs) {
      done("hit");
      return known.result;
    }
    const blocked = metrics.active.labels("blocked");
    blocked.inc();
    try {
      const attempt = running.getOrInsertComputed(key, () => fetchResult(key, token, audiences));
      return await attempt;
    } finally {
      blocked.dec();
      done("miss");
    }
  };
}
