import type { Clock } from "../process/clock/clock.ts";

/** A token bucket: `burst` requests at once, `qps` per second sustained. Waiters are served in order. */
export interface TokenBucket {
  /** Takes one token if available. */
  tryAccept(): boolean;
  /** Takes one token, waiting if necessary. @returns the wait in ms @throws the signal's reason */
  accept(signal?: AbortSignal): Promise<number>;
  /** Takes one token, if necessary on credit. @returns ms until it is available */
  reserve(): number;
}

/**
 * A bucket that is full at first. Any number of callers may share it.
 * Source: golang.org/x/time/rate, as used by client-go's util/flowcontrol.
 */
export function newTokenBucket(options: { qps: number; burst: number; clock: Clock }): TokenBucket {
  const { qps, burst, clock } = options;
  let tokens = burst;
  let updatedAt = clock.monotonic();

  const refill = (): void => {
    const now = clock.monotonic();
    tokens = Math.min(burst, tokens + ((now - updatedAt) / 1000) * qps);
    updatedAt = now;
  };
  const reserve = (): number => {
    refill();
    tokens -= 1;
    return tokens >= 0 ? 0 : (-tokens / qps) * 1000;
  };
  return {
    tryAccept() {
      refill();
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
    async accept(signal) {
      signal?.throwIfAborted();
      const delayMs = reserve();
      if (delayMs === 0) return 0;
      try {
        await clock.sleep(delayMs, signal);
      } catch (err) {
        tokens += 1; // an aborted wait must not delay later ones
        throw err;
      }
      return delayMs;
    },
    reserve,
  };
}

/** A bucket without limit. */
export const unlimited: TokenBucket = { tryAccept: () => true, accept: async () => 0, reserve: () => 0 };
