import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/**
 * Exponential back-off by key: doubles with each attempt, resets after twice the maximum without one.
 * Source: k8s.io/client-go util/flowcontrol/backoff.go
 */
export interface Backoff {
  /** The current delay in ms; 0 for an unknown key. */
  current(key: string): number;
  /** Records an attempt. @param endedMsAgo time since the end of the previous attempt; default 0 */
  next(key: string, endedMsAgo?: number): void;
  /** Whether the delay has not passed yet. @param beganMsAgo time since the delay began; default since the last `next` */
  isWaiting(key: string, beganMsAgo?: number): boolean;
  forget(key: string): void;
  /** Removes expired entries. */
  collect(): void;
}

/** Creates a back-off with delays from `initialMs` to `maxMs`. */
export function newBackoff(options: { initialMs: number; maxMs: number; clock: Clock }): Backoff {
  const { initialMs, maxMs, clock } = options;
  const entries = new Map<string, { waitMs: number; lastTry: number }>();
  const isExpired = (lastTry: number, msAgo: number): boolean => clock.monotonic() - msAgo - lastTry > maxMs * 2;
  return {
    current: (key) => entries.get(key)?.waitMs ?? 0,
    next(key, endedMsAgo = 0) {
      const entry = entries.get(key);
      const startsAnew = entry === undefined || isExpired(entry.lastTry, endedMsAgo);
      const waitMs = startsAnew ? initialMs : Math.min(entry.waitMs * 2, maxMs);
      entries.set(key, { waitMs, lastTry: clock.monotonic() });
    },
    isWaiting(key, beganMsAgo) {
      const entry = entries.get(key);
      if (entry === undefined) return false;
      const msAgo = beganMsAgo ?? clock.monotonic() - entry.lastTry;
      return msAgo < entry.waitMs && !isExpired(entry.lastTry, msAgo);
    },
    forget: (key) => void entries.delete(key),
    collect() {
      for (const [key, { lastTry }] of entries) if (isExpired(lastTry, 0)) entries.delete(key);
    },
  };
}
