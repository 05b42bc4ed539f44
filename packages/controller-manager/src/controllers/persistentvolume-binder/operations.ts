import { once } from "node:events";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";

/** Work that takes long and holds up nobody: one at a time under each name. Source: pkg/util/goroutinemap */
export interface Operations {
  /**
   * Starts it, unless it runs already or failed only just now; whoever asks comes back with the next look at everything.
   * A throw is logged; the next start may be half a second later, then twice as long each time, two minutes at most.
   */
  start(name: string, work: (signal: AbortSignal) => Promise<void>): void;
  /** Runs until `signal` is aborted, and what was started is over. */
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
  /** A name that is not asked for any more must not be kept for ever. */
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
