import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newBackoff } from "../pod/backoff.ts";
import type { Serial } from "./csi/serial.ts";

/**
 * Tries to release volumes concurrently, so that a slow driver does not delay other volumes. Failures are retried by later
 * calls, with exponential backoff per volume.
 * @returns resolves when these attempts have finished
 */
export type ReleaseUnused = (names: Iterable<string>) => Promise<void>;

/** Source: pkg/util/goroutinemap/exponentialbackoff */
const retryInitialMs = 500;
const retryMaxMs = 122_000;

/** Creates a release function with its own back-off state. */
export function newReleaseUnused(options: {
  serial: Serial;
  /** Releases the volume if no Pod uses it. */
  release(name: string): Promise<void>;
  clock: Clock;
  log: Logger;
}): ReleaseUnused {
  const { serial, release, clock, log } = options;
  const retries = newBackoff({ initialMs: retryInitialMs, maxMs: retryMaxMs, clock });
  /** Attempts that are queued but not started; they read the state when they start. */
  const next = new Map<string, Promise<void>>();
  const running = new Set<string>();

  function begin(name: string): Promise<void> | undefined {
    const begun = next.get(name);
    // An attempt is queued behind a running one, which may hang: do not wait for it.
    if (begun !== undefined) return running.has(name) ? undefined : begun;
    const made = serial(name, () => attempt(name));
    next.set(name, made);
    return made;
  }

  async function attempt(name: string): Promise<void> {
    next.delete(name);
    if (retries.isWaiting(name)) return;
    running.add(name);
    try {
      await release(name);
      retries.forget(name);
    } catch (err) {
      retries.next(name);
      log.error("UnmountDevice failed for volume", err, { volume: name });
    } finally {
      running.delete(name);
    }
  }

  return async (names) => {
    retries.collect();
    await Promise.all([...names].map(begin));
  };
}
