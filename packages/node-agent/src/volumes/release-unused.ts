import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { newBackoff } from "../pods/backoff.ts";
import type { Serial } from "./csi/serial.ts";

/**
 * Tries to let go of volumes, all of them at once: one whose driver is slow, or hangs, keeps no other waiting. What fails is
 * tried again at a later call, after longer and longer waits.
 * @returns resolves when these tries have come to their end
 */
export type ReleaseUnused = (names: Iterable<string>) => Promise<void>;

/** Source: pkg/util/goroutinemap/exponentialbackoff */
const retryInitialMs = 500;
const retryMaxMs = 122_000;

export function newReleaseUnused(options: {
  serial: Serial;
  /** Undoes what was done for all Pods of a volume, if none is left. */
  release(name: string): Promise<void>;
  clock: Clock;
  log: Logger;
}): ReleaseUnused {
  const { serial, release, clock, log } = options;
  const retries = newBackoff({ initialMs: retryInitialMs, maxMs: retryMaxMs, clock });
  /** Tries that have not begun: they will see things as they are then. */
  const next = new Map<string, Promise<void>>();
  const running = new Set<string>();

  function begin(name: string): Promise<void> | undefined {
    const begun = next.get(name);
    // Behind one that may hang nobody waits a second time.
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
