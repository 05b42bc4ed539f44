import type { Clock } from "@coxswain/apimachinery/clock/clock";

/**
 * How long a failed pod stays before it is replaced: a node agent that refuses a pod would refuse the next one as well.
 * The wait is 1 s and doubles with each failure up to 15 min; after twice that time without one it starts anew.
 * Source: client-go util/flowcontrol/backoff.go, app/apps.go startDaemonSetController
 */
export interface FailedPodBackoff {
  /** @returns 0 when the next failed pod may be deleted */
  remainingMs(key: string): number;
  /** One is deleted now. */
  next(key: string): void;
}

export function newFailedPodBackoff(clock: Clock): FailedPodBackoff {
  const entries = new Map<string, { waitMs: number; since: number }>();
  const current = (key: string): { waitMs: number; since: number } | undefined => {
    const entry = entries.get(key);
    return entry === undefined || clock.monotonic() - entry.since > 2 * longestMs ? undefined : entry;
  };
  return {
    remainingMs(key) {
      const entry = current(key);
      return entry === undefined ? 0 : Math.max(0, entry.since + entry.waitMs - clock.monotonic());
    },
    next(key) {
      const entry = current(key);
      const waitMs = entry === undefined ? firstMs : Math.min(longestMs, 2 * entry.waitMs);
      entries.delete(key); // the map stays in the order of time
      entries.set(key, { waitMs, since: clock.monotonic() });
      for (const old of entries.keys()) {
        if (current(old) !== undefined) break;
        entries.delete(old);
      }
    },
  };
}

const firstMs = 1000;
const longestMs = 15 * 60_000;
