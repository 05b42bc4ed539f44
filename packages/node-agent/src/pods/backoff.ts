import type { Clock } from "@coxswain/apimachinery/clock/clock";

/**
 * How long to wait before something that failed is tried again: doubles with each try, starts anew after twice the
 * maximum without one. Source: k8s.io/client-go util/flowcontrol/backoff.go
 */
export interface Backoff {
  /** The present wait in milliseconds, 0 when nothing is known. */
  current(key: string): number;
  /** Another try begins now. @param endedMsAgo when the last one ended; now where nothing is said */
  next(key: string, endedMsAgo?: number): void;
  /** Whether the wait still lasts. @param beganMsAgo when it began; with the last `next` where nothing is said */
  isWaiting(key: string, beganMsAgo?: number): boolean;
  forget(key: string): void;
  /** Forgets what has expired. */
  collect(): void;
}

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
