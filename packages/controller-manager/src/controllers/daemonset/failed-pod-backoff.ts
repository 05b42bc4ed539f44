import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/**
 * Backoff before a failed Pod is replaced: a kubelet that rejects a Pod would probably reject its replacement too.
 * The delay starts at 1 s, doubles with each failure up to 15 min, and is reset after 30 min without a failure.
 * Source: client-go util/flowcontrol/backoff.go, app/apps.go startDaemonSetController
 */
export interface FailedPodBackoff {
  /** Remaining delay in ms; 0 when the next failed Pod may be deleted. */
  remainingMs(key: string): number;
  /** Records a deletion and increases the delay. */
  next(key: string): void;
  /** Number of keys that are remembered. */
  readonly size: number;
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
      entries.delete(key); // re-inserted, so that the map stays ordered by time
      entries.set(key, { waitMs, since: clock.monotonic() });
      for (const old of entries.keys()) {
        if (current(old) !== undefined) break;
        entries.delete(old);
      }
    },
    get size() {
      return entries.size;
    },
  };
}

const firstMs = 1000;
const longestMs = 15 * 60_000;
