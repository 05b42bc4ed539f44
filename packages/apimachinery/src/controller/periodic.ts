import type { Clock } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";

export interface PeriodicOptions {
  readonly name: string;
  /** Pause between the end of a run and the start of the next. */
  readonly periodMs: number;
  /** Informers to wait for before the first run. */
  readonly synced?: readonly { waitForSync(signal: AbortSignal): Promise<void> }[];
  /** True when the first run is after one period, because the work was done before. Default: the first run is immediate. */
  readonly startsLate?: boolean;
  /** An error is logged and does not end the loop. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
  readonly clock: Clock;
}

/** A periodic check of all objects, for changes without events. */
export interface Periodic {
  /** Resolves when `signal` is aborted and the current run has finished. */
  run(signal: AbortSignal): Promise<void>;
}

/** Runs do not overlap: the period begins when the previous run has ended. */
export function newPeriodic({ name, periodMs, synced = [], startsLate = false, work, log, clock }: PeriodicOptions): Periodic {
  return {
    async run(signal) {
      try {
        await Promise.all(synced.map((informer) => informer.waitForSync(signal)));
      } catch (err) {
        if (signal.aborted) return;
        throw err;
      }
      if (startsLate) await clock.sleep(periodMs, signal).catch(() => {});
      while (!signal.aborted) {
        try {
          await work(signal);
        } catch (err) {
          if (!signal.aborted) log.error("periodic work failed", err, { controller: name });
        }
        await clock.sleep(periodMs, signal).catch(() => {});
      }
    },
  };
}

/**
 * Retries once a second until `work` succeeds or `signal` is aborted: for prerequisites of everything else. Errors are logged.
 */
export async function insist(options: {
  readonly work: (signal: AbortSignal) => Promise<unknown>;
  /** Log message of a failure. */
  readonly failure: string;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly clock: Clock;
}): Promise<void> {
  const { work, failure, signal, log, clock } = options;
  while (!signal.aborted) {
    try {
      await work(signal);
      return;
    } catch (err) {
      if (!signal.aborted) log.error(failure, err);
    }
    await clock.sleep(1000, signal).catch(() => {});
  }
}
