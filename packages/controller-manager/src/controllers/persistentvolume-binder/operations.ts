import { once } from "node:events";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

/** Long-running background operations, at most one per name. Source: pkg/util/goroutinemap */
export interface Operations {
  /**
   * Starts the operation unless it is running or in backoff; callers retry with the next resync.
   * A rejection is logged; the backoff starts at 500 ms and doubles up to about two minutes.
   */
  start(name: string, work: (signal: AbortSignal) => Promise<void>): void;
  /** Runs until `signal` is aborted and all started operations have ended. */
  run(signal: AbortSignal): Promise<void>;
}

const firstWaitMs = 500;
const longestWaitMs = 2 * 60_000 + 2000;

export function newOperations(clock: Clock, log: Logger): Operations {
  const running = new Map<string, Promise<void>>();
  const failed = new Map<string, { waitMs: number; until: number }>();
  const stop = new AbortController();

  const attempt = async (name: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    try {
      await work(stop.signal);
      failed.delete(name);
    } catch (err) {
      const waitMs = Math.min((failed.get(name)?.waitMs ?? firstWaitMs / 2) * 2, longestWaitMs);
      failed.set(name, { waitMs, until: clock.monotonic() + waitMs });
      if (!stop.signal.aborted) log.error("operation failed", err, { operation: name, retryAfterMs: waitMs });
    }
  };
  /** Drops expired backoff entries so that the map does not grow without bound. */
  const forgetOld = (): void => {
    for (const [name, { until }] of failed) if (until + longestWaitMs < clock.monotonic()) failed.delete(name);
  };

  return {
    start(name, work) {
      const isTooSoon = (failed.get(name)?.until ?? 0) > clock.monotonic();
      if (running.has(name) || isTooSoon || stop.signal.aborted) return;
      forgetOld();
      const attempted = attempt(name, work).finally(() => running.delete(name));
      running.set(name, attempted);
    },
    async run(signal) {
      const end = (): void => stop.abort(signal.reason);
      if (signal.aborted) end();
      signal.addEventListener("abort", end, { once: true });
      if (!stop.signal.aborted) await once(stop.signal, "abort");
      await Promise.all(running.values());
    },
  };
}
