import type { Clock } from "../clock/clock.ts";

/** A token bucket: `burst` requests at once, `qps` a second over time. Waiters are served in the order they came. */
export interface TokenBucket {
  /** Takes one token if one is there. */
  tryAccept(): boolean;
  /** Takes one token, waiting for it. @returns how long it waited in ms; rejects with the signal's reason. */
  accept(signal?: AbortSignal): Promise<number>;
  /** Takes one token now or on credit. @returns ms until it is really there. */
  reserve(): number;
}

/** Source: golang.org/x/time/rate, as client-go's util/flowcontrol uses it. */
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
        tokens += 1; // who gave up waiting must not make the others wait longer
        throw err;
      }
      return delayMs;
    },
    reserve,
  };
}

/** For clients without a limit. */
export const unlimited: TokenBucket = { tryAccept: () => true, accept: async () => 0, reserve: () => 0 };
