import type { Clock } from "@coxswain/apimachinery/clock/clock";

/**
 * How long to wait before something that failed is tried again: doubles with each try, starts anew after twice the
 * maximum without one. Source: k8s.io/client-go util/flowcontrol/backoff.go
 */
export interface Backoff {
  /** The present wait in milliseconds, 0 when nothing is known. */
  current(key: string): number;
  /** Another try that begins now; `eventTime` is when the last one ended. */
  next(key: string, eventTime: number): void;
  /** Whether the wait that began at `eventTime` still lasts. */
  isWaitingSince(key: string, eventTime: number): boolean;
  /** Whether the wait that began with the last `next` still lasts. */
  isWaitingSinceLastTry(key: string): boolean;
  forget(key: string): void;
  /** Forgets what has expired. */
  collect(): void;
}

export function newBackoff(options: { initialMs: number; maxMs: number; clock: Clock }): Backoff {
  const entries = new Map<string, { waitMs: number; lastTry: number }>();
  const expired = (eventTime: number, lastTry: number): boolean => eventTime - lastTry > options.maxMs * 2;
  return {
    current: (key) => entries.get(key)?.waitMs ?? 0,
    next(key, eventTime) {
      const entry = entries.get(key);
      const waitMs =
        entry === undefined || expired(eventTime, entry.lastTry) ? options.initialMs : Math.min(entry.waitMs * 2, options.maxMs);
      entries.set(key, { waitMs, lastTry: options.clock.now() });
    },
    isWaitingSince(key, eventTime) {
      const entry = entries.get(key);
      if (entry === undefined || expired(eventTime, entry.lastTry)) return false;
      return options.clock.now() - eventTime < entry.waitMs;
    },
    isWaitingSinceLastTry(key) {
      const entry = entries.get(key);
      const now = options.clock.now();
      if (entry === undefined || expired(now, entry.lastTry)) return false;
      return now - entry.lastTry < entry.waitMs;
    },
    forget: (key) => void entries.delete(key),
    collect() {
      const now = options.clock.now();
      for (const [key, entry] of entries) if (now - entry.lastTry > options.maxMs * 2) entries.delete(key);
    },
  };
}
