import { isInternalError, isTimeout, isTooManyRequests, suggestsDelay } from "../objects/errors/predicates.ts";
import type { Clock } from "../process/clock/clock.ts";

/** Backoff of reviews, which block a request. Source: k8s.io/apiserver pkg/server/options, DefaultAuthWebhookRetryBackoff */
const reviewBackoff = { initialMs: 500, factor: 1.5, jitter: 0.2, attempts: 5 };

/**
 * Calls `send` up to five times with exponential backoff while it fails with a transient error.
 * @throws the last error, or the signal's reason
 * Source: k8s.io/apiserver pkg/util/webhook/webhook.go, WithExponentialBackoff
 */
export async function withReviewRetries<T>(send: () => Promise<T>, clock: Clock, signal: AbortSignal): Promise<T> {
  let pauseMs = reviewBackoff.initialMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (err) {
      if (attempt >= reviewBackoff.attempts || signal.aborted || !mayPass(err)) throw err;
      await clock.sleep(pauseMs * (1 + Math.random() * reviewBackoff.jitter), signal);
      pauseMs *= reviewBackoff.factor;
    }
  }
}

/** Source: webhook.DefaultShouldRetry */
function mayPass(err: unknown): boolean {
  if (isInternalError(err) || isTimeout(err) || isTooManyRequests(err) || suggestsDelay(err) !== undefined) return true;
  for (let cause = err, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    const { code }: NodeJS.ErrnoException = cause;
    if (code === "ECONNRESET" || code === "CONNECTION_LOST" || code === "NOT_PROCESSED") return true;
  }
  return false;
}
